"""Saved models: one file, one documented format, nothing in it that can run code (`docs/saved-models.md`).

A low layer that knows the types of the higher ones by name alone. Within it, lowest first: `errors` ·
`archive`, `arrays`, `registry`, `objects`, `tensors`, `trees` · `foreign` · `encode`, `decode` · `saving`.
"""

from sfboost.persistence.errors import SavedModelError, SavedModelWarning
from sfboost.persistence.saving import Savable, load

__all__ = ["Savable", "SavedModelError", "SavedModelWarning", "load"]
