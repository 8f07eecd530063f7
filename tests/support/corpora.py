"""Corpora for tests: artefacts that are written at once, and files that the stage `corpus` reads."""

import dataclasses
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from paribus.config.groups.corpus import CorpusConfig, FilesCorpus
from paribus.config.groups.training import EqualTokensBudget
from paribus.corpus.artifact import ROW_GROUP_BYTES, SHARD_BYTES, CorpusWriter
from paribus.corpus.build import build
from paribus.stage import JSON
from support.run_config import run_config
from support.stages import context_at

SMALL_PARTS = {"group_bytes": 60, "shard_bytes": 200}
"""Row groups and shards of a few documents."""


def build_corpus(corpus: CorpusConfig, output: Path, *, workers: int = 1) -> dict[str, JSON]:
    """Run the stage `corpus` with its artefact at `output`."""
    config = run_config(corpus=corpus, budget=EqualTokensBudget(tokens=1000))
    return build(context_at(output, output.with_name(output.name + ".work"), config, {}, workers=workers))


def write_corpus(
    path: Path,
    texts: Iterable[str],
    *,
    prefix: str = "",
    heldout: float = 0.0,
    group_bytes: int = ROW_GROUP_BYTES,
    shard_bytes: int = SHARD_BYTES,
) -> Path:
    """A corpus artefact of `texts`, all for training unless some are `heldout`.

    A document's id is `prefix` and its number. Row groups and shards end at so many bytes of text.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("paribus.corpus.artifact.ROW_GROUP_BYTES", group_bytes)
        with CorpusWriter(path, heldout=heldout, shard_bytes=shard_bytes) as writer:
            for number, text in enumerate(texts):
                writer.add(f"{prefix}{number}", text, "test")
    return path


def files_corpus(*paths: Path | str, **fields: Any) -> FilesCorpus:
    """A corpus of files of which a third is held out."""
    return dataclasses.replace(FilesCorpus(paths=tuple(map(str, paths)), heldout=1 / 3), **fields)


def write_jsonl(path: Path, rows: Iterable[Any]) -> Path:
    """Write rows as JSON lines, with the directory."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path
