"""Trainers and adapters of networks (the torch extra); `sfboost.baselines.registry` imports them when asked.

Layering, lowest first: `network` · `generalisation`, `fine_network` · `actir`, `boosting`, `dare`, `oracle`.
"""
