"""`StableFeatureBoosting`: the scikit-learn contract, calibration, and what `fit` keeps."""

import copy
import warnings

import numpy as np
import pytest
from joints import anticausal_hospitals as hospitals
from joints import draw_anticausal
from sklearn import config_context
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, LeaveOneGroupOut, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from sfboost import Settings, StableFeatureBoosting, adapted_scorer
from sfboost.adaptation.decision import AdaptationRefused, AdaptationWarning

# Many facts here need one domain alone; that this is said has a test of its own.
pytestmark = pytest.mark.filterwarnings("ignore:sample_domain was not given")


@parametrize_with_checks(
    [StableFeatureBoosting(), StableFeatureBoosting(settings=Settings("paper"), calibration="ece")]
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def fitted():
    X, y, domain = hospitals()
    return StableFeatureBoosting([0], [1]).fit(X, y, sample_domain=domain)


@pytest.fixture
def model(fitted):
    return copy.deepcopy(fitted)


@pytest.fixture
def new():
    return draw_anticausal(4000, 0.1, seed=77)


class TestLifeCycle:
    def test_before_adaptation_the_pooled_classifier_predicts_and_f_s_is_there_to_ask(self, model, new):
        X, _ = new
        pooled = model.pooled_.log_proba(X[:, :1], X[:, 1:])
        np.testing.assert_allclose(model.predict_log_proba(X), pooled)
        np.testing.assert_array_equal(model.predict(X), pooled.argmax(axis=1))
        changed = X.copy()
        changed[:, 1] = 12345.0
        stable = model.predict_stable_proba(X)
        np.testing.assert_array_equal(model.predict_stable_proba(changed), stable)
        assert np.mean(stable.argmax(axis=1) == new[1]) == pytest.approx(0.75, abs=0.025)

    def test_the_source_model_is_byte_identical_after_adapt(self, model, new):
        import pickle

        before = pickle.dumps(model)
        adapted = model.adapt(new[0])
        adapted.predict_proba(new[0])
        adapted.explain(new[0][0])
        assert pickle.dumps(model) == before


class TestEvidence:
    def test_a_stable_predictor_of_noise_is_refused(self, new):
        rng = np.random.default_rng(0)
        X, y, domain = hospitals()
        X[:, 0] = rng.normal(size=len(y))
        forest = RandomForestClassifier(30, random_state=0)  # confident about nothing
        model = StableFeatureBoosting([0], [1], stable=forest, calibration=None).fit(
            X, y, sample_domain=domain
        )
        assert not model.training_.evidence.convincing
        with pytest.warns(AdaptationRefused, match="seen where there is none: in your source domains"):
            kept = model.adapt(new[0], answer="safe")
        assert kept.decision_ == "kept stable"
        np.testing.assert_allclose(kept.predict_proba(new[0]), model.predict_stable_proba(new[0]))
        assert model.adapt(new[0], settings=Settings("paper")).decision_ == "adapted"


class TestWhatFitKeeps:
    def test_one_summary_per_domain(self, model):
        assert [d.name for d in model.domains_] == ["hospital 0", "hospital 1"]
        for domain in model.domains_:
            assert domain.n_rows == 600
            assert domain.class_balance.sum() == pytest.approx(1)
            assert domain.calibration.n_rows == 600
            assert domain.calibration.accuracy == pytest.approx(0.75, abs=0.05)
            assert domain.calibration.log_loss == pytest.approx(0.562, abs=0.06)
            assert domain.calibration.reliability.ece < 0.06
            assert domain.feature_mean.shape == (1,)
        # Agreement 0.95 is a stronger relation than 0.7.
        assert model.domains_[0].head.coef_[0, 0] > model.domains_[1].head.coef_[0, 0] > 0

    def test_domains_may_be_integers_or_one(self):
        X, y, domain = hospitals()
        numbers = np.where(domain == "hospital 0", 7, 3)
        assert [d.name for d in StableFeatureBoosting([0]).fit(X, y, sample_domain=numbers).domains_] == [
            7,
            3,
        ]
        with pytest.warns(AdaptationWarning, match="sample_domain was not given"):
            assert [d.name for d in StableFeatureBoosting([0]).fit(X, y).domains_] == ["all"]
        with warnings.catch_warnings():
            warnings.simplefilter("error", AdaptationWarning)
            named = StableFeatureBoosting([0]).fit(X, y, sample_domain=["north"] * len(y))
        assert [d.name for d in named.domains_] == ["north"]


class TestCalibration:
    def overconfident(self, n=3000, seed=0):
        """A prefit classifier whose logits are four times too large, and calibration rows."""
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n, 2))
        y = (rng.random(n) < 1 / (1 + np.exp(-X[:, 0]))).astype(int)
        fitted = LogisticRegression().fit(X[:, :1], y)
        fitted.coef_, fitted.intercept_ = np.array([[4.0]]), np.array([0.0])
        return FrozenEstimator(fitted), X, y

    @pytest.mark.parametrize("calibration", ["nll", "ece"])
    def test_a_prefit_classifier_is_calibrated_not_refitted(self, calibration):
        frozen, X, y = self.overconfident()
        model = StableFeatureBoosting([0], [1], stable=frozen, calibration=calibration).fit(X, y)
        assert model.temperature_.temperature == pytest.approx(4, rel=0.3)
        (domain,) = model.domains_
        assert domain.calibration.reliability.ece < 0.03 < domain.calibration.reliability_raw.ece

    def test_a_named_validation_domain_is_left_out_of_training(self):
        X, y, domain = hospitals(agreements=(0.95, 0.7, 0.6))
        model = StableFeatureBoosting([0], [1], validation_domain="hospital 2").fit(
            X, y, sample_domain=domain
        )
        assert [d.name for d in model.domains_] == ["hospital 0", "hospital 1", "hospital 2"]
        assert [d.n_rows for d in model.domains_] == [600] * 3
        assert [d.calibration is None for d in model.domains_] == [True, True, False]
        assert all(d.head is not None for d in model.domains_)
        rest = domain != "hospital 2"
        alone = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(
            X[rest][:, :1], y[rest]
        )
        np.testing.assert_allclose(model.stable_.predict_proba(X[:, :1]), alone.predict_proba(X[:, :1]))
        with pytest.raises(ValueError, match="validation_domain='Mars' must be one of several"):
            clone(model).set_params(validation_domain="Mars").fit(X, y, sample_domain=domain)

    def test_a_prefit_classifier_that_knows_the_rows_is_noticed(self):
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(200, 2)), rng.integers(0, 2, 200)
        frozen = FrozenEstimator(RandomForestClassifier(100, random_state=0).fit(X[:, :1], y))
        with pytest.warns(AdaptationWarning, match="were these rows used to fit it"):
            StableFeatureBoosting([0], [1], stable=frozen).fit(X, y)


