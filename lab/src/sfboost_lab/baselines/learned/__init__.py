"""Trainers and adapters of networks (the torch extra); the registry imports them when asked.

Layering, lowest first: `network` · `generalisation`, `fine_network` · `actir`, `boosting`, `dare`, `oracle`.
"""
