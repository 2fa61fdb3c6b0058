"""Has the meaning of the unstable features changed in a new domain? Asked without labels.

Layer 3. `DomainData` → `Moments` (blind) → compared with those of own domains (`Reference`) → `Change`.
"""

from sfboost.change.domain_data import DomainData
from sfboost.change.reference import Reference
from sfboost.change.result import Change, FeatureChange
from sfboost.change.testing import change_in

__all__ = ["Change", "DomainData", "FeatureChange", "Reference", "change_in"]
