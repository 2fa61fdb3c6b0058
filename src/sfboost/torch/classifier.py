"""`SFBClassifier`: learn Φ_S and Φ_U on labelled domains, adapt to a new one without labels."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from sklearn.base import clone
from torch import nn

from sfboost.adaptation import Settings
from sfboost.boosting.domains import stable_evidence
from sfboost.calibration import Temperature, fit_temperature
from sfboost.diagnostics import TrainingRows, training_leaks
from sfboost.leakage.model import LeakModel, flattening_gain
from sfboost.leakage.stress import stress_domains, stress_test, unstable_guess
from sfboost.marginal.probabilities import FloatArray
from sfboost.notices import warn
from sfboost.torch.bounded import Bounded
from sfboost.torch.embedding import Preference, embedded, preference
from sfboost.torch.leak_slope import find_leak_slope, without_leak
from sfboost.torch.learning import Learner, trials
from sfboost.torch.networks import GivenTrunk, make_network
from sfboost.torch.objective import NoPenalty, cross_entropy, make_stability_penalty
from sfboost.torch.plan import Goal, Plan
from sfboost.torch.predictor import FittedPredictor
from sfboost.torch.progress import TrainingProgress, shown_log
from sfboost.torch.rows import Rows, Scaling, check_training, fingerprint, hold_out, make_source, read_rows
from sfboost.torch.saved import MODULES, restore_networks, saved_state, with_modules
from sfboost.torch.search import Candidate, Search, SearchResult, member_network
from sfboost.torch.split_network import build_network, seed_of
from sfboost.torch.verification import verify
from sfboost.torch.views import views_by_name

# Held-out rows of each class in each domain: with fewer the leak is measured worse than it is harmful.
_ENOUGH_TO_FLATTEN = 200
# Nats. A Φ_U that carries the stable part takes it out of f_S: the loss is then many times this.
_WORST_COST = 0.01
# What does not change the result: a checkpoint may be continued with other values of these.
_NOT_IDENTITY = (
    "plan",
    "plan__budget",
    "plan__checkpoint",
    "plan__checkpoint_every",
    "plan__components",
    "plan__verbose",
    "device",
    "transport",
    "settings",
)
# Fields of a plan that say nothing about training.
_NOT_TRAINING = ("budget", "checkpoint", "checkpoint_every", "verbose", "precision")


class SFBClassifier(FittedPredictor):
    """Stable Feature Boosting with learned features (Eq. 5.1), behind scikit-learn's methods.

    `fit` learns Φ_S, Φ_U, h_S and one h_U^e per training domain, then calibrates f_S = h_S∘Φ_S. Until
    `adapt` is called f_S is what predicts.

    Parameters
    ----------
    network : str or nn.Module
        A name from `sfboost.torch.networks.NETWORKS`, or a module that maps a batch to (n, width). A
        module is copied and trained from the weights it has. "auto" is searched for; without a search it
        is "mlp".
    split : {"separate", "alternating", "shared"}
        "separate": a stable network first, then a narrow second network for Φ_U with f_S frozen.
        "alternating": the same, Φ_U without the independence penalty, then f_S again under both penalties.
        "shared": the paper's one network whose output is split.
    n_stable, n_unstable : int, "auto" or None
        Sizes of Φ_S and Φ_U. None is the whole trunk ("separate") or halves of it ("shared"). "auto" is
        None except for the Φ_U of "separate", which is narrow: 1 for two classes, else K.
    penalty, independence : str or nn.Module
        The stability and the independence penalty, see `sfboost.torch.objective` and
        `sfboost.torch.independence`.
    penalty_weight, independence_weight : float
        λ_S and λ_C.
    plan : Plan
        Steps, rates, batches, restarts, held-out rows; its fields are parameters too, as ``plan__steps``.
        The default one, with the default `split`, `n_stable` and `n_unstable`, searches for what suits the
        rows (`sfboost.torch.search`). Any other is trained as it says, and so is ``Plan(budget=0)``.
    calibration : {"nll", "ece", None}
        How the temperature is chosen.
    flatten : bool or "auto"
        Take what f_S still says about Φ_U out of it, as measured on the held-out rows (see
        `sfboost.leakage.model.LeakModel.flatten`). "auto" does so with "separate" where two or more
        domains hold out 200 rows of every class and agree about the leak, unless it costs more than 0.01
        nats of log loss on stress domains. After a search each class must have so many wherever Φ_U points,
        and what rises linearly with what Φ_U says (`leak_slope_`) is taken out however few the rows. False
        is the paper.
    transport : {"posterior", "likelihood"}, default="posterior"
        What transports: P(Y | Φ_S), the paper's stability, or P(Φ_S | Y), label shift.
    settings : Settings, default=None
        How `adapt` fits Φ_U. None is `Settings(correction=model.correction_)`: on learned features, which
        leak, that does better than the likelihood (`docs/decisions/split.md`), which label shift needs all
        the same.
    device : str
        "cpu", "cuda" ...
    random_state : int, optional
        The seed; None draws another one at each fit.

    Attributes
    ----------
    classes_, domains_ : arrays
    network_ : SplitNetwork
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
        What was tried, the best first: risk on held-out rows on which the first guess says nothing, accuracy
        where that guess is right and where it is wrong. None without a search.
    correction_ : {"posthoc", "likelihood"}
        How `adapt` corrects: as was better on stress domains; without a search post hoc, as the paper.
    scaling_ : Scaling or None
        How rows are brought to numbers that a named network learns from; None if they are such numbers.
    bounded_ : Bounded or None
        How Φ_U is kept from saying more than which class it points to; None without a search.
    leak_slope_ : float
        How much of what Φ_U says was taken out of the stable logits; zero without a search.
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
    >>> def draw(agreement, n=1000):
    ...     y = rng.integers(0, 2, n)
    ...     right = rng.random((n, 2)) < [0.75, agreement]
    ...     return np.where(right, y[:, None], 1 - y[:, None]) * 2.0 - 1.0, y
    >>> (X1, y1), (X2, y2), (X3, y3) = draw(0.95), draw(0.7), draw(0.1)
    >>> plan = Plan(learning_rate=0.01, steps=200, unstable_steps=100, batch_size=256)
    >>> model = SFBClassifier(network="small", plan=plan)
    >>> model = model.fit(np.r_[X1, X2], np.r_[y1, y2], sample_domain=np.repeat(["a", "b"], 1000))
    >>> adapted = model.adapt(X3, answer="paper")  # the safe answer may keep f_S
    >>> bool(model.score(X3, y3) > 0.7), bool(adapted.score(X3, y3) > 0.85)
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
        flatten: bool | str = "auto",
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
        self.flatten = flatten
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
        X : array-like, tensor or Dataset
            Rows of any shape that the network takes; or a ``torch.utils.data.Dataset`` of
            (x, y, domain), which is read in minibatches and never as a whole.
        y : array-like of shape (n,)
            Labels of any type.
        sample_domain : array-like of shape (n,)
            The domain of each row.
        validation : tuple (X, y, sample_domain), optional
            Labelled rows that are not trained on: for calibration, leak correction and stress domains,
            instead of `validation_fraction`.
        callback : callable, optional
            Called after every step with its line of the history: stage, step, and the parts of the loss.

        Returns
        -------
        self
        """
        with shown_log(self.plan.lines if isinstance(self.plan, Plan) else 0):
            self._fit(X, y, sample_domain, validation, callback)
        return self

    def _fit(
        self,
        X: Any,
        y: Any,
        sample_domain: Any,
        validation: Any,
        callback: Callable[[dict[str, Any]], object] | None,
    ) -> None:
        if self.split not in ("separate", "alternating", "shared"):
            raise ValueError(f"split must be 'separate', 'alternating' or 'shared', got {self.split!r}.")
        if not isinstance(self.plan, Plan):
            raise TypeError(
                f"plan must be a sfboost.torch.Plan, got {type(self.plan).__name__}: pass Plan(steps=...)."
            )
        if not isinstance(self.flatten, bool) and self.flatten != "auto":
            raise ValueError(f"flatten must be True, False or 'auto', got {self.flatten!r}.")
        self.embedded_ = None
        self.__dict__.pop("verification_", None)  # of a former fit
        self._choices(self.settings)  # what is wrong in them is said before training
        rows = read_rows(X, y, sample_domain, self.dtype)
        seed = int(np.random.SeedSequence(self.random_state).generate_state(1)[0])
        searched = self._searches(rows)
        if searched and validation is None:
            training, held, watched = rows, None, None
        else:
            training, held, watched = self._divide(rows, validation, seed)
        penalised = not isinstance(make_stability_penalty(self.penalty), NoPenalty)
        check_training(training, penalised=penalised, batch_size=self.plan.batch_size)
        self.classes_, self.domains_ = np.unique(rows.y), np.unique(training.domain)
        if not training.lazy and training.x.ndim == 2:
            self.n_features_in_ = int(training.x.shape[1])
        identity = fingerprint(rows, self._identity(seed))
        # A network of the user's knows in which numbers its rows come.
        own = isinstance(self.network, nn.Module) or training.lazy
        self.scaling_ = None if own else Scaling.of(training.x)
        self.search_: list[dict[str, Any]] | None = None
        self.architecture_: dict[str, Any] | None = None
        self.first_guess_ = self.bounded_ = None
        self.preference_: Preference | None = None
        if searched:
            found = self._search(training, seed, identity, callback)
            if held is None:
                labels, domain = training.y[found.rows], training.domain[found.rows]
                self._calibrate(found.logits, found.unstable, labels, domain, float(found.network.stretch))
                self.first_guess_ = found.guess
                return
        else:
            self._learn(training, watched, seed, identity, callback)
        parts = [part for part in (held, watched) if part is not None] or [training]
        said = [self._outputs(part.x) for part in parts]
        self._calibrate(
            np.concatenate([logits for _, _, logits in said]),
            np.concatenate([unstable for _, unstable, _ in said]),
            np.concatenate([part.y for part in parts]),
            np.concatenate([part.domain for part in parts]),
        )
        if self.backbone_ is not None and self.plan.components:
            self._prefer(self._embedded_rows(rows.x), rows)

    def _prefer(self, features: FloatArray, rows: Rows) -> None:
        """Let components take the place of the learned split, if own domains clearly prefer them."""
        shared: dict[str, Any] = {"transport": self.transport, "settings": self.settings}
        along = embedded(features, rows.y, rows.domain, calibration=self.calibration, **shared)
        if along is None:
            return
        alone = clone(self).set_params(
            network=nn.Identity(),
            plan__components=False,
            plan__checkpoint=None,
            plan__validation_domain=None,
            plan__verbose=0,
        )

        def learn(inside: npt.NDArray[np.intp]) -> SFBClassifier:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # what is tried on the way is no one's answer
                return clone(alone).fit(features[inside], rows.y[inside], sample_domain=rows.domain[inside])

        shown_stable = self.verification_.stable
        self.preference_ = preference(features, rows.y, rows.domain, along, learn, shown_stable)
        if self.preference_ is not None and self.preference_.components_win:
            self.embedded_, self.training_ = along, along.training_

    def _searches(self, rows: Rows) -> bool:
        """Whether settings are searched for: all that the search decides is left to it."""
        free = (self.split, self.n_stable, self.n_unstable) == (Goal.split, "auto", "auto")
        told = self.plan.changed(**{name: getattr(Plan(), name) for name in _NOT_TRAINING})
        searches = bool(self.plan.budget != 0 and told == Plan() and free and not rows.lazy)
        if not searches and self.plan.budget not in (0, Plan.budget):
            warn(
                f"Nothing is searched for, and budget={self.plan.budget!r} is not used: a split or a plan "
                "that says how to train is trained as it says, and so are rows of a Dataset. To search, "
                "leave split, n_stable, n_unstable and the rest of the plan at their defaults.",
                UserWarning,
            )
        return searches

    def _search(self, training: Rows, seed: int, identity: str, callback: Any) -> SearchResult:
        """Search, and keep the network that was found."""
        device, dtype = torch.device(self.device), self.dtype
        self.backbone_, self.row_shape_ = None, training.shape()
        progress = TrainingProgress(
            0, "search", bar=self.plan.verbose == "auto", lines=self.plan.lines > 0
        )
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
            options={"fingerprint": identity, "callback": callback},
            checkpoint=None if self.plan.checkpoint is None else Path(self.plan.checkpoint),
        ).run()
        self.network_, self.history_, self.search_ = found.network, found.history, found.table
        self.restarts_ = 0
        self.architecture_ = {"members": len(found.network.members), "candidate": asdict(found.candidate)}
        return found

    def _goal(self) -> Goal:
        return Goal(**{field.name: getattr(self, field.name) for field in fields(Goal)})

    def _divide(self, rows: Rows, validation: Any, seed: int) -> tuple[Rows, Rows | None, Rows | None]:
        """Rows to train on, rows held out, rows of the early-stopping domain."""
        watched = None
        if False:
            here = rows.domain == self.plan.validation_domain
            if not here.any():
                raise ValueError(
                    f"validation_domain={self.plan.validation_domain!r} has no rows; the domains are "
                    f"{np.unique(rows.domain).tolist()}."
                )
            watched, rows = rows.take(np.flatnonzero(here)), rows.take(np.flatnonzero(~here))
        if validation is not None:
            X, y, domain = validation
            return rows, read_rows(X, y, domain, self.dtype), watched
        kept, held = hold_out(rows, self.plan.validation_fraction, seed)
        return kept, held, watched

    def _identity(self, seed: int) -> dict[str, Any]:
        """Everything that decides the result, for the fingerprint of checkpoints."""
        named = self.get_params().items()
        own = {k: v for k, v in named if k not in _NOT_IDENTITY and not k.startswith("settings__")}
        return {**own, "seed": seed, "torch": torch.__version__}

    def _learn(self, training: Rows, watched: Rows | None, seed: int, identity: str, callback: Any) -> None:
        device, dtype = torch.device(self.device), self.dtype
        self.backbone_ = None
        self.row_shape_ = training.shape()
        make_trunk = self._trunk_maker(self.row_shape_)
        if self.plan.freeze_trunk:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(seed_of(seed, 0))
                backbone = make_trunk()
            self.backbone_ = backbone.to(device, dtype).eval().requires_grad_(False)
            training = Rows(self._through_backbone(training.x), training.y, training.domain)
            make_trunk = nn.Identity
        elif not training.lazy:
            training = Rows(self._scaled(training.x), training.y, training.domain)
        source = make_source(training, self.classes_, self.domains_, device, dtype)
        probe = source.batch(self.plan.batch_size and max(self.plan.batch_size, 2), 0, 0).x[:2]
        self.network_ = build_network(
            make_trunk,
            probe,
            seed=seed_of(seed, 0),
            **self._split_sizes(),
        )
        steps = sum(phase.steps for trial in trials(self._goal(), self.plan) for phase in trial.phases)
        with TrainingProgress(steps, "training", bar=self.plan.verbose == "auto") as progress:

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
                monitor=None if watched is None else self._monitor(watched),
                trainer_options={
                    "fingerprint": identity,
                    "callback": told,
                },
            )
            learner.learn()
        self.history_, self.restarts_ = learner.history, learner.restarts

    def _split_sizes(self) -> dict[str, Any]:
        """What `build_network` needs to know beside the trunk."""
        return {
            "split": self.split,
            "n_classes": len(self.classes_),
            "n_domains": len(self.domains_),
            "n_stable": None if self.n_stable == "auto" else self.n_stable,
            "n_unstable": self._unstable_width(),
        }

    def _unstable_width(self) -> int | None:
        if self.n_unstable != "auto":
            return self.n_unstable  # type: ignore[return-value]
        n_classes = len(self.classes_)
        return None if self.split == "shared" else (1 if n_classes == 2 else n_classes)

    def _trunk_maker(self, shape: tuple[int, ...]) -> Callable[[], nn.Module]:
        network = "mlp" if isinstance(self.network, str) and self.network == "auto" else self.network
        if isinstance(network, nn.Module):
            return lambda: GivenTrunk(network)
        return lambda: make_network(network, shape, dropout=self.plan.dropout)

    def _saved_state(self) -> dict[str, Any]:
        return saved_state(self)

    def _with_own(self) -> AbstractContextManager[Any]:
        return with_modules(**{name: getattr(self, name) for name in MODULES})

    @classmethod
    def _from_saved_state(cls, state: dict[str, Any]) -> Self:
        model = cls()
        model.__dict__.update(state)
        restore_networks(model)
        return model

    def _monitor(self, watched: Rows) -> Callable[[], float]:
        target = np.eye(len(self.classes_))[np.searchsorted(self.classes_, watched.y)]

        def risk() -> float:
            logits = torch.from_numpy(self._outputs(watched.x)[2])
            return float(cross_entropy(logits, torch.from_numpy(target)))

        return risk

    def _calibrate(
        self,
        logits: FloatArray,
        unstable: FloatArray,
        labels: npt.NDArray[Any],
        domain: npt.NDArray[Any],
        stretch: float = 1.0,
    ) -> None:
        """Learn from held-out rows, of which networks like ours spoke; ours is `stretch` times as sure."""
        y = np.searchsorted(self.classes_, labels)
        if self.search_ is not None:
            self.bounded_ = Bounded.of(unstable, np.bincount(y, minlength=len(self.classes_)) / len(y), y)
            unstable = self.bounded_.apply(unstable)
        self.leak_slope_, self.as_learned_, learned = 0.0, None, logits
        if self.search_ is not None and self.flatten == "auto":
            slope = find_leak_slope(logits, unstable, y, domain)
            logits = without_leak(logits, unstable, slope)
            self.leak_slope_ = slope * stretch  # all members read the same, which their mean keeps
        self.temperature_ = Temperature()
        if self.calibration is not None:
            self.temperature_ = fit_temperature(
                logits, y, criterion=self.calibration, noise=self.search_ is not None, domain=domain
            )
        log_proba = self.temperature_.apply(logits)
        if self.leak_slope_:
            self.as_learned_ = np.exp(self.temperature_.apply(learned))
        # Kept for leak correction and stress domains: scores, Φ_U, labels and domains of held-out rows.
        self.validation_ = (np.exp(log_proba), unstable, labels, domain)
        self.leak_model_ = self._flattening(y, domain)
        self.training_ = self._learn_training(stable_evidence(y, log_proba, np.ones(len(y))))

    def _flattening(self, y: npt.NDArray[np.intp], domain: npt.NDArray[Any]) -> LeakModel | None:
        if isinstance(self.flatten, bool):
            return self.leak_model() if self.flatten else None
        names = np.unique(domain)
        fewest = min(np.bincount(y[domain == name], minlength=len(self.classes_)).min() for name in names)
        if self.split == "shared" or len(names) < 2 or fewest < _ENOUGH_TO_FLATTEN:
            return None
        proba, unstable = self.validation_[:2]
        if self.search_ is not None and not (self._leaks(y, domain) and self._fills_cells(y, domain)):
            return None  # what would be taken out is the noise of its measurement
        try:
            model = self.leak_model()
            if self.search_ is not None:
                gain = flattening_gain(proba, unstable, y, domain, model.n_cells)
                return model if gain > 0 and verify(proba, unstable, y, domain).stable else None
            return None if self._stress_cost(model, y) > _WORST_COST else model
        except ValueError:  # the domains disagree, or a cell of Φ_U is almost empty
            return None

    def _fills_cells(self, y: npt.NDArray[np.intp], domain: npt.NDArray[Any]) -> bool:
        """Whether each class has enough held-out rows wherever Φ_U points."""
        guess = unstable_guess(self.validation_[1], y, domain)
        cells = np.ravel_multi_index((y, guess), (len(self.classes_),) * 2)
        return bool(np.bincount(cells, minlength=len(self.classes_) ** 2).min() >= _ENOUGH_TO_FLATTEN)

    def _leaks(self, y: npt.NDArray[np.intp], domain: npt.NDArray[Any]) -> bool:
        """Whether some domain shows, beyond sampling error, that f_S says something about Φ_U."""
        proba, unstable, _, _ = self.validation_
        leaks = training_leaks(TrainingRows(proba, y, domain.astype(object), unstable))
        return any(leak.lower > 0.0 for leak in leaks)

    def _stress_cost(self, model: LeakModel, y: npt.NDArray[np.intp]) -> float:
        """Nats of log loss a row that flattening costs on stress domains of the held-out rows."""
        proba, unstable, _, domain = self.validation_
        domains = stress_domains(y, unstable_guess(unstable, y, domain))
        candidates = {"as it is": lambda p, X: p, "flattened": model.flatten}
        before, after = stress_test(candidates, proba, unstable, y, domains).log_loss.mean(axis=1)
        return float(after - before)
