"""What is minimised (`Goal`), how (`Plan`), and the stages that follow (`trials`).

The paper splits the output of one network (``split="shared"``) and notes that Φ_S and Φ_U could be learned
apart. ``split="separate"`` does that: f_S by risk and stability penalty alone; then, with f_S frozen, a
narrow Φ_U that is trained briefly on the joint risk. ``split="alternating"`` minimises Eq. 5.1 in turns: the
same two stages, Φ_U without the independence penalty, and then f_S again under all penalties with Φ_U frozen,
so that it is f_S that becomes independent (`docs/decisions` has the measurements behind this).

All are values: frozen, equal if their fields are, shared without harm.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, Self

from torch import Tensor, nn

from sfboost.torch.objective import NetworkObjective, NoPenalty


@dataclass(frozen=True, kw_only=True)
class Goal:
    """Which parts are learned and under which penalties; the fields are those of `SFBClassifier`.

    Examples
    --------
    >>> Goal(penalty="vrex").penalty_weight
    10.0
    """

    split: str = "separate"
    penalty: str | nn.Module = "irm"
    penalty_weight: float = 10.0
    independence: str | nn.Module = "proxy"
    independence_weight: float = 1.0


@dataclass(frozen=True, kw_only=True, repr=False)
class Plan:
    """How `SFBClassifier` trains: steps, rates, batches, restarts, what is held out.

    A plan never changes; `set_params(plan__steps=...)` and a grid search over ``plan__steps`` give the
    classifier a new one.

    Parameters
    ----------
    steps, pretrain_steps : int
        Steps with penalties, and steps without them before; each stage begins with a fresh Adam.
    learning_rate, weight_decay : float
        Adam's rate, and what is added of the weights to their gradient.
    cosine : bool
        Let the rate of the penalised stage fall along a cosine.
    batch_size : int, optional
        Rows per domain and step; None for all.
    dropout : float
        Of the named networks.
    unstable_steps, unstable_learning_rate : int, float
        Of the second stage of "separate". Short on purpose: what is learned early is what is easy.
    balance : bool
        With "separate": draw the rows of the stable stage so that the label is independent of a first
        guess Û (the class that Φ_U, trained briefly, finds most likely) within each domain.
    max_restarts, min_gain : int, float
        A stage is started again while it does not lower the risk by this share.
    rescale : bool
        Divide the loss by the penalty's weight where that is above 1.
    freeze_trunk : bool
        Do not train the network; run it once and train on its cached output.
    components : bool
        With a frozen network and three domains or more: whether components of what it makes of the rows
        (`StableFeatureBoosting(unstable_features="components")`) may take the place of the learned split.
        They do where own domains, each left out, clearly prefer them; if f_S is shown to be stable, every
        one of them must.
    validation_fraction : float
        Share of rows held out of training to calibrate f_S; 0 calibrates on the training rows.
    budget : int
        Candidates that the search tries at most, where nothing else of the plan is told. 0: no search.
    precision : {"float32", "float64"}
        Type of the numbers.
    verbose : bool
        Whether to draw a bar with the time left, on the error output if that is a terminal or (with
        ipywidgets) a notebook.

    Examples
    --------
    >>> Plan(steps=200, batch_size=256)
    Plan(steps=200, batch_size=256)
    >>> Plan(steps=400) == Plan()
    True
    """

    steps: int = 400
    pretrain_steps: int = 0
    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    cosine: bool = False
    batch_size: int | None = None
    dropout: float = 0.0
    unstable_steps: int = 200
    unstable_learning_rate: float | None = None
    balance: bool = True
    max_restarts: int = 4
    min_gain: float = 0.02
    rescale: bool = True
    freeze_trunk: bool = False
    components: bool = True
    validation_fraction: float = 0.1
    budget: int = 8
    precision: str = "float32"
    verbose: bool = True

    def __repr__(self) -> str:
        """What differs from the default."""
        told = [(f.name, getattr(self, f.name)) for f in fields(self) if getattr(self, f.name) != f.default]
        return f"Plan({', '.join(f'{name}={value!r}' for name, value in told)})"

    @property
    def unstable_rate(self) -> float:
        """The learning rate of Φ_U."""
        return self.unstable_learning_rate or self.learning_rate

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the fields by name, as scikit-learn asks for them."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def changed(self, **values: Any) -> Plan:
        """Return a plan that differs in these fields.

        Examples
        --------
        >>> Plan(steps=10).changed(dropout=0.2)
        Plan(steps=10, dropout=0.2)
        """
        unknown = sorted(set(values) - set(self.get_params()))
        if unknown:
            raise ValueError(f"A Plan has no {', '.join(unknown)}. It has: {', '.join(self.get_params())}.")
        return replace(self, **values)

    def __sklearn_clone__(self) -> Self:
        return self


@dataclass(frozen=True, kw_only=True)
class Phase:
    """Steps with one optimiser.

    Attributes
    ----------
    name : str
        For the history.
    risks : {"both", "stable", "joint", "guess"}
        What is lowered; "guess" is the risk of Φ_U alone.
    trained : {"all", "stable", "unstable"}
        Whose weights change.
    steps, learning_rate, weight_decay, cosine
        As in `sfboost.torch.trainer.Stage`.
    penalised : bool
        Whether penalties count.
    free : bool
        Whether the independence penalty is only looked at.
    detached : bool
        Whether the joint risk leaves f_S alone.
    """

    name: str
    risks: str
    trained: str
    steps: int
    learning_rate: float
    weight_decay: float = 0.0
    cosine: bool = False
    penalised: bool = True
    free: bool = False
    detached: bool = False

    def weights(self, goal: Goal) -> tuple[float, float]:
        """Return λ_S and λ_C."""
        if not self.penalised:
            return 1.0, 0.0
        return goal.penalty_weight, 0.0 if self.free else goal.independence_weight

    def objective(
        self,
        plan: Plan,
        log_prior: Tensor,
        weights: tuple[float | Tensor, float | Tensor],
        penalty: nn.Module,
        independence: nn.Module,
    ) -> NetworkObjective:
        """Return the loss of the outputs of all domains."""
        if not self.penalised:
            penalty = independence = NoPenalty()
        return NetworkObjective(
            log_prior,
            penalty,
            independence,
            *weights,
            risks="stable" if self.risks == "guess" else self.risks,
            detach_stable=self.detached,
            rescale=plan.rescale,
        )


@dataclass(frozen=True, kw_only=True)
class Trial:
    """Phases that are one attempt.

    Attributes
    ----------
    name : str
    phases : tuple of Phase
    lowers : {"stable", "joint", None}
        The risk that must fall, else the trained weights are drawn anew for another attempt; None for one
        attempt.
    watched : bool
        Whether rows that are not trained on may end a phase.
    """

    name: str
    phases: tuple[Phase, ...]
    lowers: str | None = None
    watched: bool = True


def trials(goal: Goal, plan: Plan) -> list[Trial]:
    """Return all of training, in order.

    Examples
    --------
    >>> [trial.name for trial in trials(Goal(split="alternating"), Plan())]
    ['guess', 'stable', 'unstable', 'again']
    """
    if goal.split == "shared":
        return [Trial(name="shared", phases=_two(plan, "joint", "both", "all"))]
    stable = _two(plan, "stable", "stable", "stable")
    made = [Trial(name="stable", phases=stable, lowers="stable")]
    if plan.unstable_steps:
        made.append(unstable_trial(goal, plan))
        if plan.balance:
            made.insert(0, _narrow(plan, "guess", "guess", "stable", penalised=False))
    if goal.split == "alternating":
        made.append(Trial(name="again", phases=(_phase(plan, "again", "both", "stable", detached=True),)))
    return made


def unstable_trial(goal: Goal, plan: Plan) -> Trial:
    """Return the training of Φ_U beside an f_S that is trained already."""
    return _narrow(plan, "unstable", "joint", "joint", free=goal.split == "alternating")


def _two(plan: Plan, name: str, risks: str, trained: str) -> tuple[Phase, ...]:
    """First without, then with penalties."""
    last = _phase(plan, name, risks, trained)
    if not plan.pretrain_steps:
        return (last,)
    first = replace(last, name="pretrain", steps=plan.pretrain_steps, cosine=False, penalised=False)
    return (first, last)


def _phase(plan: Plan, name: str, risks: str, trained: str, **more: Any) -> Phase:
    told = {"steps": plan.steps, "learning_rate": plan.learning_rate, "cosine": plan.cosine} | more
    return Phase(name=name, risks=risks, trained=trained, weight_decay=plan.weight_decay, **told)


def _narrow(plan: Plan, name: str, risks: str, lowers: str, **more: Any) -> Trial:
    """Φ_U, briefly."""
    briefly = {"steps": plan.unstable_steps, "learning_rate": plan.unstable_rate, "cosine": False}
    phase = _phase(plan, name, risks, "unstable", **briefly, **more)
    return Trial(name=name, phases=(phase,), lowers=lowers, watched=False)
