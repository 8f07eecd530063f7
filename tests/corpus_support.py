"""Files, configurations and contexts for the tests of the corpus."""

import dataclasses
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from paribus.config.groups.corpus import CorpusConfig, FilesCorpus
from paribus.config.groups.evaluation import EvaluationConfig
from paribus.config.groups.execution import EngineConfig, ScaleConfig, TrackingConfig
from paribus.config.groups.ordering import StandardOrdering
from paribus.config.groups.tokenization import BytesTokenizer, MergeRankEncoder, PatternPretokenizer
from paribus.config.groups.training import EqualTokensBudget, ModelConfig, TrainingConfig
from paribus.config.schema import RunConfig
from paribus.corpus.stages import build
from paribus.engine.local import LocalEngine
from paribus.pipeline.context import JSON, SilentReporter, StageContext


def run_config(corpus: CorpusConfig) -> RunConfig:
    """A run that differs from others in its corpus only."""
    return RunConfig(
        corpus=corpus,
        pretokenizer=PatternPretokenizer(),
        tokenizer=BytesTokenizer(),
        encoder=MergeRankEncoder(),
        ordering=StandardOrdering(),
        model=ModelConfig(width=8, layers=1, heads=1, ffn_width=16),
        budget=EqualTokensBudget(tokens=1000),
        training=TrainingConfig(),
        evaluation=EvaluationConfig(),
        tracking=TrackingConfig(),
        engine=EngineConfig(),
        scale=ScaleConfig(),
    )


def build_corpus(corpus: CorpusConfig, output: Path, *, workers: int = 1) -> dict[str, JSON]:
    """Run the stage `corpus` with its artefact at `output`."""
    output.mkdir(parents=True)
    work = output.with_name(output.name + ".work")
    work.mkdir()
    context = StageContext(run_config(corpus), {}, output, work, SilentReporter(), LocalEngine(workers))
    return build(context)


def files_corpus(*paths: Path | str, **fields: Any) -> FilesCorpus:
    """A corpus of files of which a third is held out."""
    return dataclasses.replace(FilesCorpus(paths=tuple(map(str, paths)), heldout=1 / 3), **fields)


def write_jsonl(path: Path, rows: Iterable[Any]) -> Path:
    """Rows as JSON lines."""
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path
