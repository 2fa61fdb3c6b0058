"""Why a row got its prediction: log f_S + log f_U − log p, class by class."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import log_softmax

from sfboost.marginal.probabilities import FloatArray


@dataclass(frozen=True, eq=False)
class Explanation:
    """The terms of one prediction, in nats, one column per class.

    Attributes
    ----------
    classes : array of shape (K,)
    stable, unstable, prior : arrays of shape (K,)
        log f_S, log f_U and log p. Their combination stable + unstable − prior, normalised, is `joint`.
    joint : array of shape (K,)
        Logarithm of the predicted probabilities.
    features : array of shape (d, K) or None
        What each unstable feature adds to log f_U, for a linear head. With `baseline` (intercept,
        normaliser and, if any, the correction) it sums to `unstable`.
    baseline : array of shape (K,) or None
    feature_names : tuple of str
    feature_values : array of shape (d,) or None
        As given, before standardisation.
    """

    classes: npt.NDArray[Any]
    stable: FloatArray
    unstable: FloatArray
    prior: FloatArray
    joint: FloatArray
    features: FloatArray | None = None
    baseline: FloatArray | None = None
    feature_names: tuple[str, ...] = ()
    feature_values: FloatArray | None = None

    @property
    def prediction(self) -> Any:
        """The most probable class."""
        return self.classes[int(self.joint.argmax())]

    def scaled(self, temperature: float) -> Explanation:
        """Return the explanation of the same prediction with every term divided by a temperature."""
        terms = ("stable", "unstable", "prior", "features", "baseline")
        divided: dict[str, Any] = {
            name: None if getattr(self, name) is None else getattr(self, name) / temperature for name in terms
        }
        return replace(self, **divided, joint=log_softmax(self.joint / temperature))

    def __str__(self) -> str:
        width = max(24, *(len(name) + 12 for name in self.feature_names)) if self.feature_names else 24
        head = " " * width + "".join(f"{name!s:>12.11}" for name in self.classes)
        lines = [head, _line("log stable", self.stable, width), _line("+ log unstable", self.unstable, width)]
        if self.features is not None and self.feature_values is not None and self.baseline is not None:
            for j in np.argsort(-np.ptp(self.features, axis=1), kind="stable"):  # what says most comes first
                name, value = self.feature_names[j], self.feature_values[j]
                told = f"    {name}" if np.isnan(value) else f"    {name} = {in_digits(value)}"
                lines.append(_line(told, self.features[j], width))
            lines.append(_line("    baseline", self.baseline, width))
        lines.append(_line("- log prior", self.prior, width))
        lines.append(_line("= probability", np.exp(self.joint), width))
        return "\n".join(lines)


def in_digits(value: float) -> str:
    """Four digits that count, and all of a large number: nobody reads 2e+05.

    Examples
    --------
    >>> in_digits(200000.0), in_digits(41.0), in_digits(-0.313512), in_digits(1.25e-7)
    ('200000', '41', '-0.3135', '1.25e-07')
    """
    return f"{value:.0f}" if 1e4 <= abs(value) < 1e15 else f"{value:.4g}"


def _line(label: str, values: FloatArray, width: int) -> str:
    return f"{label:<{width}.{width}}" + "".join(f"{value:>12.4f}" for value in values)
