import re
from html.parser import HTMLParser

import pytest

from sfboost.report import make_facts, render


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
        *("With the labels of the new domain", "What the unstable features mean", "Class balance"),
        *("Predictions that changed", "The break-even leak", "The assumptions", "Pseudo-label confusion"),
        *("Calibration in training", "What it would have gained on the training domains"),
    ):
        assert heading in text
    for check in case.facts.checks:
        assert check.verdict in text
    assert "labelled (ORACLE)" in text
    assert case.facts.changes.examples[0].cells["patient"] in text


def test_no_row_is_shown_where_none_was_given(case, new_features):
    page = render(make_facts(case.adapted, case.training, new_features, cells=None))
    assert "west-" not in page
    assert "No rows are shown, as was asked." in page


def test_the_page_is_the_same_every_time(case, page):
    assert render(case.facts) == page


def test_the_page_says_when_and_with_what_it_was_made(case):
    page = render(case.facts, made="2026-01-02")
    assert "Made on 2026-01-02 by sfboost" in page
    assert "scikit-learn " in page.partition("<footer>")[2]
