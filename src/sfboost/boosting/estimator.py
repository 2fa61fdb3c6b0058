"""`StableFeatureBoosting`: labelled training domains in, a model that adapts to new ones out."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.utils import _safe_indexing
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import (
    _check_feature_names,
    _check_n_features,
    check_is_fitted,
    validate_data,
)

from sfboost.adaptation import DomainSummary
from sfboost.adaptation.checks import check_weight
from sfboost.adaptation.decision import AdaptationWarning
from sfboost.adaptation.settings import Settings
from sfboost.boosting.adaptable import AdaptableClassifier, Parts
from sfboost.boosting.columns import (
    Columns,
    choose_columns,
    reads_numbers,
    require_columns,
    require_numbers,
    tell_filled,
    tell_training,
)
from sfboost.boosting.components import (
    COMPONENTS,
    Directions,
    PlayedComponents,
    domain_splits,
    play_components,
    tuned_regression,
    used_rows,
)
from sfboost.boosting.diagnosing import (
    diagnose_model,
    know_training,
    training_rows,
)
from sfboost.boosting.domain_scale import DomainScale
from sfboost.boosting.domains import learn_domain
from sfboost.boosting.evaluation import default_classifier, evaluate_domains
from sfboost.boosting.rows import (
    ONE_DOMAIN,
    check_labels,
    check_training_weight,
    encode_labels,
    make_splits,
)
from sfboost.boosting.scored_domains import DomainEvaluation
from sfboost.boosting.sets import calibrate_sets
from sfboost.boosting.stable_learner import StableLearner
from sfboost.boosting.validation import PooledClassifier, learn_record, raw_log_proba, target_rows
from sfboost.calibration import HeldOutCalibration, Temperature, fit_temperature
from sfboost.diagnostics import Diagnosis
from sfboost.diagnostics.performance import PredictionSets
from sfboost.diagnostics.rows import check_domain, domain_numbers, rows_by_domain
from sfboost.frames import Encoder, is_frame, refuse_twins
from sfboost.marginal.probabilities import FloatArray, IntArray
from sfboost.notices import warn
from sfboost.shift import DomainData


class StableFeatureBoosting(AdaptableClassifier):
    """Learn a stable predictor on labelled domains; adapt to a new one without labels.

    `fit` trains a classifier of the stable features and one of all features, calibrated on source domains
    that are left out in turn. Until `adapt` is called the latter predicts. `adapt` takes unlabelled rows of a
    target domain, finds out what moved there, and returns a new object.

    Parameters
    ----------
    stable_features, unstable_features : column selectors, default=None
        As in scikit-learn's ColumnTransformer: names, positions, a slice, a mask or a callable. None is
        every column that the other set does not name. `stable_features="auto"`, or a
        `StableFeatureSelector`, searches for columns that are stable over the training domains.
        `unstable_features="components"` is for embeddings, where no column is stable by itself: f_S reads
        all of them (or those that are named), and what adapts are directions of the new rows.
    stable : classifier, default=None
        Any classifier or pipeline with `predict_proba`; wrap one that is fitted already in
        `sklearn.frozen.FrozenEstimator`, and give `fit` rows that are new to it. None is logistic
        regression on standardised features; with components on the rows as they are, its penalty chosen on
        left-out domains.
    unstable : classifier, default=None
        Head of the unstable features: one of `sfboost.heads`, or any classifier or pipeline that takes
        `sample_weight`. None is our soft-label logistic regression.
    learner : classifier, pair of classifiers, "auto" or None, default="auto"
        What is fitted to all columns, as numbers. Two are mixed in log space, weighed by source domains that
        are left out in turn, the first one being the base. "auto" is a clone of `stable` (logistic regression
        where that is None or frozen) and one of the other kind: boosting beside a linear classifier, else
        logistic regression. None is the clone alone.
    calibration : {"nll", "ece", None}, default="nll"
        How the temperature of the stable predictor is chosen: log loss, or the paper's ECE.
    calibration_bias : bool, default=False
        Also fit one offset per class.
    calibration_weights : {"domain", "pooled"}, default="domain"
        Whether every domain counts the same, whatever its size, or every row.
    validation_domain : str or int, default=None
        Domain to calibrate on, left out of training. None calibrates on held-out folds of all domains.
    cv : int, splitter or iterable of splits, default=5
        Those folds. A number spreads every class of every domain evenly; a splitter is given the domains
        as groups, so that `LeaveOneGroupOut` calibrates on whole domains. With components a number is of
        groups of whole domains.
    transport : {"posterior", "likelihood"}, default="posterior"
        What transports: P(Y | X_S), the paper's stability (causes of Y), or P(X_S | Y), label shift (effects
        of Y). `diagnose` tests which.
    standardize : {"domain"} or None, default=None
        "domain" takes each domain's numeric columns by its own means and standard deviations: those of the
        source domains in `fit`, those of the target's own rows, without labels, in `adapt`. Until it is
        adapted the model predicts rows as those of one domain that they are all of: never one row alone.
    settings : Settings, default=None
        How to fit the unstable features. None is `Settings()`; pass that to search over ``settings__l2``.
    n_jobs : int, default=None
        Processes for folds and domains.
    random_state : int, default=0
        Seed of the folds.

    Attributes
    ----------
    classes_ : array of shape (K,)
    domains_ : tuple of `DomainSummary`
        One per training domain: class balance, labelled head, feature summaries, held-out calibration.
    stable_ : fitted classifier of the stable features
    temperature_ : Temperature
    pooled_ : PooledClassifier or None
        One classifier of all features, as if nothing changed; None if they are no numbers.
    training_ : Training
        What adaptations need to know: how much the stable predictor beats the class balance on held-out rows,
        how far it is from their labels, its mean there, the leak, a labelled head for each domain. Numbers
        only, no rows.
    leaks_ : tuple of DomainLeak, or None
        How much of X_U the stable predictor shows within a class, by source domain: what limits of a gain
        allow for. Measured on what the steps of a pipeline before its last make of them; None if these are
        not numbers either.
    prediction_sets_ : PredictionSets or None
        What `calibrate_sets` learned.
    stable_columns_, unstable_columns_ : Columns
    selector_ : StableFeatureSelector
        What was found, if stable features were searched for.
    components_ : PlayedComponents or None
        With components: whether source domains, left out, gain by adapting along them, and along how many.
    domain_scale_ : DomainScale or None
        What is standardised by domain.
    regression_ : LogisticRegression or None
        With components, and without `stable`: what was fitted, with the penalty that was chosen.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> def draw(n, agreement):
    ...     y = rng.integers(0, 2, n)
    ...     stable = np.where(rng.random(n) < 0.75, y, 1 - y)
    ...     unstable = np.where(rng.random(n) < agreement, y, 1 - y)
    ...     return np.column_stack([stable, unstable]), y
    >>> (X1, y1), (X2, y2), (X_new, y_new) = draw(1000, 0.95), draw(1000, 0.7), draw(5000, 0.1)
    >>> model = StableFeatureBoosting(stable_features=[0], unstable_features=[1])
    >>> hospital = np.repeat(["a", "b"], 1000)
    >>> model = model.fit(np.vstack([X1, X2]), np.concatenate([y1, y2]), sample_domain=hospital)
    >>> round(100 * model.score(X_new, y_new))
    10
    >>> round(100 * model.adapt(X_new).score(X_new, y_new))
    90
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "calibration": [StrOptions({"nll", "ece"}), None],
        "calibration_bias": ["boolean"],
        "calibration_weights": [StrOptions({"domain", "pooled"})],
        "cv": ["cv_object"],
        "transport": [StrOptions({"posterior", "likelihood"})],
        "standardize": [StrOptions({"domain"}), None],
        "settings": [Settings, None],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        stable_features: Any = None,
        unstable_features: Any = None,
        *,
        stable: Any = None,
        unstable: Any = None,
        learner: Any = "auto",
        calibration: str | None = "nll",
        calibration_bias: bool = False,
        calibration_weights: str = "domain",
        validation_domain: Any = None,
        cv: int = 5,
        transport: str = "posterior",
        standardize: str | None = None,
        settings: Settings | None = None,
        n_jobs: int | None = None,
        random_state: int | None = 0,
    ) -> None:
        self.stable_features = stable_features
        self.unstable_features = unstable_features
        self.stable = stable
        self.unstable = unstable
        self.learner = learner
        self.calibration = calibration
        self.calibration_bias = calibration_bias
        self.calibration_weights = calibration_weights
        self.validation_domain = validation_domain
        self.cv = cv
        self.transport = transport
        self.standardize = standardize
        self.settings = settings
        self.n_jobs = n_jobs
        self.random_state = random_state

    domain_scale_: DomainScale | None = None
    unstable_columns_: Columns
    pooled_: PooledClassifier | None
    components_: PlayedComponents | None
    regression_: LogisticRegression | None
    prediction_sets_: PredictionSets | None

    # -- training domains ---------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_domain: Any = None, sample_weight: Any = None) -> Self:
        """Fit and calibrate the stable predictor on labelled training domains.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n, p)
        y : array-like of shape (n,)
            Labels of any type.
        sample_domain : array-like of shape (n,), optional
            Domain of each row, strings or integers. None counts all rows as one domain, with a warning:
            say so by the same name for each row if there is one alone.
        sample_weight : array-like of shape (n,), optional
        """
        self._fit(X, y, sample_domain, sample_weight)
        return self

    def _fit(
        self,
        X: Any,
        y: Any,
        sample_domain: Any,
        sample_weight: Any = None,
    ) -> tuple[IntArray, FloatArray]:
        """Fit; return the held-out rows and their calibrated log-probabilities."""
        self._validate_params()
        choices = self._choices(self.settings)
        X = self._checked(X, reset=True)
        domain = check_domain(sample_domain, X.shape[0])
        if sample_domain is None:
            warn(ONE_DOMAIN, AdaptationWarning)
        y, weight = check_labels(y, X), None
        used = np.arange(X.shape[0])
        if sample_weight is not None:
            weight = check_training_weight(sample_weight, X)
            used = np.flatnonzero(weight)
        splits = make_splits(y, domain, used, self.cv, self.random_state)
        if weight is not None:
            # A row of weight zero is no row: it must not bring a class or a domain with it.
            X, y, domain, weight = _safe_indexing(X, used), y[used], domain[used], weight[used]
        self.classes_, labels = encode_labels(y)
        self.domain_scale_ = None if self.standardize is None else DomainScale.of(X)
        if self.domain_scale_ is not None:
            X = self.domain_scale_.apply(X, domain, weight)
        encoded = (reads_numbers(self.stable), reads_numbers(self.unstable))
        along = self._along_components()
        self.stable_columns_, self.unstable_columns_, selector = choose_columns(
            X, labels, domain, self.stable_features, [] if along else self.unstable_features, encoded
        )
        if selector is not None:
            self.selector_ = selector
        if self.domain_scale_ is not None:
            read = self.stable_columns_.sources + self.unstable_columns_.sources
            self.domain_scale_ = self.domain_scale_.among(read)
        # Taken once: of a frame that encodes them.
        stable_X = self.stable_columns_.take(X)
        unstable_X = self.unstable_columns_.take(X) if len(self.unstable_columns_) else None
        require_numbers(self, stable_X, unstable_X)
        tell_training(self.encoder_, X)
        self.regression_ = None
        cv: Any = self.cv
        if along and isinstance(cv, Integral):
            splits = domain_splits(labels, domain, int(cv)) or splits
        if along and self.stable is None:
            self.regression_, _ = tuned_regression(stable_X, labels, domain, splits, weight, self.n_jobs)
        learner = self._stable_learner(stable_X)
        self.stable_, held_out, raw = learner.learn(
            stable_X, labels, domain, weight, splits, self.validation_domain, self.n_jobs
        )
        rows_weight = np.ones(len(labels)) if weight is None else weight
        self.temperature_ = self._fit_temperature(raw, labels, domain, rows_weight, held_out)
        calibrated = self.temperature_.apply(raw)
        by_domain = rows_by_domain(domain)

        def calibration(mine: IntArray) -> HeldOutCalibration | None:
            inside = np.isin(held_out, mine)
            rows = held_out[inside]
            return HeldOutCalibration.of(labels[rows], raw[inside], calibrated[inside], rows_weight[rows])

        heads = Parallel(n_jobs=self.n_jobs)(
            delayed(learn_domain)(
                name,
                labels[mine],
                None if unstable_X is None else _safe_indexing(unstable_X, mine),
                rows_weight[mine],
                len(self.classes_),
                choices,
                calibration(mine),
            )
            for name, mine in by_domain
        )
        rows = training_rows(
            np.exp(calibrated), labels, domain, held_out, unstable_X, weight=weight, head=self.unstable
        )
        self.training_, self.leaks_ = know_training(rows, calibrated, tuple(heads))
        choices = self._choices(self.settings)  # what balanced accuracy counts is known by now
        self.prediction_sets_ = self.pooled_ = self.components_ = None
        if along:
            left_out = held_out if len(by_domain) > 1 else held_out[:0]
            known = (left_out, domain, choices, self.training_.source_prior, self.random_state)
            played = play_components(self.stable_columns_, X, labels, calibrated, *known)
            self.components_ = played
            # Those of all training rows stand in until there are new ones.
            self.unstable_columns_ = Directions.of(self.stable_columns_, X, played.chosen, self.random_state)
        elif len(self.unstable_columns_):
            self.pooled_, record = learn_record(self, X, (stable_X, unstable_X), labels, domain, weight)
            self.training_ = replace(self.training_, record=record)
        return held_out, calibrated

    # -- embeddings ---------------------------------------------------------------------------------

    def _along_components(self) -> bool:
        return isinstance(self.unstable_features, str) and self.unstable_features == COMPONENTS

    def _facing(self, X: Any, sample_weight: Any) -> StableFeatureBoosting:
        """Return the model for the rows of a new domain: with components along theirs, or on their scale."""
        check_is_fitted(self)
        facing = copy(self)
        if self.domain_scale_ is not None:
            X = self._checked(X, reset=False)
            facing.domain_scale_ = self.domain_scale_.in_domain(X, check_weight(sample_weight, X.shape[0]))
        if self.components_ is None:
            return facing
        rows = used_rows(facing._check_input(X), sample_weight)
        n_directions = self.components_.chosen
        facing.unstable_columns_ = Directions.of(self.stable_columns_, rows, n_directions, self.random_state)
        return facing

    def _doubt(self) -> str | None:
        if (played := self.components_) is None:
            return super()._doubt()
        return None if played.helps else played.reason

    # -- what new rows are to the model -------------------------------------------------------------

    def answer_rows(self, X: Any, sample_weight: Any = None, parts: Parts | None = None) -> DomainData | None:
        """Rows as the candidates of answer="best" see them; None if that model has no pooled classifier."""
        X = self._check_input(X)
        if self.pooled_ is None:
            return None
        weight = check_weight(sample_weight, X.shape[0])
        return target_rows(self.pooled_, self, X, self._parts(X) if parts is None else parts, weight)

    def _choices(self, settings: Settings | None) -> Settings:
        """The settings with our head in them."""
        settings = Settings() if settings is None else settings
        if isinstance(settings, Settings):
            if settings.head is not None:
                raise ValueError("settings.head is for `sfboost.adapt`: name the head as `unstable`.")
            settings = clone(settings).set_params(head=self.unstable)
        return super()._choices(settings)

    def _stable_learner(self, X: Any) -> StableLearner:
        estimator = self.stable if self.regression_ is None else self.regression_
        if estimator is None:
            return StableLearner(default_classifier(X), self.classes_, thin=True)
        return StableLearner(estimator, self.classes_, thin=False)

    def _fit_temperature(
        self,
        raw: FloatArray,
        y: IntArray,
        domain: npt.NDArray[Any],
        weight: FloatArray,
        held_out: IntArray,
    ) -> Temperature:
        if self.calibration is None:
            return Temperature()
        by_domain = domain_numbers(domain[held_out])[1] if self.calibration_weights == "domain" else None
        return fit_temperature(
            raw,
            y[held_out],
            criterion=self.calibration,
            bias=self.calibration_bias,
            domain=by_domain,
            sample_weight=weight[held_out],
        )

    # -- before adaptation --------------------------------------------------------------------------

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Logarithm of `predict_proba`."""
        check_is_fitted(self)
        if self.pooled_ is None:
            return np.log(self.predict_stable_proba(X))
        X = self._check_input(X)
        tell_filled(self, X)
        require_numbers(self, self.stable_columns_.take(X), self.unstable_columns_.take(X))
        numbers = self.pooled_.numbers(X)
        if numbers is None:
            raise ValueError("These rows hold what is no finite number: impute or drop those cells first.")
        return self.pooled_.log_proba(*numbers)

    def predict_stable_proba(self, X: Any) -> FloatArray:
        """f_S: calibrated probabilities from the stable features alone, of shape (n, K)."""
        check_is_fitted(self)
        X = self._check_input(X)
        tell_filled(self, X, stable_only=True)
        return np.exp(self._calibrated(self.stable_columns_.take(X)))

    def _calibrated(self, stable_X: Any) -> FloatArray:
        return self.temperature_.apply(raw_log_proba(self.stable_, stable_X, self.classes_))

    def stable_and_unstable(self, X: Any) -> tuple[FloatArray, Any]:
        """Return calibrated log f_S of shape (n, K), and the unstable columns: what `sfboost.adapt` takes."""
        log_stable, _, unstable = self._read(X)
        return log_stable, unstable

    def _read(self, X: Any) -> Parts:
        check_is_fitted(self)
        X = self._check_input(X)
        tell_filled(self, X)
        return self._parts(X)

    def _parts(self, X: Any) -> Parts:
        """What is read of rows that are checked."""
        stable_X = self.stable_columns_.take(X)
        return self._calibrated(stable_X), stable_X, self.unstable_columns_.take(X)

    @property
    def domains_(self) -> tuple[DomainSummary, ...]:
        """What `fit` saw of each training domain."""
        return self.training_.heads

    @property
    def unstable_names_(self) -> tuple[str, ...]:
        """Names of the unstable features, as the head reads them."""
        return self.unstable_columns_.names

    def _tell_filled(self, X: Any) -> None:
        check_is_fitted(self)
        tell_filled(self, X)

    def _checked_parts(self, X: Any) -> Parts:
        check_is_fitted(self)
        X = self._check_input(X)
        if not len(self.unstable_columns_):
            raise ValueError(
                "There is nothing to adapt: every column is stable. Name stable_features or "
                "unstable_features before `fit`."
            )
        tell_filled(self, X)
        stable_X, unstable_X = self.stable_columns_.take(X), self.unstable_columns_.take(X)
        require_numbers(self, stable_X, unstable_X)
        return self._calibrated(stable_X), stable_X, unstable_X

    # -- what the training domains say --------------------------------------------------------------

    def diagnose(
        self, X: Any, y: Any, sample_domain: Any, X_new: Any = None, *, level: float = 0.05
    ) -> Diagnosis:
        """Check each assumption of Theorem 4.4 on labelled training rows and, if given, on a new domain.

        A clone of this model is fitted to the training rows; its held-out predictions are what is judged.
        The checks that look at feature values take numeric columns only.

        Parameters
        ----------
        X, y, sample_domain : as in `fit`
        X_new : array-like or DataFrame of shape (m, p), optional
            Unlabelled rows of the new domain.
        level : float
            Nominal false-alarm rate of each check.

        Returns
        -------
        Diagnosis
        """
        return diagnose_model(clone(self), X, y, sample_domain, X_new, level)

    def evaluate(
        self,
        X: Any,
        y: Any,
        sample_domain: Any,
        *,
        sample_weight: Any = None,
        answer: str = "best",
        metric: str | None = None,
    ) -> DomainEvaluation:
        """Leave each source domain out in turn, and score what `adapt` would have answered there.

        A clone of this model is fitted on the other domains and adapted to the one left out, its labels
        hidden; then the labels score it. This model itself need not be fitted, and is not.
        More than 20 domains are left out in 20 groups, each of them answered by itself; one with fewer than
        10 rows is "skipped".

        Parameters
        ----------
        X, y, sample_domain, sample_weight : as in `fit`
        answer : {"best", "safe"}, default="best"
            As in `adapt`.
        metric : {"accuracy", "balanced_accuracy", "log_loss", "brier", "auroc", "ece", "cost"}, optional
            Of answers, gain and regret; it chooses none. None is what the settings judge by.

        Returns
        -------
        DomainEvaluation
        """
        return evaluate_domains(self, X, y, sample_domain, sample_weight, answer, metric)

    def calibrate_sets(self, X: Any, y: Any, sample_domain: Any, *, answer: str = "best") -> Self:
        """Learn on source domains, each left out, how large the sets of `predict_set` must be.

        It takes a fit for each domain, or 20 where there are more, as `evaluate` does; call it after `fit`,
        and before `adapt`.

        Parameters
        ----------
        X, y, sample_domain : as in `fit`
        answer : {"best", "safe"}, default="best"
            As `adapt` will be asked for.
        """
        check_is_fitted(self)
        self.prediction_sets_ = calibrate_sets(self, X, y, sample_domain, answer=answer)
        return self

    # -- input --------------------------------------------------------------------------------------

    def _check_input(self, X: Any, *, domain: Any = None) -> Any:
        """What is read of rows: checked and, if so asked, standardised by the domain that they are of."""
        X = self._checked(X, reset=False)
        return X if self.domain_scale_ is None else self.domain_scale_.apply(X, domain)

    def _checked(self, X: Any, *, reset: bool) -> Any:
        """Arrays are validated; DataFrames stay what they are, so that pipelines find their columns."""
        refuse_twins(X)
        if hasattr(X, "iloc") or is_frame(X):
            if X.shape[0] == 0:
                raise ValueError("Found array with 0 sample(s): X is empty, pass at least one row.")
            if not reset and is_frame(X) and hasattr(self, "feature_names_in_"):
                require_columns(self, X)
                return X
            _check_feature_names(self, X, reset=reset)
            _check_n_features(self, X, reset=reset)
            return X
        if self.stable is None and self.unstable is None:
            with np.errstate(invalid="ignore"):  # scikit-learn sums up to see whether all is finite
                return validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=reset)
        return validate_data(self, X, accept_sparse="csr", dtype=None, ensure_all_finite=False, reset=reset)

    @property
    def encoder_(self) -> Encoder | None:
        """How columns of a frame become numbers; None if it was an array, or all is left to pipelines."""
        parts = (self.stable_columns_.encoder, self.unstable_columns_.encoder)
        known = [part for part in parts if part is not None]
        columns = dict.fromkeys(column for part in known for column in part.columns)
        gaps = dict.fromkeys(name for part in known for name in part.gaps)
        return Encoder(tuple(columns), tuple(gaps)) if columns else None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
