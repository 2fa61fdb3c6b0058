import numpy as np
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from sfboost.heads import AdamLogisticRegression, SoftLabelClassifier, SoftLogisticRegression
from sfboost.heads.linear import fit_linear
from sfboost.heads.objectives import CrossEntropy, log_proba_from_logits


@parametrize_with_checks([SoftLogisticRegression(), AdamLogisticRegression(), SoftLabelClassifier()])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def soft_rows(k=3, n=300, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    targets = np.exp(X @ rng.normal(size=(d, k)) + rng.gumbel(size=(n, k)))
    return X, targets / targets.sum(axis=1, keepdims=True)


def duplicated(X, targets):
    """scikit-learn's way: every row once per class, weighted."""
    n, k = targets.shape
    return np.tile(X, (k, 1)), np.repeat(np.arange(k), n), targets.T.ravel()


@pytest.mark.parametrize("k", [2, 3, 6])
@pytest.mark.parametrize("solver", ["newton", "lbfgs"])
def test_soft_labels_equal_weighted_duplication_in_scikit_learn(k, solver):
    X, targets = soft_rows(k)
    loss = CrossEntropy(targets, np.full(300, 1 / 300))
    ours = fit_linear(X, loss, l2=1 / 300, solver=solver, tolerance=1e-9)
    rows, labels, weight = duplicated(X, targets)
    theirs = LogisticRegression(C=1.0, tol=1e-10, max_iter=10000).fit(rows, labels, sample_weight=weight)
    proba = np.exp(log_proba_from_logits(ours.logits(X)))
    np.testing.assert_allclose(proba, theirs.predict_proba(X), atol=1e-5)
    np.testing.assert_allclose(ours.coef.T, theirs.coef_, atol=1e-4)
    head = SoftLogisticRegression(l2=1 / 300, tol=1e-9).fit(X, targets)
    np.testing.assert_allclose(head.predict_proba(X), proba, atol=1e-6)


@pytest.mark.parametrize("k", [2, 3])
def test_sparse_rows_give_the_dense_answer(k):
    X, targets = soft_rows(k)
    X[np.abs(X) < 0.7] = 0
    dense = SoftLogisticRegression().fit(X, targets).predict_proba(X)
    thin = SoftLogisticRegression().fit(sparse.csr_array(X), targets).predict_proba(sparse.csr_array(X))
    np.testing.assert_allclose(thin, dense, atol=1e-5)


@pytest.mark.parametrize("head", [SoftLogisticRegression(), AdamLogisticRegression(20, batch_size=10**6)])
def test_weight_two_is_a_row_twice(head):
    X, targets = soft_rows()
    weight = np.ones(300)
    weight[:50] = 2
    twice = np.concatenate([np.arange(300), np.arange(50)])
    weighted = clone(head).fit(X, targets, sample_weight=weight).predict_proba(X)
    np.testing.assert_allclose(
        clone(head).fit(X[twice], targets[twice]).predict_proba(X), weighted, atol=1e-6
    )


@pytest.mark.parametrize("head", [SoftLogisticRegression(), AdamLogisticRegression(20, batch_size=10**6)])
def test_class_and_row_order_do_not_matter(head):
    X, targets = soft_rows()
    plain = clone(head).fit(X, targets).predict_proba(X)
    classes, rows = [2, 0, 1], np.random.default_rng(1).permutation(300)
    other = clone(head).fit(X[rows], targets[rows][:, classes]).predict_proba(X)
    np.testing.assert_allclose(other, plain[:, classes], atol=1e-5)


def test_a_fit_from_a_good_start_needs_fewer_iterations_and_ends_in_the_same_place():
    X, targets = soft_rows()
    loss = CrossEntropy(targets, np.full(300, 1 / 300))
    cold = fit_linear(X, loss, l2=1e-3, solver="lbfgs")
    warm = fit_linear(X, loss, l2=1e-3, solver="lbfgs", start=cold)
    assert warm.n_iterations < cold.n_iterations
    np.testing.assert_allclose(warm.coef, cold.coef, atol=1e-4)


def test_separable_soft_labels_are_held_by_the_penalty():
    X = np.array([[-1.0], [1.0]])
    head = SoftLogisticRegression(l2=1e-2).fit(X, np.eye(2))
    assert np.isfinite(head.coef_).all()
    assert abs(head.coef_).max() < 10


def test_signed_targets_keep_the_loss_convex():
    X, targets = soft_rows(2)
    signed = CrossEntropy(targets * 5 - 2, np.full(300, 1 / 300))
    fits = [fit_linear(X, signed, l2=0.5, solver=solver, tolerance=1e-9) for solver in ("newton", "lbfgs")]
    np.testing.assert_allclose(fits[0].coef, fits[1].coef, atol=1e-5)


class TestAdam:
    def test_steps_follow_the_published_update(self):
        """A transcription of Kingma & Ba's algorithm, one scalar at a time, full batch."""
        X, targets = soft_rows(2, n=50, d=2)
        head = AdamLogisticRegression(steps=7, learning_rate=0.05, batch_size=50).fit(X, targets)
        m, v = np.zeros(3), np.zeros(3)
        mean = targets[:, 1].mean()
        theta = np.array([0.0, 0.0, np.log(mean / (1 - mean))])
        design = np.column_stack([X, np.ones(50)])
        for t in range(1, 8):
            gradient = design.T @ (1 / (1 + np.exp(-design @ theta)) - targets[:, 1]) / 50
            for j in range(3):
                m[j] = 0.9 * m[j] + 0.1 * gradient[j]
                v[j] = 0.999 * v[j] + 0.001 * gradient[j] ** 2
                theta[j] -= 0.05 * (m[j] / (1 - 0.9**t)) / (np.sqrt(v[j] / (1 - 0.999**t)) + 1e-8)
        np.testing.assert_allclose(np.append(head.coef_[0], head.intercept_), theta, rtol=1e-10)

    def test_twenty_steps_move_a_weight_by_about_a_fifth_and_say_that_this_is_not_enough(self):
        X, targets = soft_rows(2)
        head = AdamLogisticRegression(steps=20).fit(X, targets)
        assert abs(head.coef_).max() <= 0.21
        assert not head.converged_

    def test_a_pass_is_every_row_once(self):
        X, targets = soft_rows(n=250)
        head = AdamLogisticRegression(passes=3, batch_size=100).fit(X, targets)
        assert head.n_iter_ == 9
        weight = np.concatenate([np.ones(100), np.zeros(150)])
        weighted = AdamLogisticRegression(passes=3, batch_size=20).fit(X, targets, sample_weight=weight)
        few = AdamLogisticRegression(passes=3, batch_size=20).fit(X[:100], targets[:100])
        np.testing.assert_allclose(weighted.coef_, few.coef_, rtol=1e-12)

    def test_many_steps_reach_the_converged_head(self):
        X, targets = soft_rows()
        far = AdamLogisticRegression(steps=3000, learning_rate=0.02, batch_size=300).fit(X, targets)
        exact = SoftLogisticRegression(l2=1e-8).fit(X, targets)
        np.testing.assert_allclose(far.predict_proba(X), exact.predict_proba(X), atol=3e-3)
        assert far.converged_
        assert exact.converged_


class TestWrapper:
    def test_a_wrapped_logistic_regression_is_ours(self):
        X, targets = soft_rows()
        wrapped = SoftLabelClassifier(LogisticRegression(C=1.0, tol=1e-9, max_iter=10000)).fit(X, targets)
        ours = SoftLogisticRegression(l2=1 / 300, tol=1e-9).fit(X, targets)
        np.testing.assert_allclose(wrapped.predict_proba(X), ours.predict_proba(X), atol=1e-5)

    @pytest.mark.parametrize("routing", [False, True])
    def test_weights_reach_the_last_step_of_a_pipeline(self, routing):
        X, targets = soft_rows()
        pipeline = make_pipeline(StandardScaler(), LogisticRegression(tol=1e-9, max_iter=10000))
        with config_context(enable_metadata_routing=routing):
            inside = SoftLabelClassifier(pipeline).fit(X, targets)
        flat = SoftLabelClassifier(LogisticRegression(tol=1e-9, max_iter=10000)).fit(
            (X - X.mean(axis=0)) / X.std(axis=0), targets
        )
        np.testing.assert_allclose(
            inside.predict_proba(X), flat.predict_proba((X - X.mean(axis=0)) / X.std(axis=0)), atol=1e-5
        )

    def test_forests_and_naive_bayes_take_soft_labels(self):
        X, targets = soft_rows()
        for estimator in (RandomForestClassifier(20, max_depth=3, random_state=0), GaussianNB()):
            proba = SoftLabelClassifier(estimator).fit(X, targets).predict_proba(X)
            baseline = -(targets * np.log(targets.mean(axis=0))).sum(axis=1).mean()
            assert -(targets * np.log(proba + 1e-12)).sum(axis=1).mean() < baseline

    def test_a_class_without_weight_gets_probability_zero(self):
        X, targets = soft_rows(2)
        proba = SoftLabelClassifier().fit(X, np.column_stack([targets, np.zeros(300)])).predict_proba(X)
        np.testing.assert_array_equal(proba[:, 2], 0)

    def test_a_classifier_without_weights_is_refused_with_alternatives(self):
        with pytest.raises(
            ValueError, match=r"KNeighborsClassifier\.fit takes no sample_weight.*RandomForest"
        ):
            SoftLabelClassifier(KNeighborsClassifier()).fit(*soft_rows())

    def test_negative_label_weights_are_refused(self):
        X, targets = soft_rows()
        with pytest.raises(ValueError, match="negative label weights"):
            SoftLabelClassifier().fit_soft(X, targets * 3 - 2 / 3)


@pytest.mark.parametrize("head", [SoftLogisticRegression(), AdamLogisticRegression(), SoftLabelClassifier()])
class TestInput:
    def test_inputs_are_not_written_to(self, head):
        X, targets = soft_rows()
        for array in (X, targets):
            array.setflags(write=False)
        clone(head).fit(X, targets).predict_proba(X)

    @pytest.mark.parametrize(
        ("y", "sentence"),
        [
            (None, "target y is None"),
            (np.zeros(300), "one class only"),
            (np.full(300, np.nan), "NaN"),
            (np.full((300, 2), 0.7), "sum to 1"),
        ],
    )
    def test_bad_labels_get_a_sentence(self, head, y, sentence):
        with pytest.raises(ValueError, match=sentence):
            clone(head).fit(soft_rows()[0], y)
