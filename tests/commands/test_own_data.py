"""A data set directory of the user's own, equal text, and scores averaged over the last checkpoints."""

import json
from pathlib import Path
from typing import Any

import pandas
import pytest

from support.command_line import paribus, write_corpus

BUDGET = 60_000
STEP_TEXT = 8 * 64 * 12
"""More bytes of text than one step of the tiny scale can hold: contexts x tokens x longest average token."""


def records(directory: Path, stage: str) -> list[dict[str, Any]]:
    paths = sorted((directory / "paribus_runs/artifacts" / stage).glob("*/record.json"))
    return [json.loads(path.read_text(encoding="utf-8")) for path in paths]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two tokenizers at equal text on a local data set directory, scored at their last two checkpoints."""
    directory = tmp_path_factory.mktemp("own")
    write_corpus(directory)
    overrides = (
        "scale=tiny",
        "corpus=huggingface",
        "corpus.name=texts",
        "corpus.heldout=0.2",
        "corpus.near_duplicate=null",
        "budget=equal_text",
        f"budget.text={BUDGET}",
        "evaluation.last_checkpoints=2",
        "evaluation.continuation_items=16",
        "evaluation.shots=[0]",
        "tracking=none",
    )
    done = paribus(directory, "run", "-m", *overrides, "tokenizer=bpe,bytes")
    assert "2 of 2 runs done" in done.stdout
    return directory


def test_equal_text_reads_the_same_text_with_different_numbers_of_tokens(finished: Path) -> None:
    results = [record["result"] for record in records(finished, "training")]
    assert all(BUDGET <= result["text_bytes"] < BUDGET + STEP_TEXT for result in results)
    tokens = sorted(result["tokens"] for result in results)
    assert tokens[1] > 2 * tokens[0]
    assert all({"steps", "flops", "parameters", "epochs"} <= set(result) for result in results)


def test_the_last_two_checkpoints_are_scored_and_both_kept_item_by_item(finished: Path) -> None:
    for path in (finished / "paribus_runs/artifacts/evaluation").glob("*/items.parquet"):
        items = pandas.read_parquet(path)
        assert items["checkpoint"].nunique() == 2
        assert items.groupby("checkpoint")["item"].nunique().nunique() == 1


def test_the_heldout_documents_were_never_trained_on(finished: Path) -> None:
    (corpus,) = (finished / "paribus_runs/artifacts/corpus").iterdir()
    train, heldout = (set(pandas.read_parquet(corpus / split)["text"]) for split in ("train", "heldout"))
    assert train
    assert heldout
    assert not train & heldout
