import re
import warnings
from dataclasses import replace
from html.parser import HTMLParser

import matplotlib as mpl
import numpy as np
import pytest

from sfboost.boosting import DomainEvaluation
from sfboost.boosting.scored_domains import skipped
from sfboost.report import make_facts, render
from sfboost.report.pictures import draw_drifts, key_mark
from sfboost.report.training import evaluation_rows


class Outline(HTMLParser):
    """Collects addresses, and complains about tags that do not match."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open, self.addresses, self.tags = [], [], set()

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.addresses += [v for k, v in attributes if k in ("src", "href", "xlink:href", "data", "action")]
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.add(tag)

    def handle_endtag(self, tag):
        assert self.open, tag
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def page(case):
    return render(case.facts)


def test_tags_match_and_nothing_is_loaded(page):
    outline = Outline()
    outline.feed(page)
    assert outline.open == []
    assert outline.addresses == []
    assert not outline.tags & {"script", "link", "img", "iframe", "object", "form"}
    assert "url(" not in page
    assert "@import" not in page
    assert "default-src 'none'; style-src 'unsafe-inline'; img-src data:" in page


def test_what_came_from_a_table_is_escaped(page):
    assert "<script" not in page
    assert "West &lt;script&gt;" in page
    assert "A remark &amp; more." in page


def test_every_part_of_the_report_is_there(page, case):
    text = re.sub(r"<[^>]+>", " ", page)
    for heading in (
        *("With the labels of the target domain", "What the unstable features say", "Class balance"),
        *("Predictions that changed", "The assumptions"),
        *("Calibration in training", "In your source domains, each left out in turn"),
    ):
        assert heading in text
    assert all(check.verdict in text for check in case.facts.checks if check.bears)
    assert "labelled (ORACLE)" in text
    assert case.facts.changes.examples[0].cells["patient"] in text


def test_no_row_is_shown_where_none_was_given(case, new_features):
    page = render(make_facts(case.adapted, case.training, new_features, cells=None))
    assert "west-" not in page
    assert "No rows are shown, as was asked." in page


def test_the_recommendation_comes_first_then_the_picture_then_the_source_domains(page, case):
    places = [
        page.index(words)
        for words in (
            *(case.facts.headline.sentence, "What each unstable feature says", ">left out<"),
            *("With the labels of the target domain", "The assumptions"),
        )
    ]
    assert places == sorted(places)


def test_the_table_of_source_domains_ends_with_the_means(page, case):
    rows = re.findall(r"<tr[^>]*>.*?</tr>", page.partition("<th>left out</th>")[2].partition("</table>")[0])
    cells = [re.sub(r"<[^>]+>", " ", row).split() for row in rows]
    assert [row[0] for row in cells] == ["north", "south", "east", "mean"]
    answers = [row["scores"]["answer"]["accuracy"] for row in case.training.evaluation]
    assert f"{100 * np.mean(answers):.1f}" in cells[-1]
    regrets = [row["regret"] for row in case.training.evaluation]
    assert f"{100 * np.mean(regrets):.1f}" in cells[-1]


def test_a_page_of_very_many_domains_says_it_in_few_lines(case):
    """A hundred marks in a key, a hundred bars and a hundred rows said nothing."""
    names = [f"h{i}" for i in range(100)]
    one, north = case.training.domains[0], case.training.evaluation[0]
    training = replace(
        case.training,
        domains=tuple(replace(one, name=name) for name in names),
        evaluation=[north | {"domain": name} for name in names],
    )
    features = tuple(
        replace(m, own=dict.fromkeys(names, next(iter(m.own.values())))) for m in case.facts.features
    )
    missing = [("age", [0.1] * 99 + [0.6], 0.3)]
    facts = replace(case.facts, training=training, features=features, missing=missing)
    page = render(facts)
    key = page.partition('<ul class="key">')[2].partition("</ul>")[0]
    assert key.count("<li>") == 2
    assert "one of 100 source domains" in key
    assert "<title>h7: +" in page  # a stroke of each in the pictures
    shares = page.partition("<h2>Class balance</h2>")[2].partition("</section>")[0]
    assert "source domains, mean" in shares
    assert "h7" not in shares
    own = page.partition("In your source domains, each left out in turn")[2].partition("</section>")[0]
    before, _, folded = own.partition("<details><summary>Each of the 100 domains</summary>")
    assert (before.count('<th scope="row">'), folded.count('<th scope="row">')) == (1, 101)
    calibration = page.partition("<h2>Calibration in training</h2>")[2]
    before, _, folded = calibration.partition("<details><summary>Each of the 100 domains</summary>")
    assert (before.count('<th scope="row">'), folded.count('<th scope="row">')) == (0, 100)
    gaps = page.partition("<h2>What was missing</h2>")[2].partition("</table>")[0]
    assert re.findall(r"<td[^>]*>([^<]*)</td>", gaps) == ["10\u00a0%", "60\u00a0%", "30\u00a0%"]


def test_domains_that_were_skipped_are_told_in_one_sentence_and_have_no_row(case):
    few = [skipped(f"small {i}", 4, "4 rows are too few") for i in range(30)]
    records = [*case.training.evaluation, *evaluation_rows(DomainEvaluation(tuple(few)))]
    facts = replace(case.facts, training=replace(case.training, evaluation=records))
    page = render(facts)
    assert '<th scope="row">small' not in page
    assert "30 domains were skipped (small 0, small 1, small 2, small 3, small 4 and 25 more)" in page
    alone = replace(
        case.facts, training=replace(case.training, evaluation=evaluation_rows(DomainEvaluation(tuple(few))))
    )
    assert "30 domains were skipped" in render(alone)


@pytest.mark.parametrize("metric", ["log_loss", "balanced_accuracy"])
def test_source_domains_are_compared_by_what_was_asked_for(case, metric):
    records = [record | {"metric": metric} for record in case.training.evaluation]
    page = render(replace(case.facts, training=replace(case.training, evaluation=records)))
    table = page.partition("In your source domains, each left out in turn")[2].partition("</table>")[0]
    north = next(r["scores"] for r in records if r["domain"] == "north")
    best = (min if metric == "log_loss" else max)(north[m][metric] for m in ("answer", "stable", "pooled"))
    row = table.partition(">north<")[2].partition("</tr>")[0]
    shown = f"{best:.3f}" if metric == "log_loss" else f"{100 * best:.1f}\u00a0%"
    assert f'class="best">{shown}<' in row
    assert f"Compared by <strong>{metric.replace('_', ' ')}</strong>" in table
    heads = re.findall(r"<th>([^<]*?) [↑↓]</th>", table)
    assert metric.replace("_", " ") not in heads
    assert "accuracy" in heads


def test_thirty_six_domains_have_marks_of_their_own():
    assert len({key_mark(domain) for domain in range(36)}) == 36


def test_a_picture_is_drawn_in_the_page_s_style_whatever_the_user_s_own_is_and_its_words_are_no_markup():
    """A name may hold formulas, tags, colours and letters that no font of matplotlib has."""
    names = [
        "$x_1$ and $",
        "a <b>&",
        "#000003",
        "~0~n",
        "病院",
        "x\x1b",
        "a name that is much too long for it",
    ]
    lines = [{"name": n, "selected": True, "drift": 0.3, "by_domain": [0.1, 0.3]} for n in names]
    with mpl.rc_context({"text.usetex": True, "svg.fonttype": "path"}), warnings.catch_warnings():
        warnings.simplefilter("error")
        drawn = draw_drifts(lines, ["north", "so<i>uth"], 0.1)
        assert mpl.rcParams["text.usetex"]
    words = re.findall(r"<text [^>]*>([^<]*)</text>", drawn)
    shown = ["$x_1$ and $", "a &lt;b&gt;&amp;", "#000003", "~0~n", "病院", "x\\x1b", "a name that is mu…"]
    assert [word for word in words if word not in ("0", "0.1 is tolerated")] == shown
    assert "<title>north: +0.10</title>" in drawn
    assert "<title>so&lt;i&gt;uth: +0.30</title>" in drawn
    assert not re.search(r"#[0-9a-f]{6};|id=|href|url\(|font-family: [^v]", drawn)


def test_symbols_are_behind_a_fold(page):
    text = re.sub(r"<details>.*?</details>", "", page, flags=re.DOTALL)
    assert not re.search(r"\b[XfΦ]_[SU]\b", text)
    assert re.search(r"\b[XfΦ]_[SU]\b", page)


def test_the_page_says_when_and_with_what_it_was_made(case):
    page = render(case.facts, made="2026-01-02", command="sfboost run 'a <b>.csv'")
    assert "sfboost run &#39;a &lt;b&gt;.csv&#39;" in page.partition("<footer>")[2]
    assert "Made on 2026-01-02 by sfboost" in page
    assert "scikit-learn " in page.partition("<footer>")[2]


def test_the_best_scores_are_bold_and_what_looks_alike_is_marked_alike(case):
    by_method = {
        "stable": {"accuracy": 0.9001, "log_loss": 0.2, "auroc": np.nan},
        "answer": {"accuracy": 0.9004, "log_loss": 0.3, "auroc": np.nan},
        "pooled": {"accuracy": 0.8, "log_loss": 0.4, "auroc": np.nan},
    }
    scores = replace(case.facts.scores, metrics=("accuracy", "log_loss", "auroc"), by_method=by_method)
    page = render(replace(case.facts, scores=scores))
    table = page.partition("With the labels of the target domain")[2].partition("</table>")[0]
    bold = re.findall(r'class="best">([^<]+)<', table)
    assert bold == ["90.0\u00a0%", "0.200", "90.0\u00a0%"]


def test_the_page_says_how_many_labels_were_used(case):
    footer = render(case.facts).partition("<footer>")[2]
    assert "No label of the target domain was used to adapt." in footer
    taught = replace(case.facts, n_labelled=20)
    assert "20 labels of the target domain were used to adapt." in render(taught).partition("<footer>")[2]


def test_a_few_missing_cells_are_not_called_none(case):
    page = render(replace(case.facts, missing=(("chol", (0.0, 0.001, 0.2), 0.004),)))
    table = page.partition("What was missing")[2].partition("</table>")[0]
    shown = re.findall(r"<td[^>]*>([^<]+)<", table)
    assert shown == ["0\u00a0%", "&lt; 1\u00a0%", "20\u00a0%", "&lt; 1\u00a0%"]


def test_a_decision_that_nobody_could_be_sure_of_says_so_in_the_table(case):
    unclear = [record | {"unclear": True} for record in case.training.evaluation]
    page = render(replace(case.facts, training=replace(case.training, evaluation=unclear)))
    assert page.count(", cannot tell</td>") == len(case.training.domains)
    clear = [record | {"unclear": False} for record in case.training.evaluation]
    page = render(replace(case.facts, training=replace(case.training, evaluation=clear)))
    assert ", cannot tell</td>" not in page
