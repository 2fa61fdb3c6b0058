"""The stages of training, as data.

The paper splits the output of one network (``split="shared"``) and notes that Φ_S and Φ_U could be learned
apart. ``split="separate"`` does that: f_S by risk and stability penalty alone; then, with f_S frozen, a
narrow Φ_U that is trained briefly on the joint risk. ``split="alternating"`` minimises Eq. 5.1 in turns: the
same two stages, Φ_U without the independence penalty, and then f_S again under all penalties with Φ_U frozen,
so that it is f_S that becomes independent (`docs/decisions` has the measurements behind this).

One network (`learning`) and many at once (in the laboratory) go through the same list.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from sfboost.torch.objective import NetworkObjective
from sfboost.torch.penalties import NoPenalty
from sfboost.torch.plan import Goal, Plan


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
        nothing = NoPenalty()
        return NetworkObjective(
            log_prior,
            penalty if self.penalised else nothing,
            independence if self.penalised else nothing,
            *weights,
            risks="stable" if self.risks == "guess" else self.risks,
            gamma=plan.gamma if self.risks == "both" else None,
            detach_stable=plan.detach_stable or self.detached,
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
        The risk that must fall, else the attempt is made again; None for one attempt.
    anew : {"stable", "unstable"}
        Whose weights are then drawn anew.
    watched : bool
        Whether the early-stopping domain may end a phase.
    """

    name: str
    phases: tuple[Phase, ...]
    lowers: str | None = None
    anew: str = ""
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
    made = [
        Trial(name="stable", phases=_two(plan, "stable", "stable", "stable"), lowers="stable", anew="stable")
    ]
    if plan.unstable_steps:
        made.append(unstable_trial(goal, plan))
        if plan.balance:
            made.insert(0, _narrow(plan, "guess", "guess", "stable", penalised=False))
    if goal.split == "alternating":
        again = _penalised(plan, "again", "both", "stable", detached=True)
        made.append(Trial(name="again", phases=(again,)))
    return made


def unstable_trial(goal: Goal, plan: Plan) -> Trial:
    """Return the training of Φ_U beside an f_S that is trained already."""
    return _narrow(plan, "unstable", "joint", "joint", free=goal.split == "alternating")


def _two(plan: Plan, name: str, risks: str, trained: str) -> tuple[Phase, ...]:
    """First without, then with penalties."""
    last = _penalised(plan, name, risks, trained)
    if not plan.pretrain_steps:
        return (last,)
    first = Phase(
        name="pretrain",
        risks=risks,
        trained=trained,
        steps=plan.pretrain_steps,
        learning_rate=plan.learning_rate,
        weight_decay=plan.weight_decay,
        penalised=False,
    )
    return (first, last)


def _penalised(plan: Plan, name: str, risks: str, trained: str, *, detached: bool = False) -> Phase:
    return Phase(
        name=name,
        risks=risks,
        trained=trained,
        steps=plan.steps,
        learning_rate=plan.learning_rate,
        weight_decay=plan.weight_decay,
        cosine=plan.cosine,
        detached=detached,
    )


def _narrow(
    plan: Plan, name: str, risks: str, lowers: str, *, penalised: bool = True, free: bool = False
) -> Trial:
    """Φ_U, briefly."""
    phase = Phase(
        name=name,
        risks=risks,
        trained="unstable",
        steps=plan.unstable_steps,
        learning_rate=plan.unstable_rate,
        weight_decay=plan.weight_decay,
        penalised=penalised,
        free=free,
    )
    return Trial(name=name, phases=(phase,), lowers=lowers, anew="unstable", watched=False)
