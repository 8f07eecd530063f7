"""`paribus order`: statistics of several orderings, when a document is read, and what is near to it."""

import csv
import hashlib
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pandas
import pytest

from paribus.commands.order import USAGE
from paribus.store.artifact import NOT_STAGES
from paribus.tokenization import Tokenizer
from support.command_line import OVERRIDES, paribus, write_corpus
from support.packings import slow_text_shuffle

ORDERINGS = "standard,sequential,nn,cluster,in_context,in_context_released,lexical"
OPTIONS = (*OVERRIDES, "duplicates=exact", "embedder.dimensions=16", "model.context_length=256")


@pytest.fixture(scope="module")
def ordered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory in which all orderings of a small corpus were compared."""
    directory = tmp_path_factory.mktemp("orders")
    write_corpus(directory)
    done = paribus(directory, "order", "statistics", "-m", *OPTIONS, f"ordering={ORDERINGS}")
    assert all(name in done.stdout for name in ORDERINGS.split(","))
    return directory


@pytest.fixture
def own(ordered: Path, tmp_path: Path) -> Path:
    """A copy of that directory for a test that makes more."""
    shutil.copytree(ordered, tmp_path, dirs_exist_ok=True)
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


def test_every_picture_and_table_is_written_and_no_model_is_trained(ordered: Path) -> None:
    (text,) = (ordered / "paribus_runs/orders").glob("*/statistics.md")
    content = text.read_text(encoding="utf-8")
    pictures = re.findall(r"\((plots/\w+\.svg)\)", content)
    assert len(pictures) == 6
    assert all((text.parent / picture).stat().st_size > 5000 for picture in pictures)
    assert all(f"| {name} |" in content for name in ORDERINGS.split(","))
    stages = {path.name for path in (ordered / "paribus_runs/artifacts").iterdir()}
    assert {"training", "evaluation", "tasks"} & stages == set()
    assert {"contexts", "context_statistics"} <= stages


def named_readings(told: str) -> list[tuple[int, int]]:
    """(step, context) of every line about a step."""
    lines = re.findall(r"^  step ([\d,]+): context ([\d,]+) of", told, re.MULTILINE)
    return [(int(step.replace(",", "")), int(context.replace(",", ""))) for step, context in lines]


def trained_contexts(artifacts: Path) -> tuple[list[set[int]], list[list[int]]]:
    """The documents of each context and the contexts of each step, slowly from the order and the tokens trained on."""
    (record,) = (artifacts / "training").glob("*/record.json")
    inputs = json.loads(record.read_text(encoding="utf-8"))["inputs"]
    trained = json.loads((record.parent / "contexts.json").read_text(encoding="utf-8"))
    order = np.load(artifacts / "order" / inputs["order"] / "order.npy").tolist()
    tokens = artifacts / "tokens" / inputs["tokens"]
    offsets, ids = np.load(tokens / "offsets.npy").tolist(), np.load(tokens / "ids.npy").tolist()
    sizes = Tokenizer.load(tokens / "tokenizer").token_byte_lengths().tolist()
    # Which document each token of the stream is of, the end behind a document included.
    stream = [document for document in order for _ in range(offsets[document], offsets[document + 1] + 1)]
    flat = [size for doc in order for size in (*(sizes[id] for id in ids[offsets[doc] : offsets[doc + 1]]), 0)]
    before = np.cumsum([0, *flat]).tolist()
    # A context predicts the token behind those it reads.
    length, batch = trained["context_length"], trained["global_batch"]
    contexts = [set(stream[start : start + length + 1]) for start in range(0, len(stream) - length, length)]
    places, read = [before[number * length] for number in range(len(contexts))], list[int]()
    while len(read) < trained["steps"] * batch:
        read += slow_text_shuffle(places, before[-1], 32 * length, 0, len(read) // len(contexts))
    read = read[: trained["steps"] * batch]
    assert hashlib.sha256(np.array(read, dtype="<i8").tobytes()).hexdigest() == trained["indices_sha256"]
    return contexts, [read[start : start + batch] for start in range(0, len(read), batch)]


def test_the_row_of_a_single_run_is_named_by_its_ordering(own: Path) -> None:
    shutil.rmtree(own / "paribus_runs/orders")
    paribus(own, "order", "statistics", *OPTIONS, "ordering=in_context")
    assert list(rows(own)) == ["in_context"]


def test_rows_of_different_embeddings_are_not_put_beside_each_other_in_silence(own: Path) -> None:
    options = [option for option in OPTIONS if not option.startswith("embedder")]
    sizes = ("-m", "ordering=sequential", "embedder.dimensions=8,16")
    told = paribus(own, "order", "statistics", *options, *sizes).stdout
    assert "cannot be compared between rows" in " ".join(told.split())


def test_what_a_table_is_made_of_stays_until_its_directory_has_gone(own: Path) -> None:
    (own / "paribus_runs/runs").mkdir()
    assert "nothing was removed" in paribus(own, "prune", "--yes").stdout
    shutil.rmtree(own / "paribus_runs/orders")
    assert "artefacts of no run" in paribus(own, "prune", "--yes").stdout
    assert not list((own / "paribus_runs/artifacts").glob("context_statistics/*"))


def test_where_names_the_steps_that_the_training_then_reads(own: Path) -> None:
    options = (*OPTIONS, "ordering=in_context")
    told = {number: paribus(own, "order", "where", f"#{number}", *options).stdout for number in (7, 43)}
    paribus(own, "run", *options)
    contexts, steps = trained_contexts(own / "paribus_runs/artifacts")
    for number, text in told.items():
        read = [
            (step, context)
            for step, batch in enumerate(steps, start=1)
            for context in sorted(batch)
            if number in contexts[context]
        ]
        assert read and named_readings(text) == read
        assert f"read {len(read)} times in {len(steps)} steps" in text
        assert "place in the order (from 0):" in text
        assert re.search(rf"tokens of #{number} ", text)


def test_where_and_near_show_help_and_configuration_like_other_verbs(tmp_path: Path) -> None:
    for action in ("statistics", "where", "near"):
        assert paribus(tmp_path, "order", action, "--help").stdout.startswith(USAGE)
    told = paribus(tmp_path, "order", "where", "doc5", "--cfg", "job", "ordering=lexical").stdout
    assert "kind: lexical" in told
    assert list(tmp_path.iterdir()) == []


def test_near_shows_the_nearest_documents_as_text(ordered: Path) -> None:
    told = paribus(ordered, "order", "near", "#7", *OPTIONS, "ordering=in_context").stdout
    assert told.startswith("#7 ")
    similarities = [float(value) for value in re.findall(r"^\d+\. (-?\d\.\d{4}) #", told, re.MULTILINE)]
    assert len(similarities) == 10 and similarities == sorted(similarities, reverse=True)


@pytest.mark.parametrize("action", ["where", "near"])
def test_a_document_is_looked_up_before_anything_but_the_corpus_is_made(tmp_path: Path, action: str) -> None:
    write_corpus(tmp_path)
    done = paribus(tmp_path, "order", action, "no such id", *OPTIONS, "ordering=in_context", expect=2)
    assert "no document of the training split has this id" in done.stderr
    assert {path.name for path in (tmp_path / "paribus_runs/artifacts").iterdir()} - {*NOT_STAGES} == {"corpus"}


def test_a_removed_document_is_named_with_the_one_that_stays(ordered: Path) -> None:
    options = (*OVERRIDES, "duplicates=minhash", "duplicates.threshold=0.5")
    assert "place in the order" in paribus(ordered, "order", "where", "#0", *options).stdout
    paths = (ordered / "paribus_runs/artifacts/duplicates").glob("*/removed.parquet")
    removed = next(table for table in map(pandas.read_parquet, paths) if len(table)).iloc[0]
    told = paribus(ordered, "order", "where", removed["id"], *options).stdout
    assert f"removed as near duplicate of #{removed['kept']} ({removed['kept_id']})" in told


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("wher",), "'wher' is no action; known: statistics, where, near"),
        (("where",), "which document? Give its id in the corpus, or #N"),
        (("where", "#99999", *OPTIONS), "#99999: the training split has documents #0 to #"),
        (("near", "no such id", *OPTIONS), "'no such id': no document of the training split has this id"),
        (("where", "--", "-x", *OPTIONS), "'-x': no document of the training split has this id"),
        (("near", *OPTIONS, "--", "-x"), "'-x': no document of the training split has this id"),
        (("where", *OPTIONS, "--"), "which document? Give its id in the corpus, or #N"),
        (("where", "#1", *OPTIONS, "-m", "seed=0,1"), "2 configurations are too many"),
    ],
)
def test_a_wrong_request_is_refused_by_name(ordered: Path, arguments: tuple[str, ...], message: str) -> None:
    assert message in paribus(ordered, "order", *arguments, expect=2).stderr
