"""The real files: their hashes and counts, as the loaders see them."""

import os
from pathlib import Path

import numpy as np
import pytest

from sfboost.frames import EncodingWarning
from sfboost_lab.datasets import load
from sfboost_lab.datasets.registry import fetch_all

pytestmark = [
    pytest.mark.data,
    pytest.mark.skipif(not os.environ.get("SFBOOST_DATA"), reason="SFBOOST_DATA is not set"),
]


def needs(path):
    if not Path(os.environ["SFBOOST_DATA"], path).exists():
        pytest.skip(f"{path} is not in the folder SFBOOST_DATA names")


TABLES = ("heart_disease", "amazon_reviews", "wine_quality", "gusto", "impact", "tv16", "eicu")


@pytest.mark.parametrize("name", ["colored_mnist", *TABLES])
def test_the_files_are_the_known_ones(name):
    got = fetch_all(name)
    assert got
    assert all(holding.genuine for holding in got)


def test_mnist_has_sixty_and_ten_thousand_images():
    made = load("colored_mnist", test_agreements=(0.1, 0.9))
    sizes = {domain.name: len(domain) for domain in made.domains}
    assert sizes == {
        **{f"train-{a}": 25_000 for a in (0.9, 0.8)},
        **{f"validate-{a}": 10_000 for a in (0.9, 0.8)},
        **{f"oracle-{a}": 10_000 for a in (0.5, 0.1)},
        **{f"test-{a}": 10_000 for a in (0.1, 0.9)},
    }
    domain = made.domain("test-0.1")
    assert domain.X.shape == (10_000, 2, 14, 14)
    color = domain.X.sum(axis=(2, 3)).argmax(axis=1)
    assert np.mean(color == domain.y) == pytest.approx(0.1, abs=0.012)


@pytest.mark.long
def test_pacs_has_9991_pictures_of_seven_classes():
    needs("pacs160.tar")
    pacs = load("pacs")
    assert {domain.name: len(domain) for domain in pacs.domains} == {
        "art_painting": 2048,
        "cartoon": 2344,
        "photo": 1670,
        "sketch": 3929,
    }
    assert pacs.classes == ("dog", "elephant", "giraffe", "guitar", "horse", "house", "person")
    picture = pacs.domain("sketch").X[-1]
    assert picture.shape == (3, 160, 160)
    assert picture.dtype == np.uint8


def test_the_four_hospitals_have_their_rows_and_rates():
    pytest.importorskip("pandas", reason="tables need pandas: pip install 'sfboost[app]'")
    heart = load("heart_disease")
    facts = {d.name: (len(d), round(float(d.y.mean()), 3)) for d in heart.domains}
    assert facts == {
        "cleveland": (303, 0.459),
        "hungary": (294, 0.361),
        "switzerland": (123, 0.935),
        "va": (200, 0.745),
    }
    with pytest.warns(EncodingWarning, match=r"Missing in va rows;.* 'ca' in 99 % \(0\)"):
        encoded = load("heart_disease", encoded=True)
    assert all(np.isfinite(d.X).all() for d in encoded.domains)


@pytest.mark.parametrize(
    ("name", "n_domains", "n_rows", "rates"),
    [
        ("gusto", 16, 40_830, (0.05, 0.09)),
        ("impact", 15, 11_022, (0.15, 0.46)),
        ("eicu", 4, 1713, (0.06, 0.15)),
    ],
)
def test_a_trial_has_its_domains_and_shares(name, n_domains, n_rows, rates):
    pytest.importorskip("pandas", reason="tables need pandas: pip install 'sfboost[app]'")
    made = load(name)
    assert (len(made.domains), sum(map(len, made.domains))) == (n_domains, n_rows)
    shares = [float(domain.y.mean()) for domain in made.domains]
    assert rates[0] < min(shares) < max(shares) < rates[1]


def test_the_twelve_largest_states_and_all_hospitals():
    pytest.importorskip("pandas", reason="tables need pandas: pip install 'sfboost[app]'")
    states = load("tv16")
    sizes = [len(domain) for domain in states.domains]
    assert states.domain_names[0] == "California"
    assert sizes == sorted(sizes, reverse=True)
    assert (len(sizes), sizes[0], sizes[-1]) == (12, 4136, 1243)
    assert sum(map(len, load("tv16", states=51).domains)) == 44_932
    hospitals = [len(domain) for domain in load("eicu", by="hospital").domains]
    assert (len(hospitals), min(hospitals), max(hospitals), sum(hospitals)) == (174, 3, 18, 1838)


@pytest.mark.parametrize("name", TABLES)
def test_every_column_of_a_split_is_stable_or_unstable(name):
    pytest.importorskip("pandas", reason="tables need pandas: pip install 'sfboost[app]'")
    made = load(name)
    columns = range(made.domains[0].X.shape[1])
    named = made.feature_names if isinstance(made.stable_features[0], str) else list(columns)
    assert sorted([*made.stable_features, *made.unstable_features]) == sorted(named)
