"""Many new domains at once: heads that lean on each other and on training as far as their rows are few.

Layer 2, on arrays. `grouping` brings rows of equal-sized domains together; `batched` takes Newton steps for
all of them at once; `hierarchy` estimates how much domains differ (empirical Bayes) and shrinks accordingly;
`shares` does the same for class shares; `many` strings them together.
"""

from sfboost.pooling.many import PooledHeads, fit_pooled_heads

__all__ = ["PooledHeads", "fit_pooled_heads"]
