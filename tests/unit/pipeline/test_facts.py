"""What a stage found stands in the line that says it is done."""

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from paribus.config.groups.execution import TrackingConfig
from paribus.pipeline import run as running
from paribus.pipeline.run import perform
from paribus.pipeline.show.display import Display
from paribus.pipeline.stages import STAGES
from paribus.store.code import loaded_code
from support.plans import planned_run

CORPUS = {
    "train": {"documents": 284, "bytes": 102_454},
    "heldout": {"documents": 76, "bytes": 26_936},
    "skipped": {},
    "moved": {"documents": 0, "bytes": 0},
}
SKIPPED = CORPUS | {"skipped": {"empty": 2, "no text": 3}, "moved": {"documents": 4, "bytes": 9}}
TOLD = ["284 documents, 100.1 KiB", "76 held out"]
SCORES = {"eval/bits_per_byte": 0.77666, "eval/boolq/0shot/acc": 0.625}


@pytest.mark.parametrize(
    ("stage", "result", "told"),
    [
        (
            "corpus",
            SKIPPED,
            [*TOLD, "5 skipped", "4 near copies moved to training"],
        ),
        ("tokens", {"tokens": 14_002_000, "bytes_per_token": 7.317}, ["14.0M tokens", "7.32 bytes a token"]),
        ("order", {"documents": 272, "removed": 12}, ["272 documents", "12 removed"]),
        ("evaluation", {"metrics": SCORES}, ["0.7767 bits per byte", "boolq 0.625"]),
        ("prompts", {"tasks": {}}, []),
    ],
)
def test_a_stage_sums_up_its_result(stage: str, result: dict[str, Any], told: list[str]) -> None:
    assert list(STAGES[stage].facts(result)) == told


def test_the_line_of_a_stage_says_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def execute(job: dict[str, Any], *others: Any, **options: Any) -> dict[str, Any]:
        (Path(job["output"]) / "data").write_text("content", encoding="utf-8")
        return CORPUS

    monkeypatch.setattr(running, "execute", execute)
    run = planned_run(tmp_path / "root", tracking=TrackingConfig(kind="none"))
    console = Console(file=io.StringIO(), width=200)
    assert perform(replace(run.job.config, until="corpus"), Display(console), loaded_code()) is None
    assert isinstance(console.file, io.StringIO)
    (line,) = [line for line in console.file.getvalue().splitlines() if " done in " in line]
    assert line.endswith("  284 documents, 100.1 KiB · 76 held out")
