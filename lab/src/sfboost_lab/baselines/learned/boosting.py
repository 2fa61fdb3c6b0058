"""The SFB trainers: `sfboost.torch.SFBClassifier` behind the contract, ours and with the paper's split."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy.typing as npt
from torch import Tensor, nn

from sfboost.adaptation import StableEvidence
from sfboost.torch import SFBClassifier
from sfboost.torch.plan import Goal, Plan
from sfboost.torch.rows import Scaling
from sfboost.torch.split_network import Ensemble, SplitNetwork
from sfboost_lab.baselines.contract import Floats, LabelledRows, LinearHead, Method, MostProbable
from sfboost_lab.baselines.leak import LeakModel, fit_leak_model
from sfboost_lab.baselines.learned.generalisation import published
from sfboost_lab.baselines.learned.network import head_of_layer, run_body
from sfboost_lab.baselines.learned.penalties import INDEPENDENCE, PENALTIES, make

_OURS: dict[str, dict[str, Any]] = {
    "colored_mnist": {
        "network": "mlp",
        "learning_rate": 3e-4,
        "pretrain_steps": 0,
        "steps": 150,
        "cosine": False,
        "batch_size": 1250,
        "unstable_steps": 60,
        "unstable_learning_rate": 3e-4,
        "independence": "none",
    },
    "synthetic": {
        "pretrain_steps": 0,
        "unstable_steps": 400,
        "batch_size": 512,
        "n_stable": 1,
        "n_unstable": 1,
    },
    # Where a first guess takes the stable part too, balancing by it removes what f_S should learn.
    "three_parts": {
        "stability": "vrex",
        "stability_weight": 1000.0,
        "balance": False,
        "pretrain_steps": 100,
        "batch_size": None,
    },
}


class StablePart(nn.Module):
    """Φ_S of a split network, as a module that maps rows to features."""

    def __init__(self, network: SplitNetwork | Ensemble, scaling: Scaling | None = None) -> None:
        super().__init__()
        self.network, self.scaling = network, scaling

    def forward(self, x: Tensor) -> Tensor:
        """Return Φ_S(x)."""
        return self.network.stable_features(x if self.scaling is None else self.scaling.apply(x))


@dataclass(frozen=True, eq=False)
class SplitPredictor(MostProbable):
    """A fitted `SFBClassifier`: f_S predicts, Φ_U waits for an adapter.

    `features` and `head` are those of f_S (temperature included). A search takes labels to be noisy, and its
    f_S is no linear function of its features: there is no head.
    """

    model: SFBClassifier

    @property
    def classes_(self) -> npt.NDArray[Any]:
        """The classes."""
        return self.model.classes_

    @property
    def body(self) -> nn.Module:
        """Φ_S as a module."""
        return StablePart(self.model.network_, self.model.scaling_).eval()

    @property
    def head(self) -> LinearHead | None:
        """h_S with its temperature."""
        temperature = self.model.temperature_
        network = self.model.network_
        if isinstance(network, Ensemble):
            return None
        raw = head_of_layer(network.stable_head)
        shift = 0.0 if temperature.bias is None else temperature.bias
        return LinearHead(raw.coef / temperature.temperature, raw.intercept / temperature.temperature + shift)

    @property
    def evidence_(self) -> StableEvidence | None:
        """How much f_S beats the class balance on held-out rows."""
        return self.model.training_.evidence

    def leak_model(self) -> LeakModel:
        """Return P(f_S | Y, Φ_U) as measured on held-out training rows; measured once."""
        return self._leak_model

    @functools.cached_property
    def _leak_model(self) -> LeakModel:
        return fit_leak_model(*self.model.validation_)

    def features(self, X: Any) -> Floats:
        """Return Φ_S."""
        return run_body(self.body, X)

    def stable_and_unstable(self, X: Any) -> tuple[Floats, Floats]:
        """Return log f_S and Φ_U."""
        return self.model.stable_and_unstable(X)

    def predict_proba(self, X: Any) -> Floats:
        """Return f_S."""
        return self.model.predict_stable_proba(X)


@dataclass(frozen=True)
class SFB(Method):
    """Learn Φ_S and Φ_U our way: f_S on balanced rows first, then a narrow Φ_U with f_S frozen.

    Parameters are those of `sfboost.torch.SFBClassifier` and its plan, by the names that the records of runs
    have for them. Validation rows, if there are any, calibrate f_S.

    Examples
    --------
    >>> SFB.preset("ac").n_unstable
    1
    """

    name: ClassVar[str] = "sfb"
    title: ClassVar[str] = "SFB features (ours)"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = published(**_OURS)

    network: str | nn.Module = "mlp"
    split: str = Goal.split
    n_stable: int | str | None = "auto"
    n_unstable: int | str | None = "auto"
    stability: str | nn.Module = Goal.penalty
    stability_weight: float = Goal.penalty_weight
    independence: str | nn.Module = Goal.independence
    independence_weight: float = Goal.independence_weight
    balance: bool = Plan.balance
    pretrain_steps: int = Plan.pretrain_steps
    steps: int = Plan.steps
    learning_rate: float = Plan.learning_rate
    cosine: bool = Plan.cosine
    l2: float = Plan.weight_decay
    dropout: float = Plan.dropout
    batch_size: int | None = Plan.batch_size
    unstable_steps: int = Plan.unstable_steps
    unstable_learning_rate: float | None = Plan.unstable_learning_rate
    max_restarts: int = Plan.max_restarts
    validation_fraction: float = Plan.validation_fraction
    calibration: str | None = "nll"
    flatten: bool = False
    precision: str = "float32"

    def fit(
        self, train: LabelledRows, *, validation: LabelledRows | None = None, seed: int = 0
    ) -> SplitPredictor:
        """Learn the features, then calibrate f_S."""
        options = {field.name: getattr(self, field.name) for field in fields(self)}
        held = None if validation is None else (validation.X, validation.y, validation.domain)
        told = grouped({**options, "budget": 0, "verbose": False})
        if told.pop("flatten"):  # records name it
            raise ValueError('flatten=True is the adapter "sfb-flat" on a model of this trainer.')
        told["penalty"] = make(PENALTIES, told["penalty"])
        told["independence"] = make(INDEPENDENCE, told["independence"])
        model = SFBClassifier(**told, random_state=seed)
        return SplitPredictor(model.fit(train.X, train.y, sample_domain=train.domain, validation=held))


@dataclass(frozen=True)
class SFBSearched(Method):
    """`SFBClassifier` with every default: it searches for what suits the training domains.

    Examples
    --------
    >>> SFBSearched().budget
    8
    """

    name: ClassVar[str] = "sfb-searched"
    title: ClassVar[str] = "SFB features (searched)"

    budget: int = Plan.budget

    def fit(
        self, train: LabelledRows, *, validation: LabelledRows | None = None, seed: int = 0
    ) -> SplitPredictor:
        """Search, learn and calibrate on the training domains alone."""
        model = SFBClassifier(plan=Plan(budget=self.budget, verbose=False), random_state=seed)
        return SplitPredictor(model.fit(train.X, train.y, sample_domain=train.domain))


@dataclass(frozen=True)
class SFBShared(SFB):
    """Learn Φ_S and Φ_U as the paper says: one network whose output is split (Eq. 5.1), T chosen by ECE.

    Examples
    --------
    >>> SFBShared.preset("colored_mnist").pretrain_steps
    400
    """

    name: ClassVar[str] = "sfb-paper"
    title: ClassVar[str] = "SFB features (paper)"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = published(
        {"stability_weight": 1000.0, "independence": "none"},
        {"stability_weight": 10.0, "n_stable": 1, "n_unstable": 1},
        three_parts={"stability_weight": 1e4},
    )

    split: str = "shared"
    balance: bool = False
    calibration: str | None = "ece"


#: What the library calls hyper-parameters of `SFB`.
_NAMES = {"stability": "penalty", "stability_weight": "penalty_weight", "l2": "weight_decay"}


def grouped(flat: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of `SFBClassifier` for flat ones, as records of runs hold them.

    Examples
    --------
    >>> grouped({"network": "small", "stability": "vrex", "steps": 7})
    {'network': 'small', 'penalty': 'vrex', 'plan': Plan(steps=7)}
    """
    named = {_NAMES.get(name, name): value for name, value in flat.items()}
    told = {field.name: named.pop(field.name) for field in fields(Plan) if field.name in named}
    return {**named, "plan": Plan(**told)}
