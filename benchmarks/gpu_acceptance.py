"""What paribus does on one GPU, once, on one that is there: python benchmarks/gpu_acceptance.py

    --device cuda|cpu    cpu rehearses every step at tiny sizes, and its speeds mean nothing
    --steps NAME ...     these only
    --output FILE        outcomes as JSON, rewritten after every step; those that it holds already are kept, and marked
                         in the table where they are of other code

Each step is a process with a time limit, and a failure stops nothing. The table is printed last; the exit status is 1
unless every step of the call passed.
"""

import argparse
import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from acceptance.given import ROOT, Given

from paribus.config.groups.execution import EngineConfig
from paribus.pipeline.devices import visible_devices
from paribus.pipeline.execute import child_environment
from paribus.store import files
from paribus.store.provenance import Code

LAST_LINES = 40


@dataclass(frozen=True)
class Step:
    """A function of a module of `acceptance`, with a time limit."""

    module: str
    function: str
    about: str
    limit_s: float
    of: str = ""
    """What it measures, where it is more than one thing."""

    @property
    def name(self) -> str:
        """As a user names it."""
        return f"{self.function}_{self.of}" if self.of else self.function


STEPS = (
    Step("device", "environment", "versions, peak of matrix products, copies", 60),
    Step("commands", "gpu_tests", "pytest -m gpu", 180),
    Step("trainings", "losses", "losses beside the CPU's", 150, "llama"),
    Step("trainings", "losses", "losses beside the CPU's", 150, "gpt_neox"),
    Step("trainings", "losses", "losses beside the CPU's", 150, "encoder_decoder"),
    Step("trainings", "memory", "peak of training beside the prediction", 150),
    Step("commands", "whole_runs", "paribus run, again, and two at once", 180),
    Step("scoring", "scoring", "scores and texts beside lm-eval's model class", 120),
    Step("speed", "speed", "468M beside transformers and Trainer", 280, "468m"),
    Step("speed", "speed", "1.2B beside transformers", 200, "1.2b"),
    Step("vectors", "encoder", "vectors of documents beside the CPU's", 50),
    Step("vectors", "neighbours", "the nearest of a million vectors beside the CPU's", 50),
    Step("speed", "speed", "8 layers of the width of 6.7B beside transformers", 200, "6.7b_8_layers"),
    Step("speed", "speed", "128K tokens of vocabulary beside transformers", 120, "468m_128k"),
    Step("speed", "speed", "documents in contexts of 8,192 beside transformers", 240, "468m_documents"),
)


@dataclass
class Outcome:
    """What became of a step."""

    step: str
    about: str
    state: str
    """`passed`, `wrong`, `failed` or `too long`."""
    seconds: float
    numbers: dict[str, Any]
    wrong: list[str]
    """What is not as it must be, or the last lines that the process said."""
    code: str
    """`code_digest` as the step began."""


def main(given: argparse.Namespace) -> int:
    """Run the steps; 0 where all passed."""
    # A scheduler or `timeout` ends with SIGTERM: the step at work is to be ended too.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    states, outcomes = [], {}
    if given.output and given.output.exists():
        outcomes = json.loads(given.output.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as directory:
        for step in [step for step in STEPS if step.name in given.steps]:
            outcome = run(step, given.device, Path(directory) / step.name)
            states.append(outcome.state)
            outcomes[outcome.step] = asdict(outcome)
            if given.output:
                files.write_text(given.output, json.dumps(outcomes, indent=1))
            sys.stderr.write(f"{outcome.step}: {outcome.state} after {outcome.seconds:.0f} s\n")
    sys.stdout.write(table(outcomes[step.name] for step in STEPS if step.name in outcomes))
    return 0 if set(states) == {"passed"} else 1


def run(step: Step, device: str, directory: Path) -> Outcome:
    """Run a step in a process of its own; it and all that it started are ended after its time limit."""
    began, code = time.monotonic(), code_digest()
    (directory / "work").mkdir(parents=True)
    given, answer, said = (directory / name for name in ("given.json", "answer.json", "said.txt"))
    told = Given(device, str(directory / "work"), step.of)
    given.write_text(json.dumps(asdict(told)), encoding="utf-8")
    command = [sys.executable, "-m", "acceptance", step.module, step.function, str(given), str(answer)]
    with said.open("wb") as log:
        process = subprocess.Popen(command, env=environment(), stdout=log, stderr=log, start_new_session=True)
        try:
            state = "failed" if process.wait(step.limit_s) else "passed"
        except subprocess.TimeoutExpired:
            state = "too long"
        finally:
            kill_group(process)
    seconds = time.monotonic() - began
    if state != "passed":
        last = said.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-LAST_LINES:]
        return Outcome(step.name, step.about, state, seconds, {}, last, code)
    found = json.loads(answer.read_text(encoding="utf-8"))
    state = "wrong" if found["wrong"] else "passed"
    return Outcome(step.name, step.about, state, seconds, found["numbers"], found["wrong"], code)


def code_digest() -> str:
    """Of paribus, of the versions of packages, and of what the steps run beside it."""
    parts = [Code.read(), *(Code.read(ROOT / name) for name in ("benchmarks", "tests"))]
    return hashlib.sha256("".join(part.digest for part in parts).encode()).hexdigest()[:16]


def environment() -> dict[str, str]:
    """That of a stage of paribus, where modules of benchmarks, sources and tests are found without an installation."""
    found = child_environment(EngineConfig())
    paths = [str(ROOT / name) for name in ("benchmarks", "src", "tests")]
    joined = os.pathsep.join([*paths, *filter(None, [found.get("PYTHONPATH")])])
    return found | {"PYTHONPATH": joined, "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}


def kill_group(process: "subprocess.Popen[bytes]") -> None:
    """End a process and all that it started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    finally:
        process.wait()


def table(outcomes: Iterable[Mapping[str, Any]]) -> str:
    """Markdown: a line a step with its numbers, and under it what is wrong; the state of one by other code says so."""
    lines, code = ["| step | state | s | numbers |", "|---|---|---:|---|"], code_digest()
    problems: list[str] = []
    for outcome in outcomes:
        numbers = "; ".join(f"{name} {shown(value)}" for name, value in outcome["numbers"].items())
        state = outcome["state"] + (", by other code" if outcome["code"] != code else "")
        lines.append(f"| {outcome['step']} | {state} | {outcome['seconds']:.0f} | {numbers} |")
        problems += [f"- {outcome['step']}: {line}" for line in outcome["wrong"]]
    return "\n".join([*lines, *([""] if problems else []), *problems]) + "\n"


def shown(value: Any) -> str:
    """A number with four digits, or several with their names."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {shown(one)}" for name, one in value.items())
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def arguments() -> argparse.Namespace:
    """Those of the command line."""
    names = [step.name for step in STEPS]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--steps", nargs="+", choices=names, default=names)
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    if given.device == "cuda" and not visible_devices():
        parser.error("--device cuda: PyTorch sees no GPU here; --device cpu rehearses the steps")
    return given


if __name__ == "__main__":
    sys.exit(main(arguments()))
