"""A linear classifier for tools that know nothing of sfboost: plain JSON, or an ONNX graph.

Beside `report`. `linear` (all numbers of a prediction, plain data) → `coefficients` (JSON), `graph` (ONNX).
"""

from sfboost.export.coefficients import to_json
from sfboost.export.graph import to_onnx
from sfboost.export.linear import LinearScorer, linear_scorer

__all__ = ["LinearScorer", "linear_scorer", "to_json", "to_onnx"]
