"""Why a row got its prediction, class by class: log f_S + log f_U − log p, or what each feature adds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import log_softmax

from sfboost.marginal.probabilities import FloatArray

#: What is said of a cell that is filled in.
MISSING = "missing"
# Nats that are rounding alone.
_NOTHING = 1e-12


@dataclass(frozen=True, eq=False)
class Explanation:
    """The terms of one prediction, in nats, one column per class.

    Attributes
    ----------
    classes : array of shape (K,)
    joint : array of shape (K,)
        Logarithm of the predicted probabilities.
    stable, unstable, prior : arrays of shape (K,) or None
        log f_S, log f_U and log p. Their combination stable + unstable − prior, normalised, is `joint`. None
        where one classifier of all features is the answer.
    features : array of shape (d, K) or None
        What each unstable feature adds to log f_U, for a linear head. With `baseline` (intercept,
        normaliser and, if any, the correction) it sums to `unstable`. Where that is None: what it adds to
        `joint`, against what training expects of it; with `stable_features` and `baseline` it sums to that.
    baseline : array of shape (K,) or None
    feature_names : tuple of str
    feature_values : array of shape (d,) or None
        As given, before standardisation.
    stable_features, stable_names, stable_values :
        The same of the stable features: of log f_S, for a logistic regression, where they alone decide.
    cells : mapping of str to str
        What a table says in place of a number: "missing", or a category.
    """

    classes: npt.NDArray[Any]
    joint: FloatArray
    stable: FloatArray | None = None
    unstable: FloatArray | None = None
    prior: FloatArray | None = None
    features: FloatArray | None = None
    baseline: FloatArray | None = None
    feature_names: tuple[str, ...] = ()
    feature_values: FloatArray | None = None
    stable_features: FloatArray | None = None
    stable_names: tuple[str, ...] = ()
    stable_values: FloatArray | None = None
    cells: Mapping[str, str] = field(default_factory=dict)

    @property
    def prediction(self) -> Any:
        """The most probable class."""
        return self.classes[int(self.joint.argmax())]

    @property
    def stable_alone(self) -> bool:
        """Whether no unstable feature has a say."""
        if self.unstable is None or self.prior is None:
            return False
        return np.array_equal(self.unstable, self.prior)

    def scaled(self, temperature: float) -> Explanation:
        """Return the explanation of the same prediction with every term divided by a temperature."""
        terms = ("stable", "unstable", "prior", "features", "baseline")
        divided: dict[str, Any] = {
            name: None if getattr(self, name) is None else getattr(self, name) / temperature for name in terms
        }
        return replace(self, **divided, joint=log_softmax(self.joint / temperature))

    def __str__(self) -> str:
        names = (*self.feature_names, *self.stable_names)
        width = max(24, *(len(name) + 14 for name in names)) if names else 24
        lines = [" " * width + "".join(f"{name!s:>12.11}" for name in self.classes)]
        if self.stable is None or self.unstable is None or self.prior is None:
            lines += self._whole(width)
        elif self.stable_alone:
            lines += self._stable(self.stable, width)
        else:
            lines.append(_line("log stable", self.stable, width))
            lines.append(_line("+ log unstable", self.unstable, width))
            if self.features is not None and self.baseline is not None:
                lines += self._terms(self.features, self.feature_names, self.feature_values, width)
                lines.append(_line("    baseline", self.baseline, width))
            lines.append(_line("- log prior", self.prior, width))
        lines.append(_line("= probability", np.exp(self.joint), width))
        if self.stable_alone:
            lines.append("The stable features alone decide: the answer does not use the unstable ones.")
        return "\n".join(lines)

    def _whole(self, width: int) -> list[str]:
        """The account of one classifier of all features."""
        lines = [_line("log probability", self.joint, width)]
        for terms, names, values in (
            (self.stable_features, self.stable_names, self.stable_values),
            (self.features, self.feature_names, self.feature_values),
        ):
            lines += [] if terms is None else self._terms(terms, names, values, width)
        return lines if self.baseline is None else [*lines, _line("    baseline", self.baseline, width)]

    def _stable(self, stable: FloatArray, width: int) -> list[str]:
        """The account of the stable features alone."""
        lines = [_line("log stable", stable, width)]
        if self.stable_features is not None:
            lines += self._terms(self.stable_features, self.stable_names, self.stable_values, width)
            lines.append(_line("    baseline", stable - self.stable_features.sum(axis=0), width))
        if np.abs(self.joint - stable).max() > _NOTHING:
            lines.append(_line("+ put right by labels", self.joint - stable, width))
        return lines

    def _terms(
        self, terms: FloatArray, names: Sequence[str], values: FloatArray | None, width: int
    ) -> list[str]:
        """A line for each feature, that which says most first."""
        lines = []
        for j in np.argsort(-np.ptp(terms, axis=1), kind="stable"):
            cell = self._cell(names[j])
            if not cell and values is not None and not np.isnan(values[j]):
                cell = in_digits(values[j])
            lines.append(_line(f"    {names[j]} = {cell}" if cell else f"    {names[j]}", terms[j], width))
        return lines

    def _cell(self, name: str) -> str:
        """What the table says of a feature; a code of a category (sex=f) is missing where that is."""
        said = self.cells.get(name, "")
        return said or (MISSING if self.cells.get(name.partition("=")[0]) == MISSING else "")


def in_digits(value: float) -> str:
    """Four digits that count, and all of a large number: nobody reads 2e+05.

    Examples
    --------
    >>> in_digits(200000.0), in_digits(41.0), in_digits(-0.313512), in_digits(1.25e-7)
    ('200000', '41', '-0.3135', '1.25e-07')
    """
    return f"{value:.0f}" if 1e4 <= abs(value) < 1e15 else f"{value:.4g}"


def _line(label: str, values: FloatArray, width: int) -> str:
    return f"{label:<{width}.{width}}" + "".join(f"{value:>z12.4f}" for value in values)
