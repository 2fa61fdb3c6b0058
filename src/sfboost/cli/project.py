"""A model together with its table: what `fit` makes, `adapt` adapts, and a model file keeps as `table_`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from sklearn.base import clone

import sfboost
from sfboost.boosting import AdaptedClassifier, AdaptedDomains, StableFeatureBoosting
from sfboost.cli.proposal import rank_columns, stand_ins
from sfboost.frames import Encoder
from sfboost.frames.preparing import NewTable, TrainingTable
from sfboost.frames.reading import ENDINGS
from sfboost.frames.roles import COMPONENTS, Roles
from sfboost.frames.writing import is_stream
from sfboost.notices import first_names
from sfboost.report import TrainingFacts, describe_training
from sfboost.report.training import evaluation_rows, training_of

Made = TypeVar("Made")


@dataclass(frozen=True, eq=False)
class Project:
    """Everything that is known after `fit`, and after `adapt`.

    Attributes
    ----------
    roles : Roles
    model : StableFeatureBoosting
        Of the columns of the table; it encodes them itself.
    training : TrainingFacts
        For reports: no training row is kept.
    adapted : AdaptedClassifier or None
    """

    roles: Roles
    model: StableFeatureBoosting
    training: TrainingFacts
    adapted: AdaptedClassifier | None = None

    @property
    def encoder(self) -> Encoder:
        """How the columns of a table are read."""
        assert self.model.encoder_ is not None  # models without one are refused when they are loaded
        return self.model.encoder_

    def adapt(self, new: NewTable, answer: str = "best") -> Project:
        """Adapt to the rows of a target domain; of labels only those that `known` has are looked at."""
        if not self.training.nothing_stable:
            return replace(self, adapted=self.model.adapt(new.X, new.known, answer=answer))
        return replace(self, adapted=pooled_alone(self.model.adapt(new.X, new.known)))

    def adapt_each(self, new: NewTable, domain: Any, answer: str = "best") -> AdaptedDomains:
        """Adapt to each of several target domains."""
        if not self.training.nothing_stable:
            return self.model.adapt(new.X, sample_domain=domain, answer=answer)
        many = self.model.adapt(new.X, sample_domain=domain)
        sizes = Counter(domain.tolist())
        return AdaptedDomains(self.model, {name: pooled_alone(one) for name, one in many.items()}, sizes)

    def cells(self, new: NewTable) -> list[Mapping[str, Any]]:
        """Features of rows as they were given, to show some; not their ids, which may name people."""
        stable = set(self.model.stable_columns_.names)
        # The unstable ones first: they are why a prediction changed.
        made = self.encoder.outputs_of
        sources = sorted(self.encoder.sources, key=lambda name: stable.issuperset(made([name])))
        return new.table.select(sources).to_pylist()

    def require_adapted(self) -> AdaptedClassifier:
        """The adapted classifier, which must be there."""
        if self.adapted is None:
            raise ValueError(
                "This model is not adapted yet: `sfboost adapt MODEL NEW -o ADAPTED` does that first."
            )
        return self.adapted


def learn(
    training: TrainingTable, settings: StableFeatureBoosting, *, evaluate: bool, answer: str = "best"
) -> Project:
    """Fit the model to labelled rows and keep what reports need.

    `answer` is what the model will be asked for: source domains that are left out are answered alike. Where
    no column is shown to be stable some stand in for the stable ones, so that shifts can be tested for; they
    do not answer.
    """
    check_id(training.roles.id, np.unique(training.y))
    rows = (training.X, training.y, training.domain)
    (model, facts), proposal = with_columns(
        training, settings, lambda model: (model, describe_training(model, *rows))
    )
    if proposal:
        facts, evaluate = replace(facts, proposal=proposal), False
    facts = replace(facts, missing=training.missing())
    if evaluate and len(training.domains) > 1:
        with suppress(ValueError):  # no domain can be left out: the report then says that it was not run
            found = configure(training, settings).evaluate(*rows, answer=answer)
            facts = replace(facts, evaluation=evaluation_rows(found))
    return Project(training.roles, model, facts)


def with_columns(
    training: TrainingTable, settings: StableFeatureBoosting, do: Callable[[StableFeatureBoosting], Made]
) -> tuple[Made, list[dict[str, Any]]]:
    """What `do` makes of the model with the columns of the table.

    Where no column is shown to be stable others stand in, and what was found of all of them comes second.
    """
    try:
        return do(configure(training, settings)), []
    except ValueError:
        if not training.roles.search:
            raise
        selection, proposal = rank_columns(training)
        first, second = stand_ins(training.roles, proposal)
        if selection.status == "selected" or not first or not second:
            raise
    return do(clone(settings).set_params(stable_features=first, unstable_features=second)), proposal


def pooled_alone(adapted: AdaptedClassifier) -> AdaptedClassifier:
    """Let one classifier of all features answer, whatever moved: no column is shown to be stable.

    Unless labels of the target domain say what answers best.
    """
    best = adapted.best
    if best is None or adapted.adaptation.n_labelled or set(best.choice.weights) <= {"pooled", "shares"}:
        return adapted
    reason = best.choice.reason.with_values(weights={"pooled": 1.0}, doubt="no column is shown to be stable")
    choice = replace(best.choice, weights={"pooled": 1.0}, reason=reason)
    return AdaptedClassifier(adapted.model, adapted.adaptation, replace(best, choice=choice))


def stand_in_remarks(roles: Roles, proposal: list[dict[str, Any]]) -> tuple[str, ...]:
    """What is to be known of a model without stable columns."""
    if not proposal or any(column["selected"] for column in proposal):
        return ()
    names = first_names(stand_ins(roles, proposal)[0], 12)
    return (
        "No column is shown to be stable (`sfboost propose` ranks them), so that `run` and `adapt` answer "
        "with one classifier of all features. To test for shifts, those that drift least stand in for stable "
        f"ones: {names}.",
    )


def configure(training: TrainingTable, settings: StableFeatureBoosting) -> StableFeatureBoosting:
    """The model, unfitted, with the columns of the table."""
    roles = training.roles
    stable: Any = "auto" if roles.search else list(roles.stable)
    unstable: Any = COMPONENTS if roles.components else list(roles.unstable)
    if roles.search:
        unstable = unstable or None
    else:
        for name, columns in (("stable", roles.stable), ("unstable", roles.unstable)):
            if columns and not training.encoder.outputs_of(columns):
                raise ValueError(
                    f"The {name} columns hold one category each and say nothing: name others with --{name}."
                )
    return clone(settings).set_params(stable_features=stable, unstable_features=unstable)


def prediction_columns(classes: Any) -> list[str]:
    """Columns of the predictions beside the id."""
    names = np.asarray(classes).tolist()
    return ["prediction", "decision", *(f"{kind}_{name}" for kind in ("answer", "stable") for name in names)]


def check_id(id: str | None, classes: Any) -> None:
    """Refuse an id whose name the predictions need for a column of their own."""
    if id in prediction_columns(classes):
        raise ValueError(
            f"The id {id!r} is also the name of a column of the predictions: rename it, or name another."
        )


def save_project(project: Project, path: Path, trusted: Collection[str] = ()) -> None:
    """Write a model, adapted or not, so that `sfboost.load` reads it too."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # An adapted model may know more of its rows than the fitted one: directions along which it adapted.
    model = copy(project.model if project.adapted is None else project.adapted.model)
    if project.roles.target is not None:  # else fitted in Python: the model itself says all
        model.table_ = {"roles": project.roles.to_dict(), "training": project.training.to_dict()}
    if project.adapted is None:
        model.save(path, trusted=trusted)
    else:
        AdaptedClassifier(model, project.adapted.adaptation, project.adapted.best).save(path, trusted=trusted)


