"""`paribus orders`: statistics of several orderings."""

import csv
import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from paribus.cli import main
from paribus.tokenization import Tokenizer
from support.command_line import OVERRIDES, paribus, write_text_files
from support.packings import slow_text_shuffle

ORDERINGS = "standard,sequential,nn,cluster,in_context,in_context_released,lexical"
OPTIONS = (*OVERRIDES, "duplicates=exact", "embedder.dimensions=16", "model.context_length=256")


@pytest.fixture(scope="module")
def ordered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory in which all orderings of a small corpus were compared."""
    directory = tmp_path_factory.mktemp("orders")
    write_text_files(directory)
    done = paribus(directory, "orders", "-m", *OPTIONS, f"ordering={ORDERINGS}")
    assert all(name in done.stdout for name in ORDERINGS.split(","))
    return directory


@pytest.fixture
def own(ordered: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of that directory, in which commands are given."""
    shutil.copytree(ordered, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def rows(directory: Path) -> dict[str, dict[str, str]]:
    (path,) = (directory / "paribus_runs/orders").glob("*/statistics.csv")
    with path.open(encoding="utf-8", newline="") as file:
        return {row["ordering"]: row for row in csv.DictReader(file)}


def test_statistics_say_which_orderings_put_related_documents_into_a_context(ordered: Path) -> None:
    found = rows(ordered)
    assert list(found) == ORDERINGS.split(",")
    inside = {name: float(row["similarity_inside"]) for name, row in found.items()}
    for name in ("nn", "cluster", "in_context", "in_context_released", "lexical"):
        assert inside[name] > inside["standard"] + 0.1
        assert inside[name] > float(found[name]["similarity_shuffled"]) + 0.1
    following = [abs(float(row["similarity_following"]) - float(row["similarity_random"])) for row in found.values()]
    assert max(following) < 0.2
    assert {row["documents"] for name, row in found.items() if name != "in_context_released"} == {
        found["standard"]["documents"]
    }


def check_readings(artifacts: Path) -> None:
    """Compute slowly, from order and tokens, which contexts are read at each step; compare with the training's."""
    (record,) = (artifacts / "training").glob("*/record.json")
    inputs = json.loads(record.read_text(encoding="utf-8"))["inputs"]
    trained = json.loads((record.parent / "contexts.json").read_text(encoding="utf-8"))
    order = np.load(artifacts / "order" / inputs["order"] / "order.npy").tolist()
    tokens = artifacts / "tokens" / inputs["tokens"]
    offsets, ids = np.load(tokens / "offsets.npy").tolist(), np.load(tokens / "ids.npy").tolist()
    sizes = Tokenizer.load(tokens / "tokenizer").token_byte_lengths().tolist()
    flat = [size for doc in order for size in (*(sizes[id] for id in ids[offsets[doc] : offsets[doc + 1]]), 0)]
    before = np.cumsum([0, *flat]).tolist()
    # A context predicts the token behind those it reads.
    length, batch = trained["context_length"], trained["global_batch"]
    count = len(range(0, len(flat) - length, length))
    places, read = [before[number * length] for number in range(count)], list[int]()
    while len(read) < trained["steps"] * batch:
        read += slow_text_shuffle(places, before[-1], 32 * length, 0, len(read) // count)
    read = read[: trained["steps"] * batch]
    assert hashlib.sha256(np.array(read, dtype="<i8").tobytes()).hexdigest() == trained["indices_sha256"]


def test_rows_of_different_embeddings_are_not_put_beside_each_other_in_silence(
    own: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = [option for option in OPTIONS if not option.startswith("embedder")]
    assert main(["orders", *options, "-m", "ordering=sequential", "embedder.dimensions=8,16"]) == 0
    assert "cannot be compared between rows" in " ".join(capsys.readouterr().out.split())


def test_the_training_reads_the_contexts_of_the_order_as_the_slow_shuffle_does(own: Path) -> None:
    assert main(["run", *OPTIONS, "ordering=in_context", "until=training"]) == 0
    check_readings(own / "paribus_runs/artifacts")
