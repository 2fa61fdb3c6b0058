"""A model together with its table: what `fit` makes, `adapt` adapts, and a model file keeps as `table_`."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

import sfboost
from sfboost.boosting import AdaptedClassifier, DomainEvaluation, DomainScores, StableFeatureBoosting
from sfboost.boosting.evaluation import (
    able_to_play,
    default_classifier,
    metric_of,
    pooled_proba,
    rows_to_learn,
    score_as_new,
    too_few,
    turns,
)
from sfboost.boosting.scored_domains import ANSWER, SKIPPED, skipped
from sfboost.columns import StableFeatureSelector
from sfboost.encoding import Encoder
from sfboost.marginal.probabilities import IntArray
from sfboost.report import ReportFacts, TrainingFacts, describe_training, make_facts
from sfboost.report.training import evaluation_rows, training_of
from sfboost.tables.preparing import NewTable, TrainingTable
from sfboost.tables.reading import ENDINGS
from sfboost.tables.roles import COMPONENTS, Roles
from sfboost.tables.writing import is_stream

_LOG = logging.getLogger(__name__)
_LABEL_SHIFT = re.compile(r" With kind='likelihood' (.*?) would be stable\.")
# Standard errors of the slopes are worth their time up to here.
MOST_PARAMETERS = 100
# Columns that a search is told of one by one.
_MOST_COLUMNS = 12


@dataclass(frozen=True, eq=False)
class Project:
    """Everything that is known after `fit`, and after `adapt`.

    Attributes
    ----------
    roles : Roles
    encoder : Encoder
    model : StableFeatureBoosting
        Of the encoded columns.
    training : TrainingFacts
        For reports: no training row is kept.
    pooled : fitted classifier or None
        Of all encoded columns, where the model itself has none; see `pooled_proba`.
    adapted : AdaptedClassifier or None
    """

    roles: Roles
    encoder: Encoder
    model: StableFeatureBoosting
    training: TrainingFacts
    pooled: Any
    adapted: AdaptedClassifier | None = None

    def adapt(self, new: NewTable, *, answer: str = "best", leak: float | None = None) -> Project:
        """Adapt to the rows of a new domain; of labels only those that `known` has are looked at."""
        n_parameters = (len(self.model.unstable_columns_) + 1) * len(self.model.classes_)
        adapted = self.model.adapt(
            new.X,
            new.known,
            answer=answer,
            leak=leak,
            uncertainty=n_parameters <= MOST_PARAMETERS,
        )
        return replace(self, adapted=adapted)

    def pooled_proba(self, X: Any) -> Any:
        """What one classifier of all features says, as if nothing changed between domains."""
        return pooled_proba(self.model, X) if self.pooled is None else self.pooled.predict_proba(X)

    def facts(
        self,
        new: NewTable,
        *,
        title: str,
        source: str,
        rows: bool,
        ids: bool = False,
        remarks: tuple[str, ...] = (),
    ) -> ReportFacts:
        """What the report shows about the adaptation to these rows; `ids` are shown only if asked for."""
        return make_facts(
            self.require_adapted(),
            self.training,
            new.X,
            title=title,
            source=source,
            y=new.y,
            pooled=self.pooled,
            cells=self._cells(new, ids) if rows else None,
            missing=self.encoder.missing_shares(new.table),
            remarks=(*remarks, *new.remarks),
        )

    def _cells(self, new: NewTable, ids: bool) -> list[Mapping[str, Any]]:
        stable = self.stable_columns
        others = [column.name for column in self.encoder.columns if column.name not in stable]
        # The id first, then the unstable features: they are why a prediction changed.
        id = [self.roles.id] if ids and self.roles.id in new.table.column_names else []
        return new.table.select([*id, *others, *stable]).to_pylist()

    @property
    def stable_columns(self) -> tuple[str, ...]:
        """Columns of the table whose encoded columns are all stable."""
        stable = set(self.model.stable_columns_.names)
        return tuple(column.name for column in self.encoder.columns if set(column.outputs) <= stable)

    def require_adapted(self) -> AdaptedClassifier:
        """The adapted classifier, which must be there."""
        if self.adapted is None:
            raise ValueError(
                "This model is not adapted yet: `sfboost adapt MODEL NEW -o ADAPTED` does that first."
            )
        return self.adapted


def learn(
    training: TrainingTable,
    settings: StableFeatureBoosting,
    *,
    evaluate: bool,
    answer: str = "best",
) -> Project:
    """Fit the model to labelled rows and keep what reports need.

    `answer` is what the model will be asked for: own domains are answered alike.
    """
    check_id(training.roles.id, np.unique(training.y))
    model = configure(training, settings)
    try:
        rows = (training.X, training.y, training.domain)
        facts = describe_training(model, *rows, play=answer == "best")
    except ValueError as error:
        raise ValueError(in_options(str(error))) from error
    facts = replace(facts, missing=training.missing())
    if evaluate and len(training.domains) > 1:
        with suppress(ValueError):  # no domain can play the new one: the report then says that it was not run
            found = evaluate_domains(training, settings, answer)
            facts = replace(facts, evaluation=evaluation_rows(found))
    pooled = None
    if model.pooled_ is None:
        pooled = default_classifier(training.X) if model.regression_ is None else clone(model.regression_)
        pooled.fit(training.X, training.y)
    # The model gets the encoder itself, so that it reads raw rows wherever it is loaded.
    model.stable_columns_ = model.stable_columns_.encoded_by(training.encoder)
    model.unstable_columns_ = model.unstable_columns_.encoded_by(training.encoder)
    if model.pooled_ is not None:
        model.pooled_ = replace(model.pooled_, columns=(model.stable_columns_, model.unstable_columns_))
    return Project(training.roles, training.encoder, model, facts, pooled)


def drift_lines(facts: TrainingFacts) -> list[str]:
    """What a search for stable columns found, the chosen ones and the least drift first."""
    if not facts.drifts:
        return []
    first = facts.drifts[:_MOST_COLUMNS]
    width = max(len(column["name"]) for column in first)
    lines = [
        "searched for stable columns (*: chosen); drift between training domains, and the most it can be:",
        *(
            f"{' *'[c['selected']]} {c['name']:<{width}}  {c['drift']:.3f}  {c['upper']:.3f}  {c['why']}"
            for c in first
        ),
    ]
    if len(facts.drifts) > len(first):
        lines.append(f"  and {len(facts.drifts) - len(first)} more (--json has all)")
    return lines


def in_options(sentence: str) -> str:
    """A sentence of the library in the words of the command line.

    Examples
    --------
    >>> in_options("Pass more rows, raise tolerance, or name stable_features by knowledge.")
    'Pass more rows or name them with --stable by knowledge.'
    """
    return (
        _LABEL_SHIFT.sub(r" If shares of classes alone differ, \1 would be stable.", sentence)
        .replace(", raise tolerance, or ", " or ")
        .replace("or name stable_features", "or name them with --stable")
        .replace("name stable_features", "name them with --stable")
        .replace("unstable_features", "--unstable")
        .replace("stable_features", "--stable")
    )


def evaluate_domains(
    training: TrainingTable,
    settings: StableFeatureBoosting,
    answer: str = "best",
) -> DomainEvaluation:
    """Let each domain play the new one, from the table on: `sfboost run --hold-out` for all of them."""
    if len(training.domains) < 2:
        raise ValueError(
            f"Evaluating needs at least two domains, got {training.domains[0]!r} alone: with one there is "
            "none left to train on."
        )
    some = rows_to_learn(configure(training, settings), training.y, training.domain)
    playing = able_to_play(training.domain)
    made: dict[str, DomainScores] = {}
    for together in turns(in_order(playing)):
        _LOG.info("Own domains as the new one: %d of %d done", len(made), len(playing))
        made |= {one.domain: one for one in _score_turn(training, settings, together, some, answer)}
    sizes, by = Counter(training.domain.tolist()), metric_of(settings)
    scores = tuple(made.get(name) or too_few(name, sizes[name], by) for name in in_order(training.domains))
    if all(score.decision == SKIPPED for score in scores):
        raise ValueError(f"No domain can play the new one. {scores[0].domain}: {scores[0].reason}")
    return DomainEvaluation(scores)


def in_order(names: Sequence[str]) -> list[str]:
    """Years and other numbers as they count, names as they come.

    Examples
    --------
    >>> in_order(["10", "9", "8.5"]), in_order(["va", "hungary"])
    (['8.5', '9', '10'], ['va', 'hungary'])
    """
    try:
        return sorted(names, key=float)
    except ValueError:
        return list(names)


def _score_turn(
    training: TrainingTable,
    settings: StableFeatureBoosting,
    together: Sequence[str],
    some: IntArray,
    answer: str,
) -> list[DomainScores]:
    try:
        rest, here = training.hold_out(together, some)
        rows, new = (rest.X, rest.y, rest.domain), {name: (h.X, h.labels) for name, h in here.items()}
        return score_as_new(configure(rest, settings), rows, new, answer=answer)
    except ValueError as error:  # the others lack a class, or rows: that must not stop the rest
        if len(together) == 1:
            n_rows = int((training.domain == together[0]).sum())
            return [skipped(together[0], n_rows, in_options(str(error)), metric_of(settings))]
    return [one for name in together for one in _score_turn(training, settings, [name], some, answer)]


def configure(training: TrainingTable, settings: StableFeatureBoosting) -> StableFeatureBoosting:
    """The model, unfitted, with the columns of the table."""
    roles, encoder = training.roles, training.encoder
    stable: Any = encoder.outputs_of(roles.stable)
    if roles.search:
        whole = {output: column.name for column in encoder.columns for output in column.outputs}
        stable = StableFeatureSelector(groups=whole)
    unstable: Any = encoder.outputs_of(roles.unstable) or (None if roles.search else [])
    if roles.components:
        unstable = COMPONENTS
    if not roles.search and not stable:
        raise ValueError(
            "The stable columns hold one category each and say nothing: name others with --stable."
        )
    if not roles.search and not unstable:
        raise ValueError(
            "The unstable columns hold one category each and say nothing: name others with --unstable."
        )
    return clone(settings).set_params(stable_features=stable, unstable_features=unstable)


def as_plain(project: Project) -> dict[str, Any]:
    """What a file keeps beside the model itself."""
    return {
        "roles": project.roles.to_dict(),
        "training": project.training.to_dict(),
        "pooled": project.pooled,
    }


def from_python(model: StableFeatureBoosting, adapted: AdaptedClassifier | None) -> Project:
    """A project of a model that was fitted to a frame in Python: it knows how to read its columns."""
    sets, encoder = (model.stable_columns_, model.unstable_columns_), model.encoder_
    if encoder is None or any(columns.encoder is None for columns in sets if len(columns)):
        raise ValueError(
            "it was fitted in Python to an array, or with a pipeline that reads its columns itself, so that "
            "the command cannot know how to read a table: load it in Python with sfboost.load"
        )
    roles = Roles(None, None, None, sets[0].sources, sets[1].sources)
    return Project(roles, encoder, model, training_of(model), None, adapted)


def from_plain(values: Any, model: StableFeatureBoosting, adapted: AdaptedClassifier | None) -> Project:
    """The inverse of `as_plain`."""
    try:
        return Project(
            Roles.from_dict(values["roles"]),
            _encoder_of(model),
            model,
            TrainingFacts.from_dict(values["training"]),
            values["pooled"],
            adapted,
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"what it says of its table is malformed ({error!r})") from error


def _encoder_of(model: StableFeatureBoosting) -> Encoder:
    if model.encoder_ is None:
        raise ValueError("no encoder is in it")
    return model.encoder_


def class_names(project: Project) -> list[str]:
    """Classes as text, in the order of the probabilities."""
    return [str(name) for name in np.asarray(project.model.classes_).tolist()]


def prediction_columns(classes: Any, also: Sequence[str] = ()) -> list[str]:
    """Columns of the predictions beside the id."""
    names = np.asarray(classes).tolist()
    kinds = dict.fromkeys((ANSWER, "stable", *also))
    return ["prediction", "decision", *(f"{kind}_{name}" for kind in kinds for name in names)]


def check_id(id: str | None, classes: Any, also: Sequence[str] = ()) -> None:
    """Refuse an id whose name the predictions need for a column of their own."""
    if id in prediction_columns(classes, also):
        raise ValueError(
            f"The id {id!r} is also the name of a column of the predictions: rename it, or name another."
        )


def save_project(project: Project, path: Path, trusted: Collection[str] = ()) -> None:
    """Write a model, adapted or not, so that `sfboost.load` reads it too."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # An adapted model may know more of its rows than the fitted one: directions along which it adapted.
    model = copy(project.model if project.adapted is None else project.adapted.model)
    if project.roles.target is not None:  # else fitted in Python: the model itself says all
        model.table_ = as_plain(project)
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
    table = getattr(model, "table_", None)
    try:
        return from_python(model, adapted) if table is None else from_plain(table, model, adapted)
    except ValueError as error:
        raise ValueError(f"{path} is not loaded: {error}.") from error
