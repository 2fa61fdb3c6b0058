"""The page in a real browser: nothing is asked for, nothing complained about, and it fits a phone."""

import re

import pytest
from chromium import Chromium, find_chromium

from sfboost.report import render

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def looks(case, tmp_path_factory):
    path = find_chromium()
    if path is None:
        pytest.skip("no Chromium is installed")
    page = tmp_path_factory.mktemp("page") / "report.html"
    page.write_text(render(case.facts), encoding="utf-8")
    with Chromium(path) as browser:
        return {
            (width, theme): browser.look(page, width, dark=theme == "dark")
            for width in (400, 1400)
            for theme in ("light", "dark")
        }


@pytest.fixture(scope="module")
def opened(case, tmp_path_factory):
    """Ask the page on a phone."""
    path = find_chromium()
    if path is None:
        pytest.skip("no Chromium is installed")
    page = tmp_path_factory.mktemp("page") / "report.html"
    page.write_text(render(case.facts), encoding="utf-8")
    with Chromium(path) as browser:
        yield lambda expression: browser.ask(page, expression, width=400)


def test_no_request_leaves_the_page_and_the_console_is_silent(looks):
    for look in looks.values():
        assert look.requests == []
        assert look.complaints == []
        assert "What the unstable features say" in look.text  # it is the page that was looked at


def test_there_is_no_sideways_scroll(looks):
    for (width, _), look in looks.items():
        assert look.inner_width == width
        assert look.scroll_width <= width


def test_a_table_that_is_wider_than_a_phone_scrolls_by_itself_and_shows_that_there_is_more(opened):
    wide = """[...document.querySelectorAll('.scroll')]
        .filter(e => e.scrollWidth > e.clientWidth + 1).map(e => getComputedStyle(e))
        .map(e => e.overflowX + ' ' + (e.backgroundImage.match(/gradient/g) || []).length)"""
    assert set(opened(wide)) == {"auto 4"}


def test_words_of_a_picture_stay_inside_it(opened):
    outside = """[...document.querySelectorAll('svg[role=img]')].flatMap(svg => {
        const frame = svg.getBoundingClientRect();
        return [...svg.querySelectorAll('text')]
            .map(t => [t.textContent, t.getBoundingClientRect()])
            .filter(([_, box]) => box.width && (box.left < frame.left - 1 || box.right > frame.right + 1))
            .map(([words, _]) => words)})"""
    assert opened(outside) == []


def test_the_theme_follows_the_reader(looks):
    def brightness(theme):
        return sum(map(int, re.findall(r"\d+", looks[400, theme].background)[:3]))

    assert brightness("light") > 700
    assert brightness("dark") < 100
