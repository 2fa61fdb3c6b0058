"""The methods by name: two explicit lists, nothing scanned, nothing imported before it is asked for.

A new trainer or adapter is one class and one line here; the command line, the docs table and the contract
tests read these lists.
"""

from __future__ import annotations

from typing import Any

from sfboost_lab.registry import Registry

_HERE = "sfboost_lab.baselines."

TRAINERS: Registry[Any] = Registry(
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
        "sfb-searched": _HERE + "learned.boosting:SFBSearched",
        "sfb-paper": _HERE + "learned.boosting:SFBShared",
        "sfb-columns": _HERE + "columns:ColumnSFB",
        "pooled": _HERE + "pooled:PooledTrainer",
        "left-out-linear": _HERE + "embeddings:LeftOutLinear",
    },
)
"""Every trainer by name."""

ADAPTERS: Registry[Any] = Registry(
    "adapter",
    {
        "none": _HERE + "head_adapters:Unchanged",
        "pl-last": _HERE + "head_adapters:PseudoLabelLast",
        "pl-all": _HERE + "learned.fine_network:PseudoLabelAll",
        "t3a": _HERE + "head_adapters:T3A",
        "tent": _HERE + "head_adapters:Tent",
        "shot": _HERE + "shot:SHOT",
        "sfb-paper": _HERE + "sfb:SFBPaper",
        "sfb-paper-as-is": _HERE + "sfb:SFBPaperAsIs",
        "sfb-paper-labels": _HERE + "sfb:SFBPaperLabels",
        "sfb": _HERE + "sfb:SFBOurs",
        "sfb-best": _HERE + "columns:SFBBest",
        "sfb-flat": _HERE + "sfb:FlattenedSFB",
        "sfb-components": _HERE + "embeddings:SFBComponents",
        "sfb-leak": _HERE + "sfb:SFBLeak",
        "sfb-labels": _HERE + "sfb:SFBLabels",
        "fine-tune": _HERE + "head_adapters:FineTune",
        "dare": _HERE + "learned.dare:DAREWhitening",
    },
)
"""Every test-time adapter by name; "none" leaves the predictor as it is."""
