"""Probabilities from any framework, and features that exist only in the new domain: a newly bought sensor."""

import numpy as np

import sfboost

rng = np.random.default_rng(0)
y = rng.integers(0, 2, 3000)
# What some calibrated classifier says, of whatever it reads: right in 75 % of the rows.
proba = np.where(rng.random(3000) < 0.75, y, 1 - y) * 0.5 + 0.25
sensor = y[:, None] * 1.5 + rng.normal(size=(3000, 3))  # no classifier has ever seen it

adaptation = sfboost.adapt(proba, sensor)
before, after = (proba > 0.5).astype(int), adaptation.predict(proba, sensor)
print(f"without the sensor {np.mean(before == y):.2f}, with it {np.mean(after == y):.2f}")
