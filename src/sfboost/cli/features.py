"""`sfboost features`: pictures in, a table of a network's features out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfboost.cli.console import Voice, say, speaking
from sfboost.whole_files import whole_file

if TYPE_CHECKING:
    from sfboost.datasets.images import ImageSequence


@speaking
def features(
    pictures: Annotated[
        Path,
        typer.Argument(
            metavar="PICTURES", help="Folder of DOMAIN/CLASS/picture; or a folder of pictures, unlabelled."
        ),
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="Parquet file to write.")],
    size: Annotated[int, typer.Option(min=8, help="Side of the square that pictures are resized to.")] = 224,
    jobs: Annotated[int, typer.Option(min=1, help="Processes.")] = 1,
) -> None:
    """Turn pictures into rows of features of EfficientNet-Lite0, with columns for file, domain and label.

    Features are kept by the content of the pictures: a stopped run goes on where it was. Then
    `sfboost run train.parquet new.parquet --target label --domain domain --id file --unstable components`.
    """
    from sfboost.datasets.features import EfficientNetFeatures, extract

    if output.suffix != ".parquet":
        raise ValueError(f"{output} is to be a Parquet file: call it {output.with_suffix('.parquet')}.")
    found, columns = _find(pictures)
    with Voice().waiting(f"Looking at {len(found)} pictures"):
        rows = extract(found, EfficientNetFeatures(size), n_jobs=jobs)
    _write(columns, rows, output)
    say(f"{len(rows)} pictures, {rows.shape[1]} features: {output}")


def _find(root: Path) -> tuple[ImageSequence, dict[str, list[str]]]:
    """The pictures, and what their folders say of them."""
    from sfboost.datasets.images import PICTURES, ImageSequence, image_folder

    files = sorted(path for path in root.iterdir() if path.is_file()) if root.is_dir() else []
    names = [path.name for path in files if path.name.lower().endswith(PICTURES)]
    if names:
        return ImageSequence(root, names), {"file": names, "domain": [root.name] * len(names)}
    dataset = image_folder(root)
    sequences: list[Any] = [domain.X for domain in dataset.domains]
    return sum(sequences[1:], sequences[0]), {
        "file": [name for sequence in sequences for name in sequence.names],
        "domain": [domain.name for domain in dataset.domains for _ in range(len(domain))],
        "label": [str(dataset.classes[k]) for domain in dataset.domains for k in domain.y],
    }


def _write(columns: dict[str, list[str]], rows: Any, output: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    numbers = {f"f{j}": rows[:, j] for j in range(rows.shape[1])}
    with whole_file(output) as part:
        pq.write_table(pa.table({**columns, **numbers}), part)
