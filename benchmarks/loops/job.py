"""One measurement in a process of its own, in the environment that paribus gives a stage."""

import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from loops.turn import Turn, circle
from paribus.config.groups.execution import EngineConfig
from paribus.pipeline.execute import child_environment

BENCHMARKS = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Job:
    """What `loops.child` does: train with a contestant's loop, or measure the `peak` of the device."""

    contestant: str
    config: dict[str, Any]
    """All fields of the run's configuration."""
    directory: str
    """Where `inputs.write_inputs` wrote."""
    warmup: int = 0
    window: int = 1
    turn: tuple[str, str] | None = None
    """The pipes of `Turn`, if it takes turns with other processes."""


def run(job: Job, limit_s: float) -> dict[str, Any]:
    """What a fresh process measured; `problem` says why there is nothing."""
    return run_in_turn([job], limit_s)[0]


def run_in_turn(jobs: list[Job], limit_s: float) -> list[dict[str, Any]]:
    """What fresh processes measured that take turns; where one fails, the others are ended."""
    with tempfile.TemporaryDirectory() as directory, ExitStack() as ended:
        if len(jobs) > 1:
            pipes = circle(Path(directory), len(jobs))
            jobs = [replace(job, turn=(str(pipes[at - 1]), str(pipes[at]))) for at, job in enumerate(jobs)]
            ended.enter_context(closing(Turn(pipes[-1], pipes[-1]))).hand_on()
        started = [ended.enter_context(_Process(job, Path(directory) / str(at))) for at, job in enumerate(jobs)]
        end = time.monotonic() + limit_s
        while any(one.is_running for one in started) and not any(one.has_failed for one in started):
            if time.monotonic() > end:
                return [{"problem": f"more than {limit_s:.0f} s"}] * len(jobs)
            time.sleep(0.2)
        return [one.answer() for one in started]


class _Process:
    """`loops.child` at work in `directory`; ended with the context."""

    def __init__(self, job: Job, directory: Path) -> None:
        directory.mkdir()
        self._answer, self._said = directory / "result.json", directory / "said.txt"
        (directory / "job.json").write_text(json.dumps(asdict(job)), encoding="utf-8")
        command = [sys.executable, "-m", "loops.child", str(directory / "job.json"), str(self._answer)]
        with self._said.open("wb") as said:
            self._process = subprocess.Popen(command, env=_environment(), stdout=said, stderr=said)

    def __enter__(self) -> "_Process":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    @property
    def has_failed(self) -> bool:
        return bool(self._process.poll())

    def answer(self) -> dict[str, Any]:
        if self.is_running:
            return {"problem": "was ended, since another one failed"}
        if self.has_failed or not self._answer.exists():
            last = self._said.read_text(encoding="utf-8", errors="replace").strip().splitlines()
            return {"problem": last[-1] if last else f"exit status {self._process.returncode}"}
        measured: dict[str, Any] = json.loads(self._answer.read_text(encoding="utf-8"))
        return measured


def _environment() -> dict[str, str]:
    environment = child_environment(EngineConfig())
    path = os.pathsep.join(filter(None, [str(BENCHMARKS), environment.get("PYTHONPATH")]))
    # Of several GPUs all but one are hidden: Trainer would divide its batches among them.
    visible = environment.get("CUDA_VISIBLE_DEVICES", "0").partition(",")[0]
    return environment | {"PYTHONPATH": path, "HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": visible}
