"""The numbers as an ONNX graph: linear maps, temperatures, log-softmax, and the guard's band."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

import sfboost
from sfboost.boosting import AdaptedClassifier, StableFeatureBoosting
from sfboost.export.linear import ExportedBand, LinearMap, LinearScorer, linear_scorer
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
        `features` say, one name a line; its outputs are `label` and `probabilities`.
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
    floor = float(np.log(scorer.least_probability))
    joint = _log_proba(steps, scorer.stable, _centred(steps, scorer.stable), floor)
    if scorer.unstable is not None:
        log_unstable = _log_unstable(steps, scorer, scorer.unstable)
        # A class with no mass in the prior has no unstable evidence either way.
        present = scorer.divisor > 0.0
        ratio = steps("Sub", log_unstable, steps.number(np.log(np.where(present, scorer.divisor, 1.0))))
        joint = steps("Add", joint, steps("Mul", ratio, steps.number(present.astype(np.float64))))
        joint = steps("LogSoftmax", joint, axis=1)
    steps("Exp", joint, name="probabilities")
    best = steps("ArgMax", joint, axis=1, keepdims=0)
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

    def axis(self, axis: int) -> str:
        """An axis, as a constant."""
        return self.constant(np.array([axis]), 1)


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
    centred = _centred(steps, linear)
    log_head = _log_proba(steps, linear, centred)
    if scorer.posthoc is None and scorer.band is None:
        return log_head
    head = steps("Exp", log_head)
    proba = head if scorer.posthoc is None else _corrected(steps, head, *scorer.posthoc)
    if scorer.band is not None:
        prior = steps.number(scorer.band.prior)
        share = _trust(steps, scorer.band, head, centred, linear)
        proba = steps("Add", prior, steps("Mul", share, steps("Sub", proba, prior)))
    return steps("Log", steps("Max", proba, steps.number([_TINY])))


def _corrected(steps: _Steps, head: str, offset: float, slope: float) -> str:
    second = steps("Gather", head, steps.constant(np.array([1]), 1), axis=1)
    moved = steps("Div", steps("Sub", second, steps.number([offset])), steps.number([slope]))
    second = steps("Clip", moved, steps.number(0.0), steps.number(1.0))
    return steps("Concat", steps("Sub", steps.number([1.0]), second), second, axis=1)


def _trust(steps: _Steps, band: ExportedBand, head: str, centred: str, linear: LinearMap) -> str:
    """λ(u) of `Guard.trust`, as a column."""
    moved = steps("Sub", head, steps.number(band.prior))
    seen = steps("Abs", steps("MatMul", moved, steps.number(band.confusion.T)))
    tiny = steps.number([_TINY])
    reach = steps("Max", steps("ReduceMax", seen, axes=[1], keepdims=1), tiny)
    doubt = steps("Div", steps.number([band.leak + band.reach * band.pseudo_error]), reach)
    if band.covariance is not None:
        size = steps("Max", steps("ReduceSum", steps("Mul", moved, moved), steps.axis(1), keepdims=1), tiny)
        error = steps("Div", _error_along(steps, band.covariance, head, moved, centred, linear), size)
        doubt = steps("Add", doubt, steps("Mul", steps.number([band.reach]), error))
    return steps("Clip", steps("Sub", steps.number([1.0]), doubt), steps.number(0.0), steps.number(1.0))


def _error_along(
    steps: _Steps, covariance: Any, head: str, moved: str, centred: str, linear: LinearMap
) -> str:
    """Standard error of the head along q̂ − p, times its length (`guard._error_along`), as a column."""
    mean = steps("ReduceSum", steps("Mul", head, moved), steps.axis(1), keepdims=1)
    by_logit = steps("Mul", head, steps("Sub", moved, mean))
    n_logits = len(linear.coef)
    if n_logits == 2:
        by_logit, n_logits = steps("Gather", by_logit, steps.constant(np.array([1]), 1), axis=1), 1
    rows = steps("Div", centred, steps.number(linear.scale))
    # A column of ones beside the features: the rows times nothing, plus one.
    nothing = steps("MatMul", centred, steps.number(np.zeros((len(linear.columns), 1))))
    design = steps("Concat", rows, steps("Add", nothing, steps.number([1.0])), axis=1)
    products = steps(
        "Mul", steps("Unsqueeze", by_logit, steps.axis(2)), steps("Unsqueeze", design, steps.axis(1))
    )
    size = n_logits * (len(linear.columns) + 1)
    direction = steps("Reshape", products, steps.constant(np.array([-1, size]), 2))
    spread = steps("Mul", steps("MatMul", direction, steps.number(covariance)), direction)
    variance = steps("ReduceSum", spread, steps.axis(1), keepdims=1)
    return steps("Sqrt", steps("Max", variance, steps.number([0.0])))
