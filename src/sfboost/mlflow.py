"""Models in MLflow: the `.sfb` file is the artefact, and what serves it takes the user's table.

Nothing of ours is pickled: MLflow keeps the name of this module, which loads the file.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import sfboost

if TYPE_CHECKING:
    import pandas as pd

_FILE = "model.sfb"


def log(model: Any, name: str = "model", **options: Any) -> Any:
    """Log a model to the active run, as a pyfunc.

    Parameters
    ----------
    model : StableFeatureBoosting or AdaptedClassifier
        Fitted. What `save` refuses, or keeps only with `trusted=`, is refused here too.
    name : str
    **options
        For `mlflow.pyfunc.log_model`: signature, input_example, registered_model_name and so on.

    Returns
    -------
    mlflow.models.model.ModelInfo
        Its `model_uri` is what `load` and `mlflow models serve` take.
    """
    import mlflow

    with TemporaryDirectory() as folder:
        model.save(Path(folder) / _FILE)
        options.setdefault("pip_requirements", [f"sfboost[app,mlflow]=={sfboost.__version__}"])
        return mlflow.pyfunc.log_model(
            name=name, loader_module=__name__, data_path=str(Path(folder) / _FILE), **options
        )


def load(model_uri: str) -> Any:
    """Load the model itself, as `sfboost.load` does, from where MLflow keeps it.

    `mlflow.pyfunc.load_model(model_uri)` gives what is served: `predict` of a table.
    """
    import mlflow

    folder = mlflow.artifacts.download_artifacts(artifact_uri=model_uri)
    return sfboost.load(Path(folder) / "data" / _FILE)


class _Served:
    """What MLflow asks for predictions."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def predict(self, table: pd.DataFrame) -> pd.DataFrame:
        """The class of each row and the probability of every class, named as `sfboost predict` does."""
        import pandas as pd

        columns = [f"answer_{name}" for name in self.model.classes_]
        proba = pd.DataFrame(self.model.predict_proba(table), columns=columns, index=table.index)
        proba.insert(0, "prediction", self.model.predict(table))
        return proba


def _load_pyfunc(path: str) -> _Served:
    return _Served(sfboost.load(path))