class TestScikitLearn:
    @pytest.mark.parametrize("routing", [False, True])
    def test_grid_search_over_whole_domains_with_adaptation(self, routing):
        X, y, domain = hospitals(400, (0.95, 0.7, 0.2))
        with config_context(enable_metadata_routing=routing):
            model = StableFeatureBoosting([0], [1], cv=2, settings=Settings())
            splits = LeaveOneGroupOut()
            if routing:
                model = model.set_fit_request(sample_domain=True, sample_weight=False)
            search = GridSearchCV(
                model,
                {"settings__correction": ["likelihood", "none"]},
                scoring=adapted_scorer("log_loss"),
                cv=splits,
                refit=False,
            )
            search.fit(X, y, sample_domain=domain, groups=domain)
        assert model.settings.correction is None
        assert search.best_params_ == {"settings__correction": "likelihood"}

    def test_a_search_that_forgets_the_domains_is_told(self):
        X, y, domain = hospitals(60)
        search = GridSearchCV(StableFeatureBoosting([0], [1]), {"cv": [2]}, cv=LeaveOneGroupOut())
        with pytest.warns(AdaptationWarning, match="sample_domain=domain"):
            search.fit(X, y, groups=domain)

    def test_cross_validation_inside_a_pipeline(self):
        X, y, _ = hospitals(200)
        pipeline = make_pipeline(StandardScaler(), StableFeatureBoosting([0], [1], cv=2))
        # Before adapting one classifier of all features answers: 82.5 % of the rows agree with colour.
        assert cross_val_score(pipeline, X, y, cv=3).mean() == pytest.approx(0.825, abs=0.04)

    def test_a_weight_counts_like_a_repeated_row(self):
        X, y, domain = hospitals(60)
        weight = np.random.default_rng(0).integers(0, 3, 120)
        rows = np.repeat(np.arange(120), weight)
        options = {"calibration": None, "stable_features": [0]}
        weighted = StableFeatureBoosting(**options).fit(X, y, sample_domain=domain, sample_weight=weight)
        repeated = StableFeatureBoosting(**options).fit(X[rows], y[rows], sample_domain=domain[rows])
        stable = [one.predict_stable_proba(X) for one in (weighted, repeated)]
        np.testing.assert_allclose(*stable, atol=1e-5)
        for one, other in zip(weighted.domains_, repeated.domains_, strict=True):
            np.testing.assert_allclose(one.class_balance, other.class_balance)
            np.testing.assert_allclose(one.head.coef_, other.head.coef_, atol=1e-5)


