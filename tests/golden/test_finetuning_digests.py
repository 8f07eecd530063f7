"""Pinned outputs of the stages of fine-tuning on a tiny input.

A value that changes means that the stage's `code_version` must change with it.
"""

import hashlib
import json
from pathlib import Path

import pytest

from support.finetunings import finetuned, write_checkpoint, write_task
from support.stages import files

DATA = {
    "qasper/documents.jsonl": "892ea69efb9a7947",
    "qasper/train.jsonl": "6feec13b6e745418",
    "qasper/validation.jsonl": "bde9b8d50faf9705",
}
LOSSES = [6.40287, 5.45385, 5.15784]


def test_examples_and_losses_keep_their_values(tmp_path: Path) -> None:
    write_task(tmp_path)
    write_checkpoint(tmp_path)
    finetuned(tmp_path)
    found = files(tmp_path / "finetuning_data")
    assert {name: hashlib.sha256(found[name]).hexdigest()[:16] for name in sorted(found)} == DATA
    lines = map(json.loads, (tmp_path / "finetuning/metrics.jsonl").read_text().splitlines())
    losses = [line["finetuning/qasper/loss"] for line in lines if "finetuning/qasper/loss" in line]
    assert losses == pytest.approx(LOSSES, rel=1e-4)
    assert sorted(files(tmp_path / "finetuning")) == [
        "items.parquet",
        "metrics.jsonl",
        "predictions.parquet",
        "statistics.json",
    ]
