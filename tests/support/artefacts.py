"""Every kind of artefact, small, made by the runner but in this process: starting a child costs a second a stage."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from paribus.checks import compose_command
from paribus.config.arguments import parse
from paribus.engine.local import LocalEngine
from paribus.pipeline import run as running
from paribus.pipeline.display import Display
from paribus.pipeline.graph import STAGES, Node, build_graph
from paribus.pipeline.root import OutputRoot
from paribus.pipeline.run import RunListener, StageRunner
from paribus.stage import SilentListener, StageContext
from paribus.store.artifacts import Artifact
from support.command_line import write_meetings, write_text_files

SMALL = (
    "scale=tiny",
    "corpus=files",
    "corpus.heldout=0.2",
    "corpus.near_duplicate=null",
    "evaluation.continuation_items=4",
    "evaluation.shots=[0]",
    "evaluation.last_checkpoints=1",
    "tokenizer.vocab_size=300",
    "model.width=16",
    "model.layers=1",
    "model.heads=1",
    "model.ffn_width=32",
    "budget.tokens=4K",
    "training.warmup_share=0",
    "tracking=none",
    "engine.workers=1",
)
EVERY_STAGE = (
    "finetuning=scrolls",
    "finetuning.tasks=[qmsum]",
    "finetuning.answer_characters=32",
    "finetuning.global_batch=2",
    "ordering=in_context",
    "duplicates=embedding",
    "start=continued",
    "start.tokens=2K",
)
"""What has every stage but `lexical_neighbours`."""


class Maker:
    """Graphs of a corpus below `directory`, whose artefacts are made without child processes."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(running, "execute", in_this_process)
        corpus = f"corpus.paths=['{directory}/texts/*.jsonl']"
        self._common = (*SMALL, corpus, f"evaluation.data={directory}/benchmarks", f"root={directory}/root")
        self.layout = OutputRoot(directory / "root", 30.0)
        self.console = Console(record=True, width=400)
        self.nodes = self._nodes()

    def _config(self, *overrides: str) -> Any:
        return compose_command(parse([*self._common, *overrides])).jobs[0].config

    def _nodes(self) -> dict[str, Node]:
        """A node of every stage, inputs before what needs them."""
        fine, lexical = self._config(*EVERY_STAGE), self._config("ordering=lexical", "duplicates=off")
        targets = ("evaluation", "finetuning", "context_statistics", "token_statistics")
        nodes = build_graph(fine, self.layout.cache, targets=targets)
        nodes |= build_graph(lexical, self.layout.cache, targets=("lexical_neighbours",))
        assert set(nodes) == set(STAGES), "a stage is in none of these graphs: add a configuration that needs it"
        return nodes

    def ensure(self, node: Node) -> Artifact:
        """Find or make one artefact; what is said about it is appended to `console`."""
        return StageRunner(self.layout, RunListener(Display(self.console), self.layout.path)).ensure(node)


@contextmanager
def small_maker(directory: Path) -> Iterator[Maker]:
    """A maker of artefacts of a small corpus, with meetings to fine-tune on, that are written into `directory`."""
    write_text_files(directory)
    write_meetings(directory)
    with pytest.MonkeyPatch.context() as monkeypatch:
        yield Maker(directory, monkeypatch)


def in_this_process(job: dict[str, Any], *others: Any, **options: Any) -> Any:
    """The result of a stage, as a child would report it."""
    context = replace(StageContext.of_job(job, SilentListener()), engine=LocalEngine(1))
    return STAGES[job["stage"]].build(context)
