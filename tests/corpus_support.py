"""Files, configurations and contexts for the tests of the corpus."""

import dataclasses
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from paribus.config.groups.corpus import CorpusConfig, FilesCorpus
from paribus.config.groups.training import EqualTokensBudget
from paribus.corpus.stages import build
from paribus.pipeline.context import JSON
from run_config import run_config
from stage_support import context_at


def build_corpus(corpus: CorpusConfig, output: Path, *, workers: int = 1) -> dict[str, JSON]:
    """Run the stage `corpus` with its artefact at `output`."""
    config = run_config(corpus=corpus, budget=EqualTokensBudget(tokens=1000))
    return build(context_at(output, output.with_name(output.name + ".work"), config, {}, workers=workers))


def files_corpus(*paths: Path | str, **fields: Any) -> FilesCorpus:
    """A corpus of files of which a third is held out."""
    return dataclasses.replace(FilesCorpus(paths=tuple(map(str, paths)), heldout=1 / 3), **fields)


def write_jsonl(path: Path, rows: Iterable[Any]) -> Path:
    """Rows as JSON lines."""
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path
