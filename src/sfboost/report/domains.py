"""The page about many new domains: an overview that can be sorted, and a part of each that one opens."""

from __future__ import annotations

from base64 import b64encode
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from typing import Any

import numpy as np
import numpy.typing as npt
from jinja2 import Environment, StrictUndefined

import sfboost
from sfboost.boosting import AdaptedDomains
from sfboost.change import FeatureChange
from sfboost.report.page import library_versions, unbroken

# So many domains, the most unusual ones, have a part of their own.
_MOST_PARTS = 200


@dataclass(frozen=True)
class DomainFact:
    """One line of the overview, and the part below it.

    Attributes
    ----------
    n_changed : int
        Rows whose class is another one than by the stable features alone.
    stable, answer : float or None
        Accuracy with the labels that were given, by the stable features alone and by the answer.
    features : tuple of FeatureChange
    """

    name: str
    n_rows: int
    decision: str
    verdict: str
    adjusted: float
    chance: float
    unusual: float
    n_changed: int
    stable: float | None
    answer: float | None
    reason: str
    features: tuple[FeatureChange, ...]


def domain_facts(
    many: AdaptedDomains,
    X: Any,
    domain: npt.NDArray[Any],
    y: npt.NDArray[Any] | None = None,
    asked: Collection[Any] = (),
) -> list[DomainFact]:
    """What the page says of each domain, the most unusual ones first; `y` is for scores alone.

    Those that are `asked` for have a part of their own, too.
    """
    stable, answer = many.model.predict(X), many.predict(X, domain)
    place = {name: number for number, name in enumerate(many.domains)}
    number = np.array([place[name] for name in domain.tolist()])
    known = np.zeros(len(number)) if y is None else np.array([label in many.classes_ for label in y.tolist()])

    def mean(right: npt.NDArray[Any]) -> list[float | None]:
        hits, seen = np.bincount(number, right * known), np.bincount(number, known)
        return [h / n if n else None for h, n in zip(hits.tolist(), seen.tolist(), strict=True)]

    scores = [mean(said == y) if y is not None else [None] * len(place) for said in (stable, answer)]
    changed = np.bincount(number, stable != answer)
    made = []
    for rank, row in enumerate(many.overview()):
        at, shown = place[row.name], rank < _MOST_PARTS or row.name in asked
        made.append(
            DomainFact(
                str(row.name),
                row.n_rows,
                row.decision,
                row.verdict,
                row.adjusted,
                row.chance,
                row.unusual,
                int(changed[at]),
                scores[0][at],
                scores[1][at],
                many.reasons_[row.name] if shown else "",
                many.changes_[row.name].features if shown and many.changes_ is not None else (),
            )
        )
    return made


def render_domains(
    facts: Sequence[DomainFact], title: str, source: str = "", made: str = "", command: str = ""
) -> str:
    """The page. Everything that came from a table is escaped, and only our own few lines of script run.

    `made` is the date to show, and `command` what was typed to make it, if any.
    """
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, finalize=unbroken, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {
        "percent": lambda value: "–" if value is None else f"{100 * value:.1f} %",
        "p": lambda value: "< 0.001" if value < 0.001 else f"{value:.3f}",
    }
    counts = Counter(fact.decision for fact in facts)
    return environment.from_string(_PAGE).render(
        facts=facts,
        title=title,
        source=source,
        made=made,
        command=command,
        version=sfboost.__version__,
        versions=library_versions(),
        advice=[(counts[kind], words) for kind, words in _ADVICE.items() if counts[kind]],
        script=_SORT,
        hash=b64encode(sha256(_SORT.encode()).digest()).decode(),
        style=files("sfboost.report").joinpath("page.css").read_text(encoding="utf-8"),
        scored=any(fact.answer is not None for fact in facts),
        tested=any(fact.verdict for fact in facts),
        weighed=any(fact.chance == fact.chance for fact in facts),  # it is NaN where nothing is known
        changed=sum(fact.verdict == "changed" for fact in facts),
        parts=[(number, fact) for number, fact in enumerate(facts, 1) if fact.reason],
    )


_ADVICE = {
    "pooled": "all features as trained",
    "adapted": "an answer that allows for a changed meaning",
    "blended": "a blend: a change is neither shown beyond doubt nor ruled out",
    "kept stable": "the stable features alone: nothing better is known",
}


