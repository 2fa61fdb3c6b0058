"""How often the test of a changed meaning fires on real tables, and what mending could save.

    python studies/study_change.py --data DIR [--tables heart impact] [--domains 3] [--learner boosting]

DIR has `heart_disease/`, `impact/`, `tv16/` and `gusto/`. Each domain in turn is the new one; `--domains E`
keeps E of the others. Which columns are stable was written down by their names, before any result of this
study. "mended" puts each changed feature back as what the other features say of it, plus its own residual
with the sign and scale that the test found; where nothing is left of its meaning it is dropped. No label of
the new domain is used but for the scores.
"""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sfboost.change import Reference, View, change_in
from sfboost.encoding import Encoder

KINDS = (
    *("as is", "X_S moved", "shares moved", "all mirrored", "strongest mirrored", "strongest shuffled"),
    *("all shuffled", "class means turned", "attenuated", "other unit"),
)
MOST_GROUPS = 8
CODES = ("cp", "restecg", "slope", "thal")
HEART = [
    "age",
    "sex",
    "cp",
    "trestbps",
    "chol",
    "fbs",
    "restecg",
    "thalach",
    "exang",
    "oldpeak",
    "slope",
    "ca",
    "thal",
    "num",
]


def read(name, folder):
    """Stable columns, unstable columns, labels and domains of a table."""
    if name == "heart":
        parts = []
        for hospital in ("cleveland", "hungarian", "switzerland", "va"):
            path = folder / "heart_disease" / f"processed.{hospital}.data"
            parts.append(pd.read_csv(path, header=None, names=HEART, na_values="?").assign(place=hospital))
        rows = pd.concat(parts, ignore_index=True)
        return rows, ["age", "sex", "cp", "trestbps"], HEART[4:13], rows["num"] > 0, rows["place"]
    rows = pd.read_csv(folder / name / f"{name}.csv.gz")
    if name == "impact":
        return (
            rows,
            ["age", "motor_score", "pupil"],
            ["ct", "hypox", "hypots", "tsah", "edh"],
            rows["mort"],
            rows["name"],
        )
    if name == "gusto":
        stable = ["age", "sex", "height", "weight", "pmi", "htn", "smk", "prevcvd", "prevcabg", "fam"]
        unstable = ["Killip", "sysbp", "pulse", "hyp", "hrt", "ttr", "ste", "miloc", "sho"]
        return rows, stable, unstable, rows["day30"], rows["regl"]
    rows = rows[rows["state"].isin(rows["state"].value_counts().index[:12])].reset_index(drop=True)
    stable = [
        "age",
        "female",
        "collegeed",
        "racef",
        "famincr",
        "bornagain",
        "religimp",
        "churchatd",
        "prayerfreq",
    ]
    unstable = ["ideo", "pid7na", "angryracism", "whiteadv", "fearraces", "racerare"]
    return rows, stable, unstable, rows["votetrump"], rows["state"]


def encoded(rows, columns):
    """Columns as numbers, and which feature each belongs to."""
    encoder = Encoder.fit(rows[columns], columns, [column for column in CODES if column in columns])
    groups = [i for i, column in enumerate(encoder.columns) for _ in column.outputs]
    return encoder.encode(rows[columns]), np.array(groups)


def classifier(kind):
    if kind == "logistic":
        return make_pipeline(StandardScaler(), LogisticRegression(max_iter=500))
    return HistGradientBoostingClassifier(max_iter=60, max_leaf_nodes=15, random_state=0)


class Predictors:
    """f_S and the pooled classifier of some rows, and how each feature follows from the others."""

    def __init__(self, S, U, y, kind):
        self.stable = classifier(kind).fit(S, y)
        self.pooled = classifier(kind).fit(np.hstack([S, U]), y)
        self.scale = StandardScaler().fit(np.hstack([S, U]))
        Z = np.column_stack([self.scale.transform(np.hstack([S, U])), np.ones(len(y))])
        self.gram, self.n_stable = Z.T @ Z / len(Z), S.shape[1]

    def view(self, S, U):
        features = self.scale.transform(np.hstack([S, U]))[:, : self.n_stable]
        pooled = self.pooled.predict_proba(np.hstack([S, U]))
        return View.of(self.stable.predict_proba(S), U, pooled, features)

    def mended(self, S, U, columns, left):
        """U with the changed columns put back as far as something of them is left."""
        Z = np.column_stack([self.scale.transform(np.hstack([S, U])), np.ones(len(S))])
        turned = self.n_stable + np.asarray(columns)
        kept = np.setdiff1d(np.arange(Z.shape[1]), turned)
        own = self.gram[np.ix_(kept, kept)] + 1e-3 * np.eye(len(kept))
        then = np.linalg.solve(own, self.gram[np.ix_(kept, turned)])
        here = Z[:, kept].T @ Z[:, kept] / len(Z) + 1e-3 * np.eye(len(kept))
        now = np.linalg.solve(here, Z[:, kept].T @ Z[:, turned] / len(Z))
        residual = Z[:, turned] - Z[:, kept] @ now
        spread = np.diag(self.gram)[turned] - (then * self.gram[np.ix_(kept, turned)]).sum(axis=0)
        unit = np.sqrt(np.maximum(spread, 0.0)) / np.maximum(residual.std(axis=0), 1e-6)
        sign = np.where(np.abs(left) < 0.35, 0.0, np.sign(left))
        Z[:, turned] = Z[:, kept] @ then + sign * np.clip(unit, 0.05, 20.0) * residual
        return self.scale.inverse_transform(Z[:, :-1])[:, self.n_stable :]


