"""What a user typed or stored is shown on the terminal as it is, also where it looks like markup."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from paribus.checks.command import compose_command
from paribus.commands.status import show_status
from paribus.config.arguments import parse
from paribus.pipeline.output_root import OutputRoot
from paribus.pipeline.prepare import prepare
from paribus.pipeline.prepared_run import PreparedRun
from paribus.pipeline.record.failure import Failure
from paribus.pipeline.record.recorder import Recorder

FILES = ("[/abs/x.jsonl]", "[rel.jsonl]")


@pytest.fixture
def runs(tmp_path: Path) -> list[PreparedRun]:
    paths = f"corpus.paths={','.join(FILES)}"
    command = parse(["-m", "scale=tiny", "tracking=none", f"root={tmp_path}", "corpus=files", paths])
    return prepare(compose_command(command), tolerate_missing=True)


def wide() -> Console:
    return Console(width=200, file=io.StringIO())


def shown(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_status_shows_names_and_reasons_in_brackets(runs: list[PreparedRun]) -> None:
    run = runs[0]
    failure = Failure("data", "[/abs/x.jsonl] is [not there]")
    Recorder(run.job.config, run.nodes, OutputRoot.of(run.job.config)).finish(failure)
    console = wide()
    assert show_status(runs, console) == 1
    assert all(f"corpus.paths={name} " in shown(console) for name in FILES)
    assert failure.message in shown(console)


@pytest.mark.parametrize("failed", [1, 2])
def test_a_status_says_once_what_several_runs_failed_of(runs: list[PreparedRun], failed: int) -> None:
    cause = Failure("infrastructure", "stage corpus: the node is gone", tail=("the last line",), log="corpus.log")
    for run in runs[:failed]:
        Recorder(run.job.config, run.nodes, OutputRoot.of(run.job.config)).finish(cause)
    console = wide()
    assert show_status(runs, console) == 1
    text = shown(console)
    assert text.count("the node is gone") == text.count("the last line") == 1
    assert ("all 2 runs: infrastructure: stage corpus: the node is gone" in text) == (failed > 1)
    assert text.count("see below") == (failed if failed > 1 else 0)
