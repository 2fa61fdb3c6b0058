"""A fitted model and a table of a new domain as files, made once."""

from importlib.util import find_spec
from types import SimpleNamespace

import pytest

if all(find_spec(name) for name in ("pandas", "pyarrow")):
    import numpy as np
    from hospitals import draw, training

    from sfboost import StableFeatureBoosting
else:
    collect_ignore_glob = ["test_*.py"]

COLUMNS = ["age", "sex", "chol", "heart_rate", "ward"]


@pytest.fixture(scope="session")
def hospital(tmp_path_factory):
    """A model, 3000 rows of a hospital that reverses the heart rate, and a folder with them in four files."""
    rows = training(500).fillna({"chol": 220.0})
    model = StableFeatureBoosting(stable_features=["age", "sex", "chol"])
    model.fit(rows[COLUMNS], rows["sick"], sample_domain=rows["hospital"])
    new = draw("west", 3000, np.random.default_rng(1), heart=-1.0).fillna({"chol": 220.0})
    folder = tmp_path_factory.mktemp("west")
    for i in range(4):
        new.iloc[750 * i : 750 * (i + 1)].to_parquet(folder / f"{i}.parquet", index=False)
    adapted = model.adapt(new[COLUMNS], uncertainty=True)
    return SimpleNamespace(
        model=model, new=new, X=new[COLUMNS], folder=folder, proba=adapted.predict_proba(new[COLUMNS])
    )