def changed(kind, S, U, y, strongest, rng):
    """Rows of the new domain after a change."""
    rows, U, n = np.arange(len(y)), U.copy(), len(y)
    if kind == "X_S moved":
        Z = StandardScaler().fit_transform(S)
        along = Z @ rng.normal(size=Z.shape[1])
        weight = np.exp(0.8 * along / along.std())
        rows = rng.choice(n, n, p=weight / weight.sum())
    elif kind == "shares moved":
        share = np.clip(y.mean() * rng.choice([0.5, 2.0]), 0.02, 0.9)
        weight = np.where(y == 1, share / y.mean(), (1 - share) / (1 - y.mean()))
        rows = rng.choice(n, n, p=weight / weight.sum())
    elif kind == "all mirrored":
        U = 2 * U.mean(axis=0) - U
    elif kind == "strongest mirrored":
        U[:, strongest] = 2 * U[:, strongest].mean(axis=0) - U[:, strongest]
    elif kind == "strongest shuffled":
        U[:, strongest] = U[rng.permutation(n)][:, strongest]
    elif kind == "all shuffled":
        U = U[rng.permutation(n)]
    elif kind == "class means turned":
        means = np.array([U[y == label].mean(axis=0) for label in (0, 1)])
        U = U - 2 * (means[y] - U.mean(axis=0))
    elif kind == "attenuated":
        U = np.where(rng.random(n)[:, None] < 0.5, U, U[rng.permutation(n)])
    elif kind == "other unit":
        U[:, strongest] = 4 * U[:, strongest] + 1
    return S[rows], U[rows], y[rows]


def study(name, folder, n_domains, kind):
    """One record for each new domain and each change."""
    rows, stable, unstable, label, domain = read(name, folder)
    (S, _), (U, groups) = encoded(rows, stable), encoded(rows, unstable)
    y, domain = label.to_numpy().astype(int), domain.to_numpy()
    places = list(dict.fromkeys(domain.tolist()))
    for i, new in enumerate(places):
        rng = np.random.default_rng([i, n_domains])
        own = [place for place in places if place != new]
        own = own if n_domains >= len(own) else [own[j] for j in rng.permutation(len(own))[:n_domains]]
        inside = np.isin(domain, own)
        predictors = Predictors(S[inside], U[inside], y[inside], kind)
        views = {}
        for first in range(min(MOST_GROUPS, len(own))):
            out = own[first::MOST_GROUPS]
            rest = inside & ~np.isin(domain, out)
            others = Predictors(S[rest], U[rest], y[rest], kind)
            views |= {place: others.view(S[domain == place], U[domain == place]) for place in out}
        reference = Reference.learn(
            [views[place] for place in own], [y[domain == place] for place in own], own, groups=groups
        )
        weight = np.bincount(groups, reference.importance)
        here, strongest = domain == new, groups == weight.argmax()
        for change in KINDS:
            S_new, U_new, y_new = changed(change, S[here], U[here], y[here], strongest, rng)
            view = predictors.view(S_new, U_new)
            found = change_in(reference, view)
            answers = {"pooled": view.log_pooled, "stable": view.log_stable, "mended": view.log_pooled}
            if found.verdict == "changed":
                parts = [feature for feature in found.features if feature.name in found.changed]
                columns = [column for part in parts for column in part.columns]
                left = [ratio for part in parts for ratio in part.left]
                put_back = predictors.mended(S_new, U_new, columns, left)
                answers["mended"] = predictors.view(S_new, put_back).log_pooled
            scores = {key: float((value.argmax(axis=1) == y_new).mean()) for key, value in answers.items()}
            yield {"table": name, "new": str(new), "change": change, "p": found.p_value, **scores}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="Folder of the tables.")
    parser.add_argument("--tables", nargs="+", default=["heart", "impact", "tv16", "gusto"])
    parser.add_argument("--domains", type=int, default=99, help="Own domains to keep; all by default.")
    parser.add_argument("--learner", choices=["logistic", "boosting"], default="logistic")
    told = parser.parse_args()
    for name in told.tables:
        records = pd.DataFrame(study(name, told.data, told.domains, told.learner))
        records["alarm"] = records["p"] < 0.05
        shown = (
            100 * records.groupby("change")[["alarm", "pooled", "stable", "mended"]].mean().loc[list(KINDS)]
        )
        print(f"{name}: {records['new'].nunique()} domains, {told.learner}\n{shown.round(1)}\n", flush=True)


if __name__ == "__main__":
    main()
