"""`paribus order`: statistics of several orderings, when a document is read, and what is near to it."""

import csv
import json
import re
from pathlib import Path

import pandas
import pytest
from command_line import OVERRIDES, paribus, write_corpus

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
        assert inside[name] > float(found[name]["similarity_random"]) + 0.1
    following = [abs(float(row["similarity_following"]) - float(row["similarity_random"])) for row in found.values()]
    assert max(following) < 0.2
    assert {row["documents"] for name, row in found.items() if name != "in_context_released"} == {
        found["standard"]["documents"]
    }


def test_every_picture_and_table_is_written_and_no_model_is_trained(ordered: Path) -> None:
    (text,) = (ordered / "paribus_runs/orders").glob("*/statistics.md")
    content = text.read_text(encoding="utf-8")
    pictures = re.findall(r"\((plots/\w+\.png)\)", content)
    assert len(pictures) == 6
    assert all((text.parent / picture).stat().st_size > 5000 for picture in pictures)
    assert all(f"| {name} |" in content for name in ORDERINGS.split(","))
    stages = {path.name for path in (ordered / "paribus_runs/artifacts").iterdir()}
    assert {"checkpoints", "scores", "tasks"} & stages == set()
    assert "contexts" in stages


def test_where_names_the_steps_that_the_training_then_reads(ordered: Path) -> None:
    told = paribus(ordered, "order", "where", "#7", *OPTIONS, "ordering=in_context").stdout
    steps = {int(step.replace(",", "")) for step in re.findall(r"^  step ([\d,]+): context", told, re.MULTILINE)}
    assert "place in the order (from 0):" in told and steps
    paribus(ordered, "run", *OPTIONS, "ordering=in_context")
    (record,) = (ordered / "paribus_runs/artifacts/checkpoints").glob("*/record.json")
    assert max(steps) <= json.loads(record.read_text(encoding="utf-8"))["result"]["steps"]
    assert re.search(r"tokens of #7 ", told)


def test_near_shows_the_nearest_documents_as_text(ordered: Path) -> None:
    told = paribus(ordered, "order", "near", "#7", *OPTIONS, "ordering=in_context").stdout
    assert told.startswith("#7 ")
    similarities = [float(value) for value in re.findall(r"^\d+\. (-?\d\.\d{4}) #", told, re.MULTILINE)]
    assert len(similarities) == 10 and similarities == sorted(similarities, reverse=True)


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
        (("where", "#1", *OPTIONS, "-m", "seed=0,1"), "2 configurations are too many"),
    ],
)
def test_a_wrong_request_is_refused_by_name(ordered: Path, arguments: tuple[str, ...], message: str) -> None:
    assert message in paribus(ordered, "order", *arguments, expect=2).stderr