def check_model_name(path: Path) -> None:
    """Refuse a name that a table has, or that has no ending, before any work is done."""
    if path.suffix in ("", *ENDINGS) and not is_stream(path):
        raise ValueError(f"{path} is to be a model file: call it {path.with_suffix('.sfb')}.")


def load_project(path: Path, trusted: Collection[str] = ()) -> Project:
    """Read what `save_project` wrote, or `save` in Python after `fit` to a frame.

    `trusted` are full names of types beyond the default list that the file may hold.
    """
    if not path.exists():
        raise ValueError(f"There is no file {path}: `sfboost fit TRAIN … -o {path.name}` makes one.")
    loaded = sfboost.load(path, trusted=trusted)
    adapted = loaded if isinstance(loaded, AdaptedClassifier) else None
    model = adapted.model if adapted is not None else loaded
    if not isinstance(model, StableFeatureBoosting):
        raise ValueError(
            f"{path} holds a {type(loaded).__name__}, which knows no table: load it with sfboost.load."
        )
    sets = (model.stable_columns_, model.unstable_columns_)
    if any(columns.encoder is None for columns in sets if len(columns)):
        raise ValueError(
            f"{path} is not loaded: it was fitted in Python to an array, or with a pipeline that reads its "
            "columns itself, so that the command cannot know how to read a table: load it in Python with "
            "sfboost.load."
        )
    if model.domain_scale_ is not None:
        raise ValueError(
            f"{path} is not loaded: it was fitted with standardize='domain', for whole batches of one "
            "domain, and the command reads tables in blocks: load it in Python with sfboost.load."
        )
    table = getattr(model, "table_", None)
    if table is None:
        roles = Roles(None, None, None, sets[0].sources, sets[1].sources)
        return Project(roles, model, training_of(model), adapted)
    try:
        roles, facts = Roles.from_dict(table["roles"]), TrainingFacts.from_dict(table["training"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(
            f"{path} is not loaded: what it says of its table is malformed ({error!r})."
        ) from error
    return Project(roles, model, facts, adapted)
