"""Which answer is best for a new domain. Layer 4."""
