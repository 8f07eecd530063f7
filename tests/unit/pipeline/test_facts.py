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
SCORES = {"eval/bits_per_byte": 0.77666, "eval/boolq/0shot/acc": 0.625}


@pytest.mark.parametrize(
    ("stage", "result", "told"),
    [
        ("corpus", CORPUS, ["284 documents, 100.1 KiB", "76 held out"]),
        (
            "corpus",
            SKIPPED,
            ["284 documents, 100.1 KiB", "76 held out", "5 skipped", "4 near copies moved to training"],
        ),
        ("vocabulary", {"vocab_size": 32_000}, ["32,000 tokens"]),
        ("tokens", {"tokens": 14_002_000, "bytes_per_token": 7.317}, ["14.0M tokens", "7.32 bytes a token"]),
        ("order", {"documents": 284, "removed": 0}, ["284 documents"]),
        ("order", {"documents": 272, "removed": 12}, ["272 documents", "12 removed"]),
        (
            "training",
            {"tokens": 64_000, "steps": 125, "final_loss": 3.53928},
            ["64,000 tokens in 125 steps", "final loss 3.539"],
        ),
        ("evaluation", {"metrics": SCORES}, ["0.7767 bits per byte", "boolq 0.625"]),
        ("finetuning", {"metrics": {"eval/qmsum/0shot/rouge_geometric_mean": 0.1234}}, ["qmsum 0.1234"]),
        ("prompts", {"tasks": {}}, []),
    ],
)
def test_a_stage_tells_what_a_person_wants_to_know_of_its_result(
    stage: str, result: dict[str, Any], told: list[str]
) -> None:
    assert list(STAGES[stage].facts(result)) == told


@pytest.mark.parametrize(
    ("result", "ending"), [(CORPUS, "  284 documents, 100.1 KiB · 76 held out"), ({"documents": 1}, "")]
)
def test_the_line_of_a_stage_says_it_and_a_result_that_lacks_it_fails_nothing(
    result: dict[str, Any], ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def execute(job: dict[str, Any], *others: Any, **options: Any) -> dict[str, Any]:
        (Path(job["output"]) / "data").write_text("content", encoding="utf-8")
        return result

    monkeypatch.setattr(running, "execute", execute)
    run = planned_run(tmp_path / "root", tracking=TrackingConfig(kind="none"))
    console = Console(file=io.StringIO(), width=200)
    assert perform(replace(run.job.config, until="corpus"), Display(console), loaded_code()) is None
    assert isinstance(console.file, io.StringIO)
    (line,) = [line for line in console.file.getvalue().splitlines() if " done in " in line]
    assert line.endswith(run.nodes["corpus"].key[:12] + ending)