_SORT = """
for (const [column, head] of [...document.querySelectorAll("thead th button")].entries())
  head.onclick = () => {
    const body = document.querySelector("tbody");
    const down = head.dataset.down = head.dataset.down === "1" ? "" : "1";
    const key = row => row.children[column].dataset.key ?? row.children[column].textContent;
    const order = (a, b) => isNaN(a) || isNaN(b) ? a.localeCompare(b) : a - b;
    const rows = [...body.rows].sort((a, b) => order(key(a), key(b)));
    body.append(...(down ? rows.reverse() : rows));
  };
"""

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy"
  content="default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{{ hash }}'">
<meta name="color-scheme" content="light dark">
<title>{{ title }} – sfboost report</title>
<style>{{ style | safe }}
thead button { all: unset; cursor: pointer; text-decoration: underline dotted; }
thead button:focus-visible { outline: 2px solid var(--link); }</style>
</head>
<body>
<header>
  <p class="overline">sfboost report{% if source %} · {{ source }}{% endif %}</p>
  <h1>{{ title }}</h1>
  <p class="lead">{{ facts | length }} new domains, each with an answer of its own.</p>
  <ul>
{% for count, words in advice %}
  <li><strong>{{ count }}</strong>: {{ words }}.</li>
{% endfor %}
  </ul>
{% if tested %}
{% if changed %}
  <p>A meaning is called changed in {{ changed }} of them. At most one in twenty of these is expected not to
  be: p-values are adjusted for the number of domains.
{% else %}
  <p>In none of them is a meaning called changed; p-values are adjusted for the number of domains.
{% endif %}
{% if weighed %}
  Answers are weighed by how likely a change is, given all domains.
{% endif %}
  </p>
{% endif %}
  <p class="quiet">Unusual: standard errors by which the unstable features say something else than in the own
  domains. Unlike the stable ones: predictions that are not what the stable features alone say. A click on
  a heading sorts.</p>
</header>
<section>
<div class="scroll" tabindex="0" role="region" aria-label="Overview">
<table class="figures">
<thead><tr>
{% for head in ["domain", "rows", "decision", "meaning", "adjusted p"]
  + (["change likely"] if weighed else []) + ["unusual", "unlike the stable ones"]
  + (["accuracy, stable features", "accuracy, answer"] if scored else []) %}
<th scope="col"><button type="button">{{ head }}</button></th>
{% endfor %}
</tr></thead>
<tbody>
{% for fact in facts %}
<tr><th scope="row">
{%- if fact.reason %}<a href="#part{{ loop.index }}">{{ fact.name }}</a>{% else %}{{ fact.name }}{% endif -%}
</th><td>{{ fact.n_rows }}</td><td>{{ fact.decision }}</td>
<td{% if fact.verdict == "changed" %} class="changed"{% endif %}>{{ fact.verdict or "–" }}</td>
<td data-key="{{ fact.adjusted if tested else 1 }}">{{ fact.adjusted | p if tested else "–" }}</td>
{% if weighed %}
<td data-key="{{ fact.chance }}">{{ "%.0f %%" % (100 * fact.chance) }}</td>
{% endif %}
<td>{{ "%.1f" % fact.unusual }}</td><td data-key="{{ fact.n_changed }}">{{ fact.n_changed }}</td>
{% if scored %}
<td data-key="{{ fact.stable if fact.stable is not none else -1 }}">{{ fact.stable | percent }}</td>
<td data-key="{{ fact.answer if fact.answer is not none else -1 }}">{{ fact.answer | percent }}</td>
{% endif %}
</tr>
{% endfor %}
</tbody>
</table>
</div>
</section>
<section>
<h2>By domain</h2>
{% if parts | length < facts | length %}
<p class="quiet">The {{ parts | length }} most unusual ones, and those that were asked for.</p>
{% endif %}
{% for number, fact in parts %}
<details><summary>{{ fact.name }}: {{ fact.decision }}</summary>
<p id="part{{ number }}">{{ fact.reason }}</p>
{% if fact.features %}
<table class="parts"><tr><th>unstable feature</th><th>meaning left</th><th>p</th></tr>
{% for feature in fact.features %}
<tr><td>{{ feature.name }}</td><td>{{ "%.0f" % (100 * feature.left) }} %</td>
<td>{{ feature.p_value | p }}</td></tr>
{% endfor %}
</table>
{% endif %}
</details>
{% endfor %}
</section>
<footer>
  <p>Made{% if made %} on {{ made }}{% endif %} by sfboost {{ version }} ({{ versions }}):
  Stable Feature Boosting (Eastwood et al., NeurIPS 2023). This page loads nothing.</p>
{% if command %}
  <p><code>{{ command }}</code></p>
{% endif %}
</footer>
<script>{{ script | safe }}</script>
</body>
</html>
"""
