"""The steps in their order, and what runs one: in a process with a time limit, so that no failure stops another."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from acceptance.given import ROOT, Given
from paribus.config.groups.execution import EngineConfig
from paribus.pipeline.execute import child_environment
from paribus.store.provenance import Code

LAST_LINES = 40
NO_TIME = "no time"


@dataclass(frozen=True)
class Step:
    """One of them."""

    module: str
    """Of `measures`."""
    about: str
    limit_s: float
    part: int = 1
    """Which call makes it, of three that are made on an H100 one by one."""
    alone: bool = False
    """Whether it measures time, so that nothing else may compute beside it."""
    of: str = ""
    """What of the module's it measures, where it is more than one thing."""

    @property
    def name(self) -> str:
        """As a user names it."""
        return f"{self.module}_{self.of}" if self.of else self.module


STEPS = (
    Step("environment", "versions, peak of matrix products, copies", 60, alone=True),
    Step("gpu_tests", "pytest -m gpu", 180),
    Step("losses", "losses beside the CPU's", 150, of="llama"),
    Step("losses", "losses beside the CPU's", 150, of="gpt_neox"),
    Step("losses", "losses beside the CPU's", 150, of="encoder_decoder"),
    Step("memory", "peak of training beside the prediction", 150),
    Step("whole_runs", "paribus run, again, and two at once", 180),
    Step("scoring", "scores and texts beside lm-eval's model class", 120, alone=True),
    Step("speed", "468M beside transformers and Trainer", 280, 2, alone=True, of="468m"),
    Step("speed", "1.2B beside transformers", 200, 2, alone=True, of="1.2b"),
    Step("encoder", "vectors of documents beside the CPU's", 50, 2, alone=True),
    Step("neighbours", "the nearest of a million vectors beside the CPU's", 50, 2, alone=True),
    Step("speed", "8 layers of the width of 6.7B beside transformers", 200, 3, alone=True, of="6.7b_8_layers"),
    Step("speed", "128K tokens of vocabulary beside transformers", 120, 3, alone=True, of="468m_128k"),
    Step("speed", "documents in contexts of 8,192 beside transformers", 240, 3, alone=True, of="468m_documents"),
)


@dataclass
class Outcome:
    """What became of a step."""

    step: str
    about: str
    state: str
    """`passed`, `wrong`, `failed`, `too long`, or `no time` where the time of the call was over."""
    seconds: float
    numbers: dict[str, Any]
    wrong: list[str]
    """What is not as it must be or was not measured, or the last lines that the process said."""
    code: str = ""
    """`code_digest` as the step began."""

    def to_json(self) -> dict[str, Any]:
        """All of it."""
        return asdict(self)


@dataclass
class Running:
    """Processes of steps at work, all of which can be ended at once."""

    processes: set["subprocess.Popen[bytes]"] = field(default_factory=set)
    ended: bool = False

    def end(self) -> None:
        """End all, and whatever begins later."""
        self.ended = True
        for process in list(self.processes):
            _end(process)


def code_digest() -> str:
    """Of paribus, of the versions of packages, and of what the steps run beside it."""
    parts = [Code.read(), *(Code.read(ROOT / name) for name in ("benchmarks", "tests"))]
    return hashlib.sha256("".join(part.digest for part in parts).encode()).hexdigest()[:16]


def run(step: Step, given: Given, running: Running) -> Outcome:
    """Run a step in a process of its own; it and all that it started are ended after its time limit, or with the call.

    The call ends when `given` says; after that nothing begins.
    """
    began, state = time.monotonic(), "passed"
    left = given.until - began
    if left <= 0:
        return Outcome(step.name, step.about, NO_TIME, 0.0, {}, ["not begun: the time of the call was over"])
    limit, over = (step.limit_s, "too long") if step.limit_s <= left else (left, NO_TIME)
    work, code = Path(given.directory) / step.name, code_digest()
    work.mkdir(parents=True)
    files, said = (work / "given.json", work / "answer.json"), work / "said.txt"
    inside = work / "work"
    inside.mkdir()
    command = [sys.executable, "-m", "acceptance.child", step.module, *map(str, files)]
    replace(given, directory=str(inside), until=began + limit, of=step.of).write(files[0])
    with said.open("wb") as log:
        process = subprocess.Popen(command, env=environment(), stdout=log, stderr=log, start_new_session=True)
        running.processes.add(process)
        try:
            process.wait(0 if running.ended else max(0.0, began + limit - time.monotonic()))
        except subprocess.TimeoutExpired:
            state = over
        finally:
            _end(process)
            running.processes.discard(process)
    seconds = time.monotonic() - began
    if state == "passed" and files[1].exists():
        answer = json.loads(files[1].read_text(encoding="utf-8"))
        state = "wrong" if answer["wrong"] else over if answer["late"] else "passed"
        return Outcome(step.name, step.about, state, seconds, answer["numbers"], answer["wrong"] + answer["late"], code)
    failed = "failed" if state == "passed" else state
    return Outcome(step.name, step.about, failed, seconds, {}, _last(said) + _commands_said(inside), code)


def _last(log: Path, lines: int = LAST_LINES) -> list[str]:
    return log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-lines:]


def _commands_said(directory: Path) -> list[str]:
    """What the commands of a step said last, of which it tells only where it comes to its end."""
    logs = sorted(directory.glob("*.txt"), key=lambda path: path.stat().st_mtime)
    return [f"{log.name}: {line}" for log in logs for line in _last(log, 1)]


def environment() -> dict[str, str]:
    """That of a stage of paribus, where modules of benchmarks, sources and tests are found without an installation."""
    found = child_environment(EngineConfig())
    paths = [str(ROOT / name) for name in ("benchmarks", "src", "tests")]
    joined = os.pathsep.join([*paths, *filter(None, [found.get("PYTHONPATH")])])
    return found | {"PYTHONPATH": joined, "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}


def _end(process: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    finally:
        process.wait()
