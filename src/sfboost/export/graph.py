"""The numbers as an ONNX graph: linear maps, temperatures and log-softmax."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

import sfboost
from sfboost.boosting import AdaptedClassifier, StableFeatureBoosting
from sfboost.export.linear import LinearMap, LinearScorer, linear_scorer
from sfboost.whole_files import write_whole

# Old enough for runtimes of the last years, new enough for log-softmax along an axis.
_OPSET, _IR = 17, 8
_TINY = np.finfo(np.float64).tiny


def to_onnx(model: AdaptedClassifier | StableFeatureBoosting, path: str | Path) -> None:
    """Write a fitted or adapted model as an ONNX graph.

    Parameters
    ----------
    model : StableFeatureBoosting or AdaptedClassifier
        With logistic regression on either side, as is the default.
    path : path
        The file to write. Its input `X` takes the features (double) in the order that the metadata
        `features` say, one name a line; its outputs are `label`, the cheapest decision where the model has
        costs, and `probabilities`.
    """
    write_whole(path, make_graph(linear_scorer(model)).SerializeToString())


def make_graph(scorer: LinearScorer) -> Any:
    """The graph of a scorer, checked by onnx itself."""
    try:
        import onnx
        from onnx import TensorProto, helper
    except ImportError as error:
        raise ImportError("ONNX files are written with onnx: pip install 'sfboost[onnx]'.") from error
    steps = _Steps(helper)
    joint = _log_answer(steps, scorer)
    if scorer.mixed_with:
        parts = [scorer, *scorer.mixed_with]
        said = [joint, *(_log_answer(steps, part) for part in scorer.mixed_with)]
        weighed = [
            steps("Mul", one, steps.number([part.weight])) for one, part in zip(said, parts, strict=True)
        ]
        joint = steps("LogSoftmax", steps("Sum", *weighed), axis=1)
    proba = steps("Exp", joint, name="probabilities")
    if scorer.costs is None:
        best = steps("ArgMax", joint, axis=1, keepdims=0)
    else:
        best = steps("ArgMin", steps("MatMul", proba, steps.number(scorer.costs)), axis=1, keepdims=0)
    whole = np.issubdtype(scorer.classes.dtype, np.integer)
    classes = scorer.classes.astype(np.int64) if whole else [str(name) for name in scorer.classes]
    steps("Gather", steps.constant(classes, len(classes)), best, name="label")
    label = TensorProto.INT64 if whole else TensorProto.STRING
    graph = helper.make_graph(
        steps.nodes,
        "sfboost",
        [helper.make_tensor_value_info("X", TensorProto.DOUBLE, ["n", len(scorer.features)])],
        [
            helper.make_tensor_value_info("label", label, ["n"]),
            helper.make_tensor_value_info("probabilities", TensorProto.DOUBLE, ["n", len(classes)]),
        ],
        steps.constants,
    )
    model = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", _OPSET)],
        ir_version=_IR,
        producer_name="sfboost",
        producer_version=sfboost.__version__,
    )
    helper.set_model_props(model, {"features": "\n".join(scorer.features)})
    onnx.checker.check_model(model, full_check=True)
    return model


class _Steps:
    """Nodes and constants of a graph that grows; a call adds a node and returns the name of its output."""

    def __init__(self, helper: Any) -> None:
        self._helper = helper
        self._fresh = count()
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def __call__(self, operator: str, *inputs: str, name: str | None = None, **attributes: Any) -> str:
        name = name or f"{operator.lower()}_{next(self._fresh)}"
        self.nodes.append(self._helper.make_node(operator, list(inputs), [name], name=name, **attributes))
        return name

    def number(self, values: Any) -> str:
        """A constant of doubles."""
        array = np.asarray(values, dtype=np.float64)
        return self.constant(array, *array.shape)

    def constant(self, values: Any, *shape: int) -> str:
        """A constant of doubles, whole numbers or text."""
        from onnx import TensorProto

        name = f"constant_{next(self._fresh)}"
        if isinstance(values, np.ndarray):
            kind = TensorProto.DOUBLE if values.dtype.kind == "f" else TensorProto.INT64
            values = values.ravel().tolist()
        else:
            kind, values = TensorProto.STRING, [text.encode() for text in values]
        self.constants.append(self._helper.make_tensor(name, kind, shape, values))
        return name


def _log_answer(steps: _Steps, scorer: LinearScorer) -> str:
    floor = float(np.log(scorer.least_probability))
    joint = _log_proba(steps, scorer.stable, _centred(steps, scorer.stable), floor)
    if scorer.unstable is None:
        return joint
    log_unstable = _log_unstable(steps, scorer, scorer.unstable)
    # A class with no mass in the prior has no unstable evidence either way.
    present = scorer.divisor > 0.0
    ratio = steps("Sub", log_unstable, steps.number(np.log(np.where(present, scorer.divisor, 1.0))))
    joint = steps("Add", joint, steps("Mul", ratio, steps.number(present.astype(np.float64))))
    return steps("LogSoftmax", joint, axis=1)


def _centred(steps: _Steps, linear: LinearMap) -> str:
    columns = steps("Gather", "X", steps.constant(np.array(linear.columns), len(linear.columns)), axis=1)
    return steps("Sub", columns, steps.number(linear.mean))


def _log_proba(steps: _Steps, linear: LinearMap, centred: str, floor: float | None = None) -> str:
    # The scale goes into the coefficients: onnxruntime would fuse a lone one in single precision.
    coef = steps.number((linear.coef / linear.scale).T)
    logits = steps("Add", steps("MatMul", centred, coef), steps.number(linear.intercept))
    raw = steps("LogSoftmax", logits, axis=1)
    if floor is not None:
        raw = steps("Max", raw, steps.number([floor]))
    scaled = steps("Div", raw, steps.number([linear.temperature]))
    return steps("LogSoftmax", steps("Add", scaled, steps.number(linear.bias)), axis=1)


def _log_unstable(steps: _Steps, scorer: LinearScorer, linear: LinearMap) -> str:
    log_head = _log_proba(steps, linear, _centred(steps, linear))
    if scorer.posthoc is None:
        return log_head
    proba = _corrected(steps, steps("Exp", log_head), *scorer.posthoc)
    return steps("Log", steps("Max", proba, steps.number([_TINY])))


def _corrected(steps: _Steps, head: str, offset: float, slope: float) -> str:
    second = steps("Gather", head, steps.constant(np.array([1]), 1), axis=1)
    moved = steps("Div", steps("Sub", second, steps.number([offset])), steps.number([slope]))
    second = steps("Clip", moved, steps.number(0.0), steps.number(1.0))
    return steps("Concat", steps("Sub", steps.number([1.0]), second), second, axis=1)
