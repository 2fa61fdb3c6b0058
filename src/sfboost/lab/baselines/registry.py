"""The methods by name: two explicit lists, nothing scanned, nothing imported before it is asked for.

A new trainer or adapter is one class and one line here; the command line, the docs table and the contract
tests read these lists.
"""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Iterator, Mapping
from typing import Any


class Registry(Mapping[str, Any]):
    """Names and the classes they stand for; a class is imported when it is asked for.

    Parameters
    ----------
    kind : str
        For messages: "trainer", "adapter".
    entries : mapping of str to str
        ``module:Class`` by name.

    Examples
    --------
    >>> Registry("adapter", {"t3a": "sfboost.lab.baselines.t3a:T3A"})["t3a"].title
    'T3A'
    """

    def __init__(self, kind: str, entries: Mapping[str, str]) -> None:
        self.kind = kind
        self.entries = dict(entries)

    def __getitem__(self, name: str) -> Any:
        if name not in self.entries:
            close = difflib.get_close_matches(name, self.entries, n=1)
            hint = f"Did you mean {close[0]!r}? " if close else ""
            raise KeyError(f"No {self.kind} {name!r}. {hint}There are: {', '.join(self.entries)}.")
        module, _, attribute = self.entries[name].partition(":")
        return getattr(importlib.import_module(module), attribute)

    def __contains__(self, name: object) -> bool:
        return name in self.entries

    def __iter__(self) -> Iterator[str]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)


_HERE = "sfboost.lab.baselines."

TRAINERS = Registry(
    "trainer",
    {
        "erm": _HERE + "learned.generalisation:ERMTrainer",
        "groupdro": _HERE + "learned.generalisation:GroupDROTrainer",
        "irm": _HERE + "learned.generalisation:IRMTrainer",
        "vrex": _HERE + "learned.generalisation:VRExTrainer",
        "eqrm": _HERE + "learned.generalisation:EQRMTrainer",
        "sd": _HERE + "learned.generalisation:SDTrainer",
        "iga": _HERE + "learned.generalisation:IGATrainer",
        "fishr": _HERE + "learned.generalisation:FishrTrainer",
        "clove": _HERE + "learned.generalisation:CLOvETrainer",
        "actir": _HERE + "learned.actir:ACTIR",
        "dare": _HERE + "learned.dare:DARE",
        "sfb": _HERE + "learned.boosting:SFB",
        "sfb-paper": _HERE + "learned.boosting:SFBShared",
        "sfb-columns": _HERE + "columns:ColumnSFB",
        "oracle": _HERE + "learned.oracle:Oracle",
        "oracle-stable": _HERE + "learned.oracle:OracleStable",
        "pooled": _HERE + "pooled:Pooled",
        "left-out-linear": _HERE + "embeddings:LeftOutLinear",
        "per-domain": _HERE + "pooled:PerDomain",
        "self-training": _HERE + "pooled:SelfTraining",
        "skada": _HERE + "skada_methods:Skada",
    },
)
"""Every trainer by name."""

ADAPTERS = Registry(
    "adapter",
    {
        "none": _HERE + "unchanged:Unchanged",
        "pl-last": _HERE + "pseudo_labels:PseudoLabelLast",
        "pl-all": _HERE + "learned.fine_network:PseudoLabelAll",
        "t3a": _HERE + "t3a:T3A",
        "tent": _HERE + "tent:Tent",
        "tent-bn": _HERE + "learned.fine_network:TentNorm",
        "shot": _HERE + "shot:SHOT",
        "sfb-paper": _HERE + "sfb:SFBPaper",
        "sfb": _HERE + "sfb:SFBOurs",
        "sfb-components": _HERE + "embeddings:SFBComponents",
        "sfb-leak": _HERE + "sfb:SFBLeak",
        "sfb-labels": _HERE + "sfb:SFBLabels",
        "fine-tune": _HERE + "fine_tune:FineTune",
        "dare": _HERE + "learned.dare:DAREWhitening",
    },
)
"""Every test-time adapter by name; "none" leaves the predictor as it is."""
