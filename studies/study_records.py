"""Figures of docs/reproduction-details.md that no table shows, from committed records. Half a minute.

python studies/study_records.py
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from sfboost_lab.experiments import cmnist, cmnist_parts, synthetic
from sfboost_lab.experiments.committed import committed_records
from sfboost_lab.experiments.pictures import columns
from sfboost_lab.experiments.pictures import rows as picture_rows
from sfboost_lab.experiments.rules import LEAVE_ONE_OUT, VALIDATION_DOMAIN
from sfboost_lab.experiments.tables import chosen_records, make_table


def main() -> None:
    without_largest_weight()
    blind_choice_on_pacs()
    components_on_pacs()
    our_correction_on_colored_mnist()
    held_out()


def without_largest_weight() -> None:
    """SFB (paper) on synthetic data without λ_C = 3, and how often its f_S is near chance."""
    records = committed_records("synthetic")
    within = {i: r for i, r in records.items() if r.run.hyper.get("independence_weight") != 3}
    rows = [row for row in synthetic.sfb_rows(VALIDATION_DOMAIN) if row.hyper["split"] == "alternating"]
    for row, cells in make_table("", rows, synthetic.COLUMNS, within).rows:
        values = "  ".join(
            f"{column.label} {cell.mean:.1f} ± {cell.standard_error:.1f}"
            for column, cell in zip(synthetic.COLUMNS, cells, strict=True)
        )
        print(f"{row.label}, without λ_C = 3: {values}")
    stable = chosen_records(rows[0], synthetic.COLUMNS[1], records)
    low = [r.run.hyper["independence_weight"] for r in stable.values() if r.value("test-0.1") < 0.65]
    print(f"CE-DD, f_S below 65 %: {len(low)} seeds, with λ_C = {sorted(low)}")


def blind_choice_on_pacs() -> None:
    """How often leaving one style out prefers SFB on embeddings to our learned split."""
    records = committed_records("pacs")
    ours = {row.label: row for row in picture_rows(LEAVE_ONE_OUT)}
    preferred = []
    for column in columns(quick=False):
        both = [
            chosen_records(ours[name], column, records)
            for name in ("SFB (ours)", "SFB (ours), learned split")
        ]
        for seed in both[0]:
            scores = [LEAVE_ONE_OUT.score(chosen[seed].run, records) for chosen in both]
            preferred.append(scores[0].accuracy > scores[1].accuracy)
    print(f"PACS: embeddings preferred in {sum(preferred)} of {len(preferred)} cases")


def components_on_pacs() -> None:
    """What each number of components gains on PACS, and how often the stable predictor is kept."""
    records = committed_records("pacs")
    found: dict[tuple[str, int], list[tuple[float, bool]]] = defaultdict(list)
    for record in records.values():
        run = record.run
        if run.adapter == "sfb-components" and run.left_out is None:
            place = f"test-{run.data['test']}"
            gain = 100 * (record.value(place) - records[run.unadapted().id].value(place))
            kept = record.measured.diagnostics["decision"][place] == "kept stable"
            found[run.data["test"], run.adapter_hyper["n_components"]].append((gain, kept))
    for (style, n), seeds in sorted(found.items()):
        gains, kept = zip(*seeds, strict=True)
        print(f"PACS, {style}, {n:2} components: gain {min(gains):.1f} to {max(gains):.1f}, kept {sum(kept)}")


def our_correction_on_colored_mnist() -> None:
    """What stress domains choose for SFB (ours), and what each correction has at agreement 0.1."""
    records = committed_records(cmnist.PROTOCOL)
    column, chosen = cmnist.COLUMNS[0], Counter[str]()
    for record in chosen_records(cmnist_parts.SFB_OURS, column, records).values():
        chosen[_correction(record.run.adapter_hyper)] += 1
    print(f"ColoredMNIST, SFB (ours): stress domains choose {dict(chosen)}")
    for told in cmnist.OURS["sfb-flat"]:
        row = replace(cmnist_parts.SFB_OURS, rule=None, adapter_hyper=told)
        values = [
            100 * record.value(column.place) for record in chosen_records(row, column, records).values()
        ]
        print(f"ColoredMNIST, SFB (ours), {_correction(told)}: {np.mean(values):.2f} ({len(values)} seeds)")


def _correction(told: Mapping[str, Any]) -> str:
    return f"{told['correction']}, rounds {told.get('rounds')}"


def held_out() -> None:
    """ColoredMNIST, by features: held-out accuracy after three rounds."""
    records = committed_records(cmnist.PROTOCOL)
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    for whose in cmnist_parts.FEATURES:
        own = cmnist_parts.ablation_rows(whose)
        for record in chosen_records(own["+BC+CS, 3 rounds"], cmnist.COLUMNS[0], records).values():
            held = [100 * record.value(place) for place in record.measured.metrics if "held/" in place]
            found[whose, "held out, 3 rounds"].append(float(np.mean(held)))
    for (whose, what), values in found.items():
        print(f"{whose}: {what} {np.mean(values):.2f} ({len(values)} seeds)")


if __name__ == "__main__":
    main()
