"""A data set directory of the user's own, equal text, and scores averaged over the last checkpoints."""

import json
from pathlib import Path

import pandas
import pytest

from paribus.cli import main
from support.command_line import write_text_files

BUDGET = 20_000
STEP_TEXT = 8 * 64 * 12
"""More bytes of text than one step of the tiny scale can hold: contexts x tokens x longest average token."""


def test_tokenizers_read_equal_text_of_a_local_data_set_and_are_scored_at_their_last_checkpoints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_text_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    overrides = (
        "scale=tiny", "corpus=huggingface", "corpus.name=texts", "corpus.heldout=0.2", "corpus.near_duplicate=null",
        "budget=equal_text", f"budget.text={BUDGET}", "evaluation.last_checkpoints=2",
        "evaluation.continuation_items=16", "evaluation.heldout_documents=20", "evaluation.shots=[0]", "tracking=none",
    )  # fmt: skip
    assert main(["run", "-m", *overrides, "tokenizer=bpe,bytes"]) == 0
    artifacts = tmp_path / "paribus_runs/artifacts"
    records = [json.loads(path.read_text(encoding="utf-8")) for path in artifacts.glob("training/*/record.json")]
    results = [record["result"] for record in records]
    assert all(BUDGET <= result["text_bytes"] < BUDGET + STEP_TEXT for result in results)
    few, many = sorted(result["tokens"] for result in results)
    first, second = artifacts.glob("evaluation/*/items.parquet")
    assert many > 2 * few
    for place in (first, second):
        items = pandas.read_parquet(place)
        assert items["checkpoint"].nunique() == 2
        assert items.groupby("checkpoint")["item"].nunique().nunique() == 1
    (corpus,) = (artifacts / "corpus").iterdir()
    train, heldout = (set(pandas.read_parquet(corpus / split)["text"]) for split in ("train", "heldout"))
    assert train and heldout and not train & heldout
