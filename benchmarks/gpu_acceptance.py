"""What paribus does on one GPU, once, on one that is there: python benchmarks/gpu_acceptance.py

    --device cuda|cpu    cpu rehearses every step at tiny sizes, and its speeds mean nothing
    --part 1|2|3         a third of the steps; all where it is left out
    --seconds N          when the call ends; default: after 530 with --part (nine minutes, start and end included)
    --steps NAME ...     these only
    --at-once N          steps that measure no time made at once, before the others; default: all on a GPU, 1 on a CPU
    --directory DIR      what the steps write is kept in a new folder there
    --output FILE        outcomes as JSON, rewritten after every step; steps that it holds already are kept, and so
                         is what became of a step for which a later call has no time; those of other code are
                         marked in the table

Each step is a process with a time limit, and a failure stops nothing. Steps that the end of the call cuts short, or
that were not begun by then, have the state "no time" and may be made by name in another call. The table is printed
last; the exit status is 1 unless every step of the call passed.
"""

import argparse
import json
import math
import signal
import sys
import tempfile
import time
from collections.abc import Generator, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from acceptance.given import Given
from acceptance.steps import NO_TIME, STEPS, Outcome, Running, Step, code_digest, run
from acceptance.table import table

from paribus.pipeline.devices import visible_devices
from paribus.store import files

SECONDS_TO_HEED = 0.5
SECONDS_OF_PART = 530.0
"""Of nine minutes, in which Python starts too and what the steps wrote is removed."""


def main(given: argparse.Namespace) -> int:
    """Run the steps; 0 where all passed."""
    chosen = _chosen(given)
    outcomes, states = _read(given.output), []
    # A scheduler or `timeout` ends with SIGTERM: steps at work are to be ended too.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    with _directory(given.directory) as directory, closing(_made(chosen, given, directory)) as made:
        for outcome in made:
            states.append(outcome.state)
            if outcome.state != NO_TIME or outcome.step not in outcomes:
                outcomes[outcome.step] = outcome.to_json()
            if given.output:
                files.write_text(given.output, json.dumps(outcomes, indent=1))
            sys.stderr.write(f"{outcome.step}: {outcome.state} after {outcome.seconds:.0f} s\n")
    sys.stdout.write(table((outcomes[step.name] for step in STEPS if step.name in outcomes), code_digest()))
    return 0 if all(state == "passed" for state in states) else 1


@contextmanager
def _directory(kept: Path | None) -> Iterator[Path]:
    """A fresh one, in `kept` where that is given."""
    if kept is None:
        with tempfile.TemporaryDirectory() as temporary:
            yield Path(temporary)
        return
    kept.mkdir(parents=True, exist_ok=True)
    yield Path(tempfile.mkdtemp(prefix="acceptance_", dir=kept.resolve()))


def _made(chosen: list[Step], given: argparse.Namespace, directory: Path) -> Generator[Outcome]:
    """What became of the steps: of those that measure no time as they end, then of the others in their order.

    Where that is broken off, no further step begins, and those at work are ended.
    """
    running, until = Running(), time.monotonic() + given.seconds

    def made(step: Step) -> Outcome:
        return run(step, Given(given.device, given.device == "cpu", str(directory), until), running)

    at_once = given.at_once or {"cpu": 1, "cuda": len(STEPS)}[given.device]
    together = ThreadPoolExecutor(at_once)
    try:
        for ended in _as_they_end([together.submit(made, step) for step in chosen if not step.alone]):
            yield ended.result()
        yield from (made(step) for step in chosen if step.alone)
    finally:
        together.shutdown(wait=False, cancel_futures=True)
        running.end()
        # What a step writes last is written before its directory goes.
        together.shutdown()


def _as_they_end(futures: list[Future[Outcome]]) -> Iterator[Future[Outcome]]:
    """Each once it has ended, as `as_completed` has them, which for lack of a time limit may miss a signal.

    One that arrives just before a thread begins to wait wakes nobody, and is heeded where the thread wakes by itself.
    """
    pending = set(futures)
    while pending:
        ended, pending = wait(pending, SECONDS_TO_HEED, FIRST_COMPLETED)
        yield from ended


def _chosen(given: argparse.Namespace) -> list[Step]:
    steps = {step.name: step for step in STEPS}
    named = [steps[name] for name in given.steps] if given.steps else list(STEPS)
    chosen = [step for step in named if given.part in (None, step.part)]
    if not chosen:
        sys.exit(f"none of these steps is of part {given.part}")
    return chosen


def _read(path: Path | None) -> dict[str, Any]:
    if path is None or not path.exists():
        return {}
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        sys.exit(f"{path} holds no outcomes of an earlier call ({error}): remove it, or name another --output")
    return found


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--part", type=int, choices=sorted({step.part for step in STEPS}))
    parser.add_argument("--steps", nargs="+", choices=[step.name for step in STEPS])
    parser.add_argument("--output", type=Path)
    parser.add_argument("--directory", type=Path, help="where what the steps write is kept")
    parser.add_argument("--at-once", type=int)
    parser.add_argument("--seconds", type=float)
    given = parser.parse_args()
    if given.seconds is None:
        given.seconds = SECONDS_OF_PART if given.part else math.inf
    if given.directory and given.directory.exists() and not given.directory.is_dir():
        parser.error(f"--directory {given.directory}: is a file")
    if given.at_once is not None and given.at_once < 1:
        parser.error(f"--at-once {given.at_once}: one at least")
    if not given.seconds > 0:
        parser.error(f"--seconds {given.seconds:g}: above 0")
    if given.device == "cuda" and not visible_devices():
        parser.error("--device cuda: PyTorch sees no GPU here; --device cpu rehearses the steps")
    return given


if __name__ == "__main__":
    sys.exit(main(_arguments()))