class TestLabelsAndFrames:
    def test_text_labels_and_named_columns(self, new):
        pandas = pytest.importorskip("pandas", reason="the [app] extra brings pandas")
        X, y, domain = hospitals()
        names = np.array(["ill", "well"])
        frame = pandas.DataFrame(X, columns=["age", "glucose_ward"])
        model = StableFeatureBoosting(stable_features=["age"], unstable_features=["glucose_ward"])
        model.fit(frame, pandas.Series(names[y]), sample_domain=pandas.Series(domain))
        new_frame = pandas.DataFrame(new[0], columns=["age", "glucose_ward"])
        adapted = model.adapt(new_frame)
        assert adapted.score(new_frame, names[new[1]]) == pytest.approx(0.9, abs=0.02)
        assert adapted.classes_.tolist() == ["ill", "well"]
        for row in (new_frame.iloc[3], new_frame.iloc[[3]]):
            why = adapted.explain(row)
            assert why.feature_names == ("glucose_ward",)
            np.testing.assert_allclose(np.exp(why.joint), adapted.predict_proba(new_frame.iloc[[3]])[0])
        with pytest.raises(ValueError, match="takes one row, got 2"):
            adapted.explain(new_frame.iloc[:2])
        with pytest.raises(ValueError, match="feature names"):
            model.predict(new_frame.rename(columns={"age": "years"}))
        with pytest.raises(ValueError, match="feature names"):
            adapted.predict(new_frame[["age"]])

    @pytest.mark.parametrize("selector", [[0], slice(0, 1), [True, False], lambda X: [0], 0, (0,)])
    def test_selectors_as_in_column_transformer(self, selector):
        X, y, domain = hospitals(100)
        model = StableFeatureBoosting(selector).fit(X, y, sample_domain=domain)
        assert model.stable_columns_.positions == (0,)
        assert model.unstable_columns_.positions == (1,)


def frame_with(**columns):
    pandas = pytest.importorskip("pandas", reason="the [app] extra brings pandas")
    X, y, _ = hospitals(50)
    return pandas.DataFrame({"a": X[:, 0], "b": X[:, 1]} | columns), y


class OwnEncoding(LogisticRegression):
    """A classifier that reads text by itself, in a way that nobody else can see."""

    def fit(self, X, y, sample_weight=None):
        return super().fit(self._encode(X), y, sample_weight)

    def predict_proba(self, X):
        return super().predict_proba(self._encode(X))

    @staticmethod
    def _encode(X):
        return (np.asarray(X) == "green").astype(float)


class TestPipelinesOfTheUser:
    """Text and missing values are the business of the pipelines that a user passes."""

    @staticmethod
    def table(n=1500, seed=0):
        pandas = pytest.importorskip("pandas", reason="the [app] extra brings pandas")
        X, y = draw_anticausal(n, 0.1, seed)
        words = np.where(X[:, 1] > 0, "green", "red")
        numbers = X[:, 1].copy()
        numbers[::7] = np.nan
        return pandas.DataFrame({"a": X[:, 0], "word": words, "number": numbers}), y

    @pytest.mark.parametrize("column", ["word", "number"])
    def test_they_adapt_keep_predict_explain_and_evaluate(self, column):
        frame, y = self.table()
        first = OneHotEncoder(handle_unknown="ignore") if column == "word" else SimpleImputer()
        head = make_pipeline(first, LogisticRegression())
        model = StableFeatureBoosting(["a"], [column], unstable=head, learner=None).fit(frame, y)
        adapted = model.adapt(frame, settings=Settings("paper"))
        assert adapted.score(frame, y) > 0.84
        assert adapted.explain(frame.iloc[[0]]).features is None
        with pytest.warns(AdaptationRefused):
            kept = model.adapt(frame.iloc[:20], answer="safe")
        np.testing.assert_allclose(kept.predict_proba(frame), model.predict_stable_proba(frame))
        assert kept.explain(frame.iloc[[0]]).prediction in (0, 1)
        domain = np.arange(len(y)) % 2
        assert model.evaluate(frame, y, domain).mean("pooled") > 0.82

    @staticmethod
    def leaking(n, seed, words):
        """X_U copies the stable column in half of the rows: as text or as a number."""
        pandas = pytest.importorskip("pandas", reason="the [app] extra brings pandas")
        X, y = draw_anticausal(n, 0.5, seed)
        copied = np.random.default_rng(seed).random(n) < 0.5
        colour = np.where(copied, X[:, 0], X[:, 1])
        column = np.where(colour > 0, "green", "red") if words else colour
        return pandas.DataFrame({"a": X[:, 0], "colour": column}), y

    def test_the_leak_into_text_is_measured_as_the_head_reads_it(self):
        leaks = []
        for words in (False, True):
            frame, y = self.leaking(3000, 0, words)
            head = make_pipeline(OneHotEncoder(), LogisticRegression())
            model = StableFeatureBoosting(["a"], ["colour"], unstable=head, learner=None)
            model.fit(frame, y, sample_domain=np.arange(3000) % 2)
            leaks.append([leak.lower for leak in model.leaks_])
        assert leaks[0] == pytest.approx(leaks[1])
        assert min(leaks[0]) > 0.05

    def test_a_leak_that_cannot_be_measured_is_not_zero(self):
        frame, y = self.leaking(3000, 0, words=True)
        hidden = StableFeatureBoosting(["a"], ["colour"], unstable=OwnEncoding(), learner=None)
        hidden.fit(frame, y, sample_domain=np.arange(3000) % 2)
        assert hidden.leaks_ is None
        turned = frame.assign(colour=frame["colour"].map({"green": "red", "red": "green"}))
        X, labels = draw_anticausal(2000, 0.1, seed=0)
        small = StableFeatureBoosting([0], [1], learner=None).fit(
            X, labels, sample_domain=np.arange(2000) // 20
        )
        for model, new in ((hidden, turned), (small, draw_anticausal(2000, 0.9, seed=1)[0])):
            with pytest.warns(AdaptationRefused, match="within a class could not be measured in training"):
                kept = model.adapt(new, answer="safe")
            np.testing.assert_allclose(kept.predict_proba(new), model.predict_stable_proba(new))
            assert model.adapt(new).decision_ == "adapted"


