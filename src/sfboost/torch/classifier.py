"""`SFBClassifier`: learn Φ_S and Φ_U on labelled domains, adapt to a new one without labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, fields
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from sklearn.base import clone
from torch import nn

from sfboost.adaptation import Settings
from sfboost.boosting.estimator import StableFeatureBoosting
from sfboost.calibration import Temperature, fit_temperature
from sfboost.marginal.probabilities import FloatArray
from sfboost.notices import warn
from sfboost.torch.embedding import FEWEST, preference
from sfboost.torch.learning import Learner
from sfboost.torch.networks import make_network, views_by_name
from sfboost.torch.objective import NoPenalty, make_stability_penalty
from sfboost.torch.plan import Goal, Plan, trials
from sfboost.torch.predictor import FittedPredictor
from sfboost.torch.progress import TrainingProgress
from sfboost.torch.rows import Rows, Scaling, check_training, hold_out, make_source, read_rows
from sfboost.torch.saved import MODULES, restore_networks, saved_state, with_modules
from sfboost.torch.search import Search, SearchResult
from sfboost.torch.split_network import build_network, seed_of

# Fields of a plan that say nothing about training.
_NOT_TRAINING = ("budget", "verbose", "precision")


class SFBClassifier(FittedPredictor):
    """Stable Feature Boosting with learned features (Eq. 5.1), behind scikit-learn's methods.

    `fit` learns Φ_S, Φ_U, h_S and one h_U^e per training domain, then calibrates f_S = h_S∘Φ_S. Until
    `adapt` is called f_S is what predicts.

    Parameters
    ----------
    network : str or nn.Module
        A name from `sfboost.torch.networks.NETWORKS`, or a module that maps a batch to (n, width). A
        module is copied and trained from the weights it has. "auto" is "narrow" in a search, else "mlp".
    split : {"separate", "alternating", "shared"}
        "separate": a stable network first, then a narrow second network for Φ_U with f_S frozen.
        "alternating": the same, Φ_U without the independence penalty, then f_S again under both penalties.
        "shared": the paper's one network whose output is split.
    n_stable, n_unstable : int, "auto" or None
        Sizes of Φ_S and Φ_U. None is the whole trunk ("separate") or halves of it ("shared"). "auto" is
        None except for the Φ_U of "separate", which is narrow: 1 for two classes, else K.
    penalty, independence : str or nn.Module
        The stability and the independence penalty, see `sfboost.torch.objective`.
    penalty_weight, independence_weight : float
        λ_S and λ_C.
    views : list, optional
        What of a row f_S may see, for the search to choose from beside the whole row: names (see
        `sfboost.torch.networks.VIEWS`), functions or modules that map a batch to a batch. None is "grey" for
        pictures with more than one channel.
    plan : Plan
        Steps, rates, batches, restarts, held-out rows; its fields are parameters too, as ``plan__steps``.
        The default one, with the default `split`, `n_stable` and `n_unstable`, searches for what suits the
        rows (`sfboost.torch.search`). Any other is trained as it says, and so is ``Plan(budget=0)``.
    calibration : {"nll", "ece", None}
        How the temperature is chosen.
    transport : {"posterior", "likelihood"}, default="posterior"
        What transports: P(Y | Φ_S), the paper's stability, or P(Φ_S | Y), label shift.
    settings : Settings, default=None
        How `adapt` fits Φ_U. None is `Settings(correction="posthoc")`: on learned features, which leak, that
        does better than the likelihood (`docs/decisions/split.md`), which label shift needs all the same.
    device : str
        "cpu", "cuda" ...
    random_state : int, optional
        The seed; None draws another one at each fit.

    Attributes
    ----------
    classes_, domains_ : arrays
    network_ : SplitNetwork or Ensemble
    history_ : list of dict
        One entry per step: stage, step, total, stable, joint, penalty, independence.
    temperature_ : Temperature
    restarts_ : int
        How often the second stage was started again.
    row_shape_ : tuple of int
        Shape of one row of X.
    training_ : Training
        What adaptations need to know, from held-out rows: how much f_S beats the class balance, how far it is
        from the labels, the class shares, the leak, and a labelled head on Φ_U for each domain. Numbers only.
    search_ : list of dict or None
        What was tried, the chosen one first: the risk on held-out rows on which the first guess says nothing,
        and in domains left out. None without a search.
    scaling_ : Scaling or None
        How rows are brought to numbers that a named network learns from; None if they are such numbers.
    preference_ : Preference or None
        With a frozen network: accuracies in own domains left out, by the learned split and along components.
    embedded_ : StableFeatureBoosting or None
        Components, where they took the place of the learned split.
    verification_ : Verification
        Whether f_S is shown to be stable, on rows that it was not trained on.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> def draw(agreement, n=4000):
    ...     y = rng.integers(0, 2, n)
    ...     right = rng.random((n, 2)) < [0.75, agreement]
    ...     return np.where(right, y[:, None], 1 - y[:, None]) * 2.0 - 1.0, y
    >>> (X1, y1), (X2, y2), (X3, y3) = draw(0.95), draw(0.7), draw(0.1)
    >>> plan = Plan(learning_rate=0.01, steps=200, unstable_steps=100, batch_size=256,
    ...             validation_fraction=0.5)
    >>> model = SFBClassifier(network="small", plan=plan)
    >>> model = model.fit(np.r_[X1, X2], np.r_[y1, y2], sample_domain=np.repeat(["a", "b"], 4000))
    >>> adapted = model.adapt(X3)
    >>> bool(model.score(X3, y3) < 0.4), bool(adapted.score(X3, y3) > 0.85)
    (True, True)
    """

    def __init__(
        self,
        network: str | nn.Module = "auto",
        *,
        split: str = Goal.split,
        n_stable: int | str | None = "auto",
        n_unstable: int | str | None = "auto",
        penalty: str | nn.Module = Goal.penalty,
        penalty_weight: float = Goal.penalty_weight,
        independence: str | nn.Module = Goal.independence,
        independence_weight: float = Goal.independence_weight,
        views: Sequence[Any] | None = None,
        plan: Plan = Plan(),  # noqa: B008, it never changes
        calibration: str | None = "nll",
        transport: str = "posterior",
        settings: Settings | None = None,
        device: str = "cpu",
        random_state: int | None = 0,
    ) -> None:
        self.network = network
        self.split = split
        self.n_stable = n_stable
        self.n_unstable = n_unstable
        self.penalty = penalty
        self.penalty_weight = penalty_weight
        self.independence = independence
        self.independence_weight = independence_weight
        self.views = views
        self.plan = plan
        self.calibration = calibration
        self.transport = transport
        self.settings = settings
        self.device = device
        self.random_state = random_state

    def set_params(self, **params: Any) -> Self:
        """Set parameters; those of the plan are ``plan__steps`` and so on. The plan itself never changes."""
        told = {name: value for name, value in params.items() if name.startswith("plan__")}
        super().set_params(**{name: value for name, value in params.items() if name not in told})
        if told:
            self.plan = self.plan.changed(**{k.removeprefix("plan__"): v for k, v in told.items()})
        return self

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        sample_domain: Any = None,
        validation: Any = None,
        callback: Callable[[dict[str, Any]], object] | None = None,
    ) -> Self:
        """Learn the features and heads, then calibrate f_S.

        Parameters
        ----------
        X : array-like or tensor
            Rows of any shape that the network takes.
        y : array-like of shape (n,)
            Labels of any type.
        sample_domain : array-like of shape (n,)
            The domain of each row.
        validation : tuple (X, y, sample_domain), optional
            Labelled rows that are not trained on: for calibration, instead of `validation_fraction`.
        callback : callable, optional
            Called after every step with its line of the history: stage, step, and the parts of the loss.

        Returns
        -------
        self
        """
        if self.split not in ("separate", "alternating", "shared"):
            raise ValueError(f"split must be 'separate', 'alternating' or 'shared', got {self.split!r}.")
        if not isinstance(self.plan, Plan):
            raise TypeError(
                f"plan must be a sfboost.torch.Plan, got {type(self.plan).__name__}: pass Plan(steps=...)."
            )
        self.__dict__.pop("verification_", None)  # of a former fit
        self.embedded_ = self.preference_ = self.search_ = self.architecture_ = self.first_guess_ = None
        self._choices(self.settings)  # what is wrong in them is said before training
        rows = read_rows(X, y, sample_domain, self.dtype)
        seed = int(np.random.SeedSequence(self.random_state).generate_state(1)[0])
        searched = self._searches()
        training, held = (rows, None) if searched else hold_out(rows, self.plan.validation_fraction, seed)
        if validation is not None:
            X_held, y_held, domain_held = validation
            training, held = rows, read_rows(X_held, y_held, domain_held, self.dtype)
        penalised = not isinstance(make_stability_penalty(self.penalty), NoPenalty)
        check_training(training, penalised=penalised, batch_size=self.plan.batch_size)
        self.classes_, self.domains_ = np.unique(rows.y), np.unique(training.domain)
        if training.x.ndim == 2:
            self.n_features_in_ = int(training.x.shape[1])
        # A network of the user's knows in which numbers its rows come.
        self.scaling_ = None if isinstance(self.network, nn.Module) else Scaling.of(training.x)
        if searched:
            found = self._search(training, seed, callback)
            if held is None:
                labels, domain = training.y[found.rows], training.domain[found.rows]
                self._calibrate(found.logits, found.unstable, labels, domain)
                self.first_guess_ = found.guess
                return self
        else:
            self._learn(training, seed, callback)
        told = training if held is None else held
        _, unstable, logits = self._outputs(told.x)
        self._calibrate(logits, unstable, told.y, told.domain)
        if self.backbone_ is not None and self.plan.components:
            self._prefer(self._embedded_rows(rows.x), rows)
        return self

    def _prefer(self, features: FloatArray, rows: Rows) -> None:
        """Let components take the place of the learned split, if own domains clearly prefer them."""
        if len(np.unique(rows.domain)) < FEWEST:
            return
        along = StableFeatureBoosting(
            unstable_features="components",
            calibration=self.calibration,
            transport=self.transport,
            settings=self.settings,
        ).fit(features, rows.y, sample_domain=rows.domain)
        told = {"network": nn.Identity(), "plan__components": False, "plan__verbose": False}

        def learn(inside: npt.NDArray[np.intp]) -> SFBClassifier:
            model = clone(self).set_params(**told)
            return model.fit(features[inside], rows.y[inside], sample_domain=rows.domain[inside])

        shown_stable = self.verification_.stable
        self.preference_ = preference(features, rows.y, rows.domain, along, learn, shown_stable)
        if self.preference_ is not None and self.preference_.components_win:
            self.embedded_, self.training_ = along, along.training_

    def _searches(self) -> bool:
        """Whether settings are searched for: all that the search decides is left to it."""
        if not isinstance(self.plan.budget, int) or self.plan.budget < 0:
            raise ValueError(
                f"budget must be a number of candidates (0: no search), got {self.plan.budget!r}."
            )
        free = (self.split, self.n_stable, self.n_unstable) == (Goal.split, "auto", "auto")
        told = self.plan.changed(**{name: getattr(Plan(), name) for name in _NOT_TRAINING})
        searches = bool(self.plan.budget != 0 and told == Plan() and free)
        if not searches and self.plan.budget not in (0, Plan.budget):
            warn(
                f"Nothing is searched for, and budget={self.plan.budget!r} is not used: a split or a plan "
                "that says how to train is trained as it says. To search, leave split, n_stable, n_unstable "
                "and the rest of the plan at their defaults.",
                UserWarning,
            )
        return searches

    def _search(self, training: Rows, seed: int, callback: Any) -> SearchResult:
        """Search, and keep the network that was found."""
        device, dtype = torch.device(self.device), self.dtype
        self.backbone_, self.row_shape_ = None, training.shape()
        progress = TrainingProgress(0, "search", bar=self.plan.verbose)
        found = Search(
            self._scaled(training.x).to(device, dtype),
            np.searchsorted(self.classes_, training.y),
            np.searchsorted(self.domains_, training.domain),
            goal=self._goal(),
            network=self.network,
            views=views_by_name(self.views, self.row_shape_),
            seed=seed,
            budget=self.plan.budget,
            progress=progress,
            callback=callback,
        ).run()
        self.network_, self.history_, self.search_ = found.network, found.history, found.table
        self.restarts_ = 0
        self.architecture_ = {"members": len(found.network.members), "candidate": asdict(found.candidate)}
        return found

    def _goal(self) -> Goal:
        return Goal(**{field.name: getattr(self, field.name) for field in fields(Goal)})

    def _learn(self, training: Rows, seed: int, callback: Any) -> None:
        device, dtype = torch.device(self.device), self.dtype
        self.backbone_, self.row_shape_ = None, training.shape()
        make_trunk: Callable[[], nn.Module] = self._make_trunk
        if self.plan.freeze_trunk:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(seed_of(seed, 0))
                backbone = make_trunk()
            self.backbone_ = backbone.to(device, dtype).eval().requires_grad_(False)
            make_trunk = nn.Identity
        training = Rows(self._read_rows(training.x), training.y, training.domain)
        source = make_source(training, self.classes_, self.domains_, device, dtype)
        self.network_ = build_network(make_trunk, source.x[:2], seed=seed_of(seed, 0), **self._split_sizes())
        steps = sum(phase.steps for trial in trials(self._goal(), self.plan) for phase in trial.phases)
        with TrainingProgress(steps, "training", bar=self.plan.verbose) as progress:

            def told(line: dict[str, Any]) -> None:
                progress.step(line["stage"])
                if callback is not None:
                    callback(line)

            learner = Learner(
                self.network_,
                source,
                self._goal(),
                self.plan,
                seed=seed_of(seed, 2),
                callback=told,
            )
            learner.learn()
        self.history_, self.restarts_ = learner.history, learner.restarts

    def _split_sizes(self) -> dict[str, Any]:
        """What `build_network` needs to know beside the trunk."""
        return {
            "split": self.split,
            "n_classes": len(self.classes_),
            "n_domains": len(self.domains_),
            "n_stable": self.n_stable,
            "n_unstable": self.n_unstable,
        }

    def _make_trunk(self) -> nn.Module:
        network = "mlp" if isinstance(self.network, str) and self.network == "auto" else self.network
        return make_network(network, self.row_shape_, dropout=self.plan.dropout)

    def _saved_state(self) -> dict[str, Any]:
        return saved_state(self)

    def _with_own(self) -> AbstractContextManager[Any]:
        return with_modules(**{name: getattr(self, name) for name in (*MODULES, "views")})

    @classmethod
    def _from_saved_state(cls, state: dict[str, Any]) -> Self:
        model = cls()
        model.__dict__.update(state)
        restore_networks(model)
        return model

    def _calibrate(
        self, logits: FloatArray, unstable: FloatArray, labels: npt.NDArray[Any], domain: npt.NDArray[Any]
    ) -> None:
        """Learn how sure f_S may be, and what adaptations need to know, from held-out rows."""
        y = np.searchsorted(self.classes_, labels)
        self.temperature_ = Temperature()
        if self.calibration is not None:
            self.temperature_ = fit_temperature(
                logits, y, criterion=self.calibration, noise=self.search_ is not None, domain=domain
            )
        log_proba = self.temperature_.apply(logits)
        self.validation_ = (np.exp(log_proba), unstable, labels, domain)
        self.training_ = self._learn_training(log_proba)
