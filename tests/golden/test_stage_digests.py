"""The whole pipeline on a tiny corpus: what each exact stage makes is pinned beside its `code_version`.

A digest that changes means that the stage's `code_version` must be raised. Stages that compute in floating point are
pinned to rounded values in the other files of this folder.
"""

import hashlib
import json
from typing import Any

import pytest

from paribus.pipeline.graph import STAGES
from support.command_line import OVERRIDES, paribus, write_corpus

PINNED = {
    "corpus": (3, "47e2b4c34720028b"),
    "vocabulary": (5, "2d9cef2457fb64b0"),
    "tokens": (2, "b318b022d6a0e62f"),
    "order": (2, "648174ae20e15d2b"),
    "contexts": (2, "d926f240aa8db46d"),
    "tasks": (7, "1adadfe9e6a67d91"),
    "prompts": (1, "b017277de1ffac13"),
}
UNPINNED = {
    "embeddings", "neighbours", "lexical_neighbours", "duplicates", "context_statistics", "training", "evaluation",
    "token_statistics", "finetuning_data", "finetuning",
}  # fmt: skip


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    directory = tmp_path_factory.mktemp("pipeline")
    write_corpus(directory)
    chosen = ("tokenizer=scaffold_bpe", "encoder=longest_first", "scale.heldout_documents=20")
    chosen += ("scale.context_characters=100", "scale.continuation_characters=40")
    paribus(directory, "run", *OVERRIDES, *chosen)
    paths = (directory / "paribus_runs/artifacts").glob("*/*/record.json")
    return {path.parent.parent.name: json.loads(path.read_text(encoding="utf-8")) for path in paths}


def digest(record: dict[str, Any]) -> str:
    """Of the contents, where a stage reports it, since Parquet files name the library that wrote them."""
    if "digest" in record["result"]:
        return str(record["result"]["digest"])[:16]
    files = json.dumps({name: entry["sha256"] for name, entry in record["files"].items()}, sort_keys=True)
    return hashlib.sha256(files.encode()).hexdigest()[:16]


@pytest.mark.parametrize("stage", sorted(PINNED))
def test_a_stage_makes_what_its_code_version_promises(records: dict[str, dict[str, Any]], stage: str) -> None:
    assert (STAGES[stage].code_version, digest(records[stage])) == PINNED[stage]


def test_every_stage_is_pinned_here_or_beside_its_package() -> None:
    assert set(PINNED) | UNPINNED == {stage.artefact for stage in STAGES.values()}
