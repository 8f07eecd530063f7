"""Commands as users have them: the tests that are for a GPU, and whole runs from text to scores."""

import subprocess
import sys
import time

from acceptance.given import ROOT, Answer, Given

CONFIGURATION = (
    "scale=tiny",
    "corpus=pydocs_small",
    "evaluation=heldout",
    "tracking=none",
    "training.checkpoint_every=20",
)


def gpu_tests(given: Given) -> Answer:
    """What the tests print last; where there is no GPU they compute on the CPU."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "gpu", "tests/gpu"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    lines = done.stdout.strip().splitlines()
    answer = Answer({"result": lines[-1] if lines else "nothing"})
    answer.wrong = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
    answer.expect(done.returncode == 0, f"pytest ended with {done.returncode}: {done.stderr.strip()[-300:]}")
    return answer


def whole_runs(given: Given) -> Answer:
    """Seconds of `paribus run`, of the same again, and of two runs at once."""
    answer = Answer()
    for name, seeds in (("first", [0]), ("again", [0]), ("two at once", [1, 2])):
        began = time.monotonic()
        runs = [(seed, started(given, seed)) for seed in seeds]
        for seed, process in runs:
            status, said = process.wait(), (given.work / f"seed_{seed}.txt").read_text(encoding="utf-8")
            answer.expect(status == 0, f"{name}: exit status {status}: {said[-500:]}")
        answer.numbers[f"{name} s"] = time.monotonic() - began
    evaluated = sorted((given.work / "root" / "artifacts" / "evaluation").glob("*"))
    answer.numbers["evaluations"] = len(evaluated)
    answer.expect(len(evaluated) == 3, f"{len(evaluated)} evaluations of three runs")
    return answer


def started(given: Given, seed: int) -> "subprocess.Popen[bytes]":
    """`paribus run` of a seed; what it says is in the step's directory."""
    devices = [f"{stage}.device={given.device}" for stage in ("training", "evaluation")]
    words = [f"seed={seed}", f"root={given.work / 'root'}", f"engine.gpu_locks={given.work / 'gpu_locks'}", *devices]
    with (given.work / f"seed_{seed}.txt").open("wb") as said:
        command = [sys.executable, "-m", "paribus", "run", *CONFIGURATION, *words]
        return subprocess.Popen(command, stdout=said, stderr=said)