class TestBadInput:
    def test_predict_before_fit(self):
        for call in ("predict", "predict_proba", "adapt"):
            with pytest.raises(Exception, match=r"not fitted yet\. Call 'fit'"):
                getattr(StableFeatureBoosting(), call)(np.zeros((2, 2)))

    @pytest.mark.parametrize(
        ("parameters", "sentence"),
        [
            ({"stable_features": ["age"]}, "stable_features=.'age'. does not fit the data"),
            ({"stable_features": [9]}, "X has 2 columns"),
            ({"stable_features": [0], "unstable_features": [0]}, "both stable and unstable"),
            ({"unstable_features": [0, 1]}, "No stable feature is left"),
            ({"calibration": "magic"}, "calibration"),
            ({"settings": Settings(correction="magic")}, "correction"),
            ({"settings": {"l2": 1.0}}, "settings"),
            ({"transport": "magic"}, "transport"),
        ],
    )
    def test_bad_parameters(self, parameters, sentence):
        X, y, domain = hospitals(50)
        with pytest.raises(ValueError, match=sentence):
            StableFeatureBoosting(**parameters).fit(X, y, sample_domain=domain)

    def test_what_no_stable_classifier_can_be(self):
        X, y, _ = hospitals(50)
        frozen = FrozenEstimator(LogisticRegression().fit(X[:, :1], np.where(y, "yes", "no")))
        for stable, sentence in (
            (LinearSVC(), r"LinearSVC has no predict_proba.*CalibratedClassifierCV"),
            (frozen, "knows the classes"),
        ):
            with pytest.raises(ValueError, match=sentence):
                StableFeatureBoosting([0], stable=stable).fit(X, y)

    def test_nothing_to_adapt(self, new):
        X, y, _ = hospitals(50)
        with pytest.raises(ValueError, match="every column is stable"):
            StableFeatureBoosting().fit(X, y).adapt(new[0])

    def test_bad_new_rows(self, model, new):
        for X, y, sentence in (
            (new[0][:, :1], None, "1 features, but StableFeatureBoosting is expecting 2"),
            (new[0][:1], None, "One row cannot tell"),
            (new[0], [9] * 4000, "a class that training never saw"),
        ):
            with pytest.raises(ValueError, match=sentence):
                model.adapt(X, y)

    def test_text_and_missing_values_are_named(self):
        frame, y = frame_with(c=["x"] * 100)
        with pytest.raises(ValueError, match=r"unstable feature 'x2' is not numeric.*pipeline"):
            StableFeatureBoosting([0], stable=LogisticRegression()).fit(frame.to_numpy(dtype=object), y)
        with pytest.raises(ValueError, match="Nothing is learned of the stable columns"):
            StableFeatureBoosting(["c"]).fit(frame, y)
        with pytest.raises(ValueError, match="empty"):
            StableFeatureBoosting(["a"]).fit(frame.iloc[:0], y[:0])
