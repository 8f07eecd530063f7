"""The acceptance of a GPU, rehearsed on a CPU: every step at tiny sizes, and steps that fail."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

from acceptance.given import Given  # noqa: E402
from acceptance.steps import STEPS, Step, run  # noqa: E402
from acceptance.table import table  # noqa: E402

LONG = ("gpu_tests", "compiling", "long", "interrupted", "whole_runs")
"""Steps of a minute and more, of things that other tests do on a CPU too; `make gpu-rehearsal` has them as well."""
REHEARSED = [step for step in STEPS if step.module not in LONG]


@pytest.mark.slow
@pytest.mark.parametrize("step", REHEARSED, ids=lambda step: step.module)
def test_every_step_passes_its_rehearsal(step: Step, tmp_path: Path) -> None:
    patient = Step(step.module, step.about, 3 * step.limit_s, step.part)
    outcome = run(patient, Given("cpu", True, str(tmp_path), step.limit_s))
    assert outcome.state == "passed", outcome.wrong
    assert outcome.numbers


def test_a_step_that_fails_or_takes_too_long_says_so_and_stops_nothing(tmp_path: Path) -> None:
    given = Given("cpu", True, str(tmp_path), 1.0)
    missing = run(Step("not_there", "no such step", 60), given)
    assert missing.state == "failed" and "not_there" in missing.wrong[-1]
    slow = run(Step("losses", "the losses", 0.5), given)
    assert slow.state == "too long" and not slow.numbers
    lines = table([missing.to_json(), slow.to_json()]).splitlines()
    assert lines[2].startswith("| not_there | failed |") and lines[3].startswith("| losses | too long |")


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
    parts = {part: sum(step.limit_s for step in STEPS if step.part == part) for part in (1, 2, 3)}
    assert {step.part for step in STEPS} == parts.keys()
    assert all(seconds <= 11 * 60 for seconds in parts.values()), parts


def test_every_step_has_its_module() -> None:
    for step in STEPS:
        assert (ROOT / "benchmarks" / "acceptance" / "measures" / f"{step.module}.py").is_file()
