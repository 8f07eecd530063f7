"""The acceptance of a GPU, rehearsed on a CPU: every step at tiny sizes, and steps that fail."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

from acceptance.given import Given  # noqa: E402
from acceptance.steps import STEPS, Step, run  # noqa: E402
from acceptance.table import table  # noqa: E402

LONG = ("gpu_tests", "compiling", "interrupted", "whole_runs")
"""Steps of a minute and more, of things that other tests do on a CPU too; `make gpu-rehearsal` has them as well."""
REHEARSED = list({step.of if step.module == "losses" else step.module: step for step in STEPS}.values())
REHEARSED = [step for step in REHEARSED if step.module not in LONG]
"""Of speed one: at tiny sizes all shapes are the same."""


@pytest.mark.slow
@pytest.mark.parametrize("step", REHEARSED, ids=lambda step: step.name)
def test_every_step_passes_its_rehearsal(step: Step, tmp_path: Path) -> None:
    patient = replace(step, limit_s=3 * step.limit_s)
    outcome = run(patient, Given("cpu", True, str(tmp_path), step.limit_s))
    assert outcome.state == "passed", outcome.wrong
    assert outcome.numbers


def test_a_step_that_fails_or_takes_too_long_says_so_and_stops_nothing(tmp_path: Path) -> None:
    given = Given("cpu", True, str(tmp_path), 1.0)
    missing = run(Step("not_there", "no such step", 60), given)
    assert missing.state == "failed" and "not_there" in missing.wrong[-1]
    slow = run(Step("losses", "the losses", 0.5, of="llama"), given)
    assert slow.state == "too long" and not slow.numbers
    lines = table([missing.to_json(), slow.to_json()]).splitlines()
    assert lines[2].startswith("| not_there | failed |") and lines[3].startswith("| losses_llama | too long |")


def test_outcomes_are_written_step_by_step_and_kept(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / "gpu_acceptance.py"), "--device", "cpu"]
    output = tmp_path / "acceptance.json"
    for step in ("environment", "encoder"):
        done = subprocess.run(
            [*command, "--steps", step, "--output", str(output)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout
    assert "| environment | passed |" in done.stdout and "| encoder | passed |" in done.stdout


def test_three_calls_make_every_step_within_nine_minutes_each() -> None:
    parts = {part: [step for step in STEPS if step.part == part] for part in (1, 2, 3)}
    assert sum(map(len, parts.values())) == len(STEPS)
    for steps in parts.values():
        at_once = max((step.limit_s for step in steps if not step.alone), default=0)
        assert at_once + sum(step.limit_s for step in steps if step.alone) <= 10 * 60


def test_every_step_has_its_module() -> None:
    for step in STEPS:
        assert (ROOT / "benchmarks" / "acceptance" / "measures" / f"{step.module}.py").is_file()
