"""Saved models: one file, one documented format, nothing in it that can run code (`docs/saved-models.md`).

A low layer that knows the types of the higher ones by name alone. Within it, lowest first: `archive` (bytes)
· `registry` (the closed list of types), `foreign` (scikit-learn's, through skops) · `trees` (objects as JSON)
· `saving`.
"""

from sfboost.persistence.archive import SavedModelError, SavedModelWarning
from sfboost.persistence.saving import Savable, load

__all__ = ["Savable", "SavedModelError", "SavedModelWarning", "load"]
