"""Has the meaning of the unstable features changed in a new domain? Asked without labels.

Layer 3. rows → `View` → `Moments` (blind) → compared with those of own domains (`Reference`) → `Change`.
"""

from sfboost.change.reference import Reference
from sfboost.change.result import Change, FeatureChange
from sfboost.change.testing import change_in
from sfboost.change.view import View

__all__ = ["Change", "FeatureChange", "Reference", "View", "change_in"]
