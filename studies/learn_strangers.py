"""`SFBClassifier()` with every default on cues that it was not made for: stripes, patches, borders, tables.

    python studies/learn_strangers.py --seeds 3 --out learn_strangers.jsonl
    python studies/learn_strangers.py --out learn_strangers.jsonl --table

One line a case and seed; those that the file has are not run again. Each case draws labelled domains in which
a cue agrees with a noisy label more or less often, and new domains in which it agrees nine times in ten, by
chance, and one time in ten. Beside the stable part and the answer of `adapt`: a forest on all numbers, one
that was trained and tested on the same rows without the cue (CLEAN, what a stable part can have), and ORACLE,
which adapts with the labels of the test domain. Scores are balanced accuracies.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import ndimage
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import balanced_accuracy_score

from sfboost.torch import SFBClassifier
from sfboost_lab.experiments.origin import origin

NEW = (0.9, 0.5, 0.1)
#: What is scored → its name in tables; without a name it is in the records alone.
TITLES = {
    "forest": "forest",
    "CLEAN": "CLEAN",
    "stable": "stable",
    "answer": "answer",
    "without guard": None,
    "ORACLE": "labelled (ORACLE)",
}
#: Generator, agreement, number → rows, rows without the cue, labels.
Draw = Callable[[np.random.Generator, float, int], tuple[np.ndarray, ...]]


def stripes(X: np.ndarray, cue: np.ndarray, n: int) -> np.ndarray:
    """Every second row, or every second column, of the background is brighter."""
    rows, columns = np.zeros((2, *X.shape[2:]))
    rows[::2], columns[:, ::2] = 0.5, 0.5
    return X + np.where(cue[:, None, None, None] == 0, rows, columns)


def patch(X: np.ndarray, cue: np.ndarray, n: int) -> np.ndarray:
    """A small bright square, in a corner for each class."""
    X, size = X.copy(), max(2, X.shape[2] // 4)
    for k in range(n):
        top, left = (slice(-size, None) if bit else slice(0, size) for bit in (k & 1, k >> 1))
        X[cue == k, :, top, left] = 1.0
    return X


def border(X: np.ndarray, cue: np.ndarray, n: int) -> np.ndarray:
    """The outermost pixels are dark or bright."""
    X = X.copy()
    shown = np.zeros(X.shape[2:], dtype=bool)
    shown[[0, -1]] = shown[:, [0, -1]] = True
    X[:, :, shown] = (cue / (n - 1))[:, None, None]
    return X


def brightness(X: np.ndarray, cue: np.ndarray, n: int) -> np.ndarray:
    """The whole picture is darker or brighter."""
    return X * (0.4 + 0.6 * cue / (n - 1))[:, None, None, None]


def light(X: np.ndarray, cue: np.ndarray, n: int) -> np.ndarray:
    """Light from the left or from the right."""
    slope = np.linspace(0, 0.6, X.shape[3])
    return X + np.where(cue[:, None, None, None] == 0, slope, slope[::-1])


def grain(X: np.ndarray, cue: np.ndarray, n: int) -> np.ndarray:
    """Grain of the film: fine noise that is weak or strong."""
    rng = np.random.default_rng(len(X))
    return X + rng.normal(0, 0.1 + 0.3 * cue / (n - 1), (*X.shape[1:], len(X))).transpose(3, 0, 1, 2)


def colour(X: np.ndarray, cue: np.ndarray, n: int) -> np.ndarray:
    """The digit is in a channel for each class."""
    return np.where(np.arange(n)[:, None, None] == cue[:, None, None, None], X, 0.0)


def backdrop(X: np.ndarray, cue: np.ndarray, n: int) -> np.ndarray:
    """The background, not the digit, has a colour."""
    X = np.repeat(X, 3, axis=1)
    channel = (np.arange(3) == cue[:, None])[:, :, None, None]
    return np.maximum(X, np.where(channel, 0.6, 0.1))


def blur(X: np.ndarray, cue: np.ndarray, n: int) -> np.ndarray:
    """Out of focus, or sharp."""
    soft = ndimage.uniform_filter(X, (1, 1, 3, 3), mode="nearest")
    return np.where(cue[:, None, None, None] == 0, X, soft)


def rotation(X: np.ndarray, cue: np.ndarray, n: int) -> np.ndarray:
    """Leaning to the left or to the right."""
    turned = [ndimage.rotate(X, angle, (2, 3), reshape=False, order=1) for angle in (-25, 25)]
    return np.where(cue[:, None, None, None] == 0, *turned)


def moving_patch(X: np.ndarray, cue: np.ndarray, n: int) -> np.ndarray:
    """A bright square anywhere in the upper half, or anywhere in the lower one."""
    rng, X, (high, wide) = np.random.default_rng(len(X)), X.copy(), X.shape[2:]
    top, left = rng.integers(0, high // 2 - 1, len(X)), rng.integers(0, wide - 1, len(X))
    for i, (row, column) in enumerate(zip(top + cue * (high // 2), left, strict=True)):
        X[i, :, row : row + 2, column : column + 2] = 1.0
    return X


def saturation(X: np.ndarray, cue: np.ndarray, n: int) -> np.ndarray:
    """Any colour, pale or deep."""
    hue = np.random.default_rng(len(X)).dirichlet(np.ones(3), len(X))
    share = np.where(cue[:, None] == 0, 0.3, 0.9)
    return X * (share * hue * 3 + 1 - share)[:, :, None, None]


def two_sides(X: np.ndarray, cue: np.ndarray, n: int) -> np.ndarray:
    """A line at the left and the top, or at the right and the bottom."""
    X, end = X.copy(), -cue
    rows = np.arange(len(X))
    X[rows, :, end] = 0.8
    X[rows, :, :, end] = 0.8
    return X


def thickness(X: np.ndarray, cue: np.ndarray, n: int) -> np.ndarray:
    """Thin strokes, or thick ones."""
    return np.where(cue[:, None, None, None] == 0, X, ndimage.maximum_filter(X, (1, 1, 2, 2)))


def tint(first: tuple[float, ...], second: tuple[float, ...]) -> Callable[..., np.ndarray]:
    """The digit in one of two colours, which need not be as bright as each other."""

    def drawn(X: np.ndarray, cue: np.ndarray, n: int) -> np.ndarray:
        return X * np.where(cue[:, None] == 0, first, second)[:, :, None, None]

    return drawn


def inverted(X: np.ndarray, cue: np.ndarray, n: int) -> np.ndarray:
    """Bright on dark, or dark on bright."""
    return np.where(cue[:, None, None, None] == 0, X, 1 - X)


def stroke_texture(X: np.ndarray, cue: np.ndarray, n: int) -> np.ndarray:
    """Strokes that are whole, or chequered."""
    squares = 0.4 + 0.6 * (np.indices(X.shape[2:]).sum(axis=0) % 2)
    return X * np.where(cue[:, None, None, None] == 0, 1.0, squares)


def tinted_ground(X: np.ndarray, cue: np.ndarray, n: int) -> np.ndarray:
    """A white digit on one of two grounds, a yellow and a blue one."""
    ground = np.where(cue[:, None] == 0, [0.5, 0.4, 0.1], [0.1, 0.2, 0.3])
    return np.maximum(np.repeat(X, 3, axis=1), ground[:, :, None, None])


def vignette(X: np.ndarray, cue: np.ndarray, n: int) -> np.ndarray:
    """Light in the corners, or in the middle."""
    away = np.hypot(*(np.indices(X.shape[2:]) - (X.shape[2] - 1) / 2)) / 5
    return X + np.where(cue[:, None, None, None] == 0, 0.4 * away, 0.4 * (1 - away))


def shift(X: np.ndarray, cue: np.ndarray, n: int) -> np.ndarray:
    """A pixel to the right."""
    return np.where(cue[:, None, None, None] == 0, X, np.roll(X, 1, axis=3))


def checks(X: np.ndarray, cue: np.ndarray, n: int) -> np.ndarray:
    """A chequered background, fine or coarse."""
    i, j = np.indices(X.shape[2:])
    fine, coarse = 0.4 * ((i + j) % 2), 0.4 * ((i // 2 + j // 2) % 2)
    return np.maximum(X, np.where(cue[:, None, None, None] == 0, fine, coarse))


def noisy(rng: np.random.Generator, truth: np.ndarray, n: int, right: float) -> np.ndarray:
    """Another value than the truth in a share of the rows."""
    other = (truth + rng.integers(1, n, len(truth))) % n
    return np.where(rng.random(len(truth)) < right, truth, other)


def digits(cue_of: Callable[..., np.ndarray], n_classes: int = 2, rare: float | None = None) -> Draw:
    """Small or large digit (or which third), a quarter of the labels wrong, and a cue."""
    data = load_digits()
    images = (data.images / 16.0)[:, None]
    shape = data.target * n_classes // 10

    def draw(rng: np.random.Generator, agreement: float, n: int) -> tuple[np.ndarray, ...]:
        rows = rng.choice(len(images), n, replace=n > len(images))
        if rare is not None:
            common, few = (np.flatnonzero(shape == k) for k in (0, 1))
            count = round(rare * n)
            rows = np.r_[rng.choice(few, count), rng.choice(common, n - count)]
        # Of a rare class fewer labels are wrong: else nearly all that have it would be.
        wrong = 0.25 if rare is None else 0.05
        y = noisy(rng, shape[rows], n_classes, 1 - wrong)
        return cue_of(images[rows], noisy(rng, y, n_classes, agreement), n_classes), images[rows], y

    return draw


def mnist(cue_of: Callable[..., np.ndarray]) -> Draw:
    """The same on MNIST, 28 by 28 pixels."""
    from sfboost_lab.datasets import load

    data = load("colored_mnist", random_state=0)
    X = np.concatenate([data.xy(name)[0] for name in data.train]).max(axis=1, keepdims=True)
    y = np.concatenate([data.xy(name)[1] for name in data.train])

    def draw(rng: np.random.Generator, agreement: float, n: int) -> tuple[np.ndarray, ...]:
        rows = rng.choice(len(X), n, replace=False)
        return cue_of(X[rows], noisy(rng, y[rows], 2, agreement), 2), X[rows], y[rows]

    return draw


def table(rng: np.random.Generator, agreement: float, n: int) -> tuple[np.ndarray, ...]:
    """Five columns of which a curved rule says the class, three that follow the cue, four of noise."""
    clean = rng.normal(size=(n, 5))
    score = clean[:, 0] * clean[:, 1] + clean[:, 2] + 0.5 * clean[:, 3] ** 2 - 0.5
    y = noisy(rng, (score > 0).astype(int), 2, 0.8)
    cue = noisy(rng, y, 2, agreement)
    cues = 2.0 * cue[:, None] - 1 + rng.normal(0, [0.3, 1.0, 2.0], (n, 3))
    return np.c_[clean, cues, rng.normal(size=(n, 4))], clean, y


def easy(rng: np.random.Generator, agreement: float, n: int) -> tuple[np.ndarray, ...]:
    """What is stable is easier and better than the cue."""
    y = rng.integers(0, 2, n)
    clean = 2.0 * noisy(rng, y, 2, 0.95)[:, None] - 1 + rng.normal(0, 0.3, (n, 2))
    cue = noisy(rng, y, 2, agreement)
    hidden = np.c_[np.cos(3 * cue), np.sin(3 * cue)] + rng.normal(0, 0.4, (n, 2))
    return np.c_[clean, hidden, rng.normal(size=(n, 4))], clean, y


def crossed(rng: np.random.Generator, agreement: float, n: int) -> tuple[np.ndarray, ...]:
    """A table whose cue is whether two columns have the same sign; neither says anything by itself."""
    clean = rng.normal(size=(n, 4))
    y = noisy(rng, (clean[:, 0] + clean[:, 1] - 0.5 * clean[:, 2] > 0).astype(int), 2, 0.8)
    cue, first = noisy(rng, y, 2, agreement), rng.normal(size=n)
    second = np.abs(rng.normal(size=n)) * np.sign(first) * (2 * cue - 1)
    return np.c_[clean, first, second, rng.normal(size=(n, 3))], clean, y


#: Case → what draws it, agreements of the training domains, rows of each.
CASES: dict[str, tuple[Callable[[], Draw], tuple[float, ...], int]] = {
    "stripes": (lambda: digits(stripes), (0.9, 0.8), 500),
    "patch": (lambda: digits(patch), (0.9, 0.8), 500),
    "border": (lambda: digits(border), (0.9, 0.8), 500),
    "brightness": (lambda: digits(brightness), (0.9, 0.8), 500),
    "light": (lambda: digits(light), (0.9, 0.8), 500),
    "grain": (lambda: digits(grain), (0.9, 0.8), 500),
    "backdrop": (lambda: digits(backdrop), (0.9, 0.8), 500),
    "colour, 3 classes": (lambda: digits(colour, 3), (0.9, 0.75), 500),
    "patch, 3 classes": (lambda: digits(patch, 3), (0.9, 0.75), 500),
    "colour, 10 % positive": (lambda: digits(colour, 2, 0.05), (0.95, 0.85), 1500),
    "patch, 10 % positive": (lambda: digits(patch, 2, 0.05), (0.95, 0.85), 1500),
    "patch, 4 domains": (lambda: digits(patch), (0.95, 0.85, 0.75, 0.65), 400),
    "stripes, 3 domains": (lambda: digits(stripes), (0.95, 0.8, 0.4), 400),
    "colour, alike": (lambda: digits(colour), (0.87, 0.83), 500),
    "patch, alike": (lambda: digits(patch), (0.87, 0.83), 500),
    "patch, opposed": (lambda: digits(patch), (0.9, 0.2), 500),
    "MNIST, patch": (lambda: mnist(patch), (0.9, 0.8), 1500),
    "MNIST, stripes": (lambda: mnist(stripes), (0.9, 0.8), 1500),
    "table": (lambda: table, (0.95, 0.8), 1000),
    "table, 4 domains": (lambda: table, (0.95, 0.85, 0.75, 0.65), 500),
    "stable is easy": (lambda: easy, (0.9, 0.7), 500),
}
#: Held back while the rules were made, and run once when they stood.
LATE = {
    "blur": (lambda: digits(blur), (0.9, 0.8), 500),
    "rotation": (lambda: digits(rotation), (0.9, 0.8), 500),
    "moving patch": (lambda: digits(moving_patch), (0.9, 0.8), 500),
    "saturation": (lambda: digits(saturation), (0.9, 0.8), 500),
    "two sides": (lambda: digits(two_sides), (0.9, 0.8), 500),
    "two sides, alike": (lambda: digits(two_sides), (0.87, 0.83), 500),
    "MNIST, thickness": (lambda: mnist(thickness), (0.9, 0.8), 1500),
    "two sides, 10 % positive": (lambda: digits(two_sides, 2, 0.05), (0.95, 0.85), 1500),
    "crossed table": (lambda: crossed, (0.95, 0.8), 1000),
}
#: Colours and textures that were tried last. Bounded features and levelled grey were made with the colours of
#: the digit and of the ground in view.
COLOURS = {
    "red or yellow": (lambda: digits(tint((1, 0, 0), (1, 1, 0))), (0.9, 0.8), 500),
    "dark red or green": (lambda: digits(tint((0.5, 0, 0), (0, 1, 0))), (0.9, 0.8), 500),
    "orange or blue": (lambda: digits(tint((1, 0.5, 0), (0.1, 0.2, 0.9))), (0.9, 0.8), 500),
    "inverted": (lambda: digits(inverted), (0.9, 0.8), 500),
    "stroke texture": (lambda: digits(stroke_texture), (0.9, 0.8), 500),
    "tinted ground": (lambda: digits(tinted_ground), (0.9, 0.8), 500),
    "vignette": (lambda: digits(vignette), (0.9, 0.8), 500),
    "shift": (lambda: digits(shift), (0.9, 0.8), 500),
    "checks": (lambda: digits(checks), (0.9, 0.8), 500),
}
CASES |= LATE | COLOURS


def run(case: str, seed: int) -> dict[str, Any]:
    """Train on one draw and score in every new domain."""
    make, agreements, n = CASES[case]
    draw, rng = make(), np.random.default_rng([seed, list(CASES).index(case)])
    parts = [draw(rng, agreement, n) for agreement in agreements]
    X, clean, y = (np.concatenate(both) for both in zip(*parts, strict=True))
    X, domain = X.astype(np.float32), np.repeat([f"e{k}" for k in range(len(parts))], n)
    began = time.process_time()
    model = SFBClassifier(random_state=seed).fit(X, y, sample_domain=domain)
    seconds = time.process_time() - began
    forests = [RandomForestClassifier(300, min_samples_leaf=5, random_state=seed) for _ in range(2)]
    pooled, best = (
        forest.fit(part.reshape(len(y), -1), y) for forest, part in zip(forests, (X, clean), strict=True)
    )
    scores: dict[str, list[float]] = {title: [] for title in TITLES}
    decisions = []
    for agreement in NEW:
        X_new, clean_new, y_new = draw(rng, agreement, 1000)
        X_new = X_new.astype(np.float32)
        adapted = model.adapt(X_new)
        decisions.append([adapted.decision_, adapted.reason_])
        said = {
            "forest": pooled.predict(X_new.reshape(len(y_new), -1)),
            "CLEAN": best.predict(clean_new.reshape(len(y_new), -1)),
            "stable": model.predict(X_new),
            "answer": adapted.predict(X_new),
            "without guard": model.adapt(X_new, answer="paper").predict(X_new),
            "ORACLE": model.adapt(X_new, y=y_new, answer="paper").predict(X_new),
        }
        for title, labels in said.items():
            scores[title].append(round(float(balanced_accuracy_score(y_new, labels)), 4))
    return {
        "case": case,
        "seed": seed,
        **origin(),
        "chosen": model.search_[0]["candidate"],
        "risks": {line["candidate"]: round(line["risk"], 3) for line in model.search_},
        "shown_stable": model.verification_.stable,
        "verification": model.verification_.reason,
        "seconds": round(seconds, 1),
        "decisions": decisions,
        "scores": scores,
    }


def shown(lines: list[dict[str, Any]]) -> str:
    """Means by case, in %: at agreement 0.9, 0.5 and 0.1."""
    titles = {title: name for title, name in TITLES.items() if name is not None}
    made = ["| | shown stable | " + " | ".join(titles.values()) + " |", "|---" * (len(titles) + 2) + "|"]
    for case in CASES:
        own = [line for line in lines if line["case"] == case]
        if not own:
            continue
        means = [100 * np.mean([line["scores"][title] for line in own], axis=0) for title in titles]
        cells = [" / ".join(f"{value:.0f}" for value in mean) for mean in means]
        count = sum(line["shown_stable"] for line in own)
        stable = ("no", "yes")[count] if len(own) == 1 else f"{count} of {len(own)}"
        made.append(f"| {case} | {stable} | " + " | ".join(cells) + " |")
    return "\n".join(made)


def main() -> None:
    """Run what is missing, then print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--case", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--table", action="store_true", help="run nothing")
    args = parser.parse_args()
    lines = [json.loads(line) for line in args.out.read_text().splitlines()] if args.out.exists() else []
    done = {(line["case"], line["seed"]) for line in lines}
    for case, seed in () if args.table else [(c, s) for s in range(args.seeds) for c in args.case]:
        if (case, seed) in done:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            lines.append(run(case, seed))
        with args.out.open("a") as file:
            file.write(json.dumps(lines[-1]) + "\n")
    print(shown(lines))


if __name__ == "__main__":
    main()
