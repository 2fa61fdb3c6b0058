"""Has the meaning of the unstable features changed in a new domain? Asked without labels.

Layer 3. `DomainData` → `Moments` (no labels) → compared with source domains (`Reference`) → `Change`.
"""

from sfboost.shift.reference import Reference
from sfboost.shift.result import Change, FeatureChange, Shift
from sfboost.shift.rows import DomainData
from sfboost.shift.testing import change_in

__all__ = ["Change", "DomainData", "FeatureChange", "Reference", "Shift", "change_in"]
