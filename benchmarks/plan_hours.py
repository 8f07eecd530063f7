"""How near the hours of a plan are to those of training: probes and trainings of the demo's model in turns.

python benchmarks/plan_hours.py

Minutes on a CPU. Both are timed by the wall clock, as a plan does, and by the processor's time, in which other programs
of a busy machine count little. One thread.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import torch

from paribus.checks import compose_command
from paribus.config.arguments import parse
from paribus.config.schema import RunConfig
from paribus.engine.local import LocalEngine
from paribus.pipeline.run import make
from paribus.stage import SilentListener, StageContext
from paribus.training import loop, probe
from paribus.training.train import train_in_process

Clock = Callable[[], float]
CLOCKS: dict[str, Clock] = {"wall": time.perf_counter, "processor": time.process_time}
SETTINGS = ("scale=demo", "tracking=none", "training.device=cpu", "engine.threads=1", "training.checkpoint_every=50")


@dataclass
class Loop:
    """Seconds of the training loop by each clock, which `timed_loop` fills in."""

    seconds: dict[str, float]


@contextmanager
def timed_loop() -> Iterator[Loop]:
    """Times the loop of the training in the block, which is what a record's device-hours are made of."""
    found, original = Loop({}), loop._Loop.run_steps

    def run_steps(self: loop._Loop) -> float:
        before = {name: clock() for name, clock in CLOCKS.items()}
        seconds = original(self)
        found.seconds = {name: clock() - before[name] for name, clock in CLOCKS.items()}
        return seconds

    loop._Loop.run_steps = run_steps
    try:
        yield found
    finally:
        loop._Loop.run_steps = original


def probed(config: RunConfig, vocabulary: int, clock: Clock) -> float:
    """Tokens a second at the median step of a probe, by a clock."""
    probe.time.perf_counter = clock
    try:
        measured = probe.measure(config, vocabulary, config.plan.probe_seconds)
    finally:
        probe.time.perf_counter = CLOCKS["wall"]
    return float(measured["tokens"] / median(measured["seconds"]))


def trained(config: RunConfig, inputs: dict[str, Path]) -> dict[str, float]:
    """Tokens a second of a whole training, by clock."""
    with tempfile.TemporaryDirectory() as root, timed_loop() as timed:
        output, work = Path(root) / "output", Path(root) / "work"
        output.mkdir()
        work.mkdir()
        result = train_in_process(StageContext(config, inputs, output, work, SilentListener(), LocalEngine(1)), 1)
    return {name: float(str(result["tokens"])) / seconds for name, seconds in timed.seconds.items()}


def main() -> int:
    """Print a line a turn: tokens a second by either clock, probed and trained, and how much they differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=3)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as root:
        config = compose_command(parse([*SETTINGS, f"root={root}"])).jobs[0].config
        made = make(config, ("tokens", "order"))
        inputs = {name: made[name].path for name in ("tokens", "order")}
        sys.stdout.write("| turn | clock | probed | trained | hours planned / taken |\n|---|---|---:|---:|---:|\n")
        for turn in range(1, arguments.turns + 1):
            sys.stdout.writelines(rows(turn, config, inputs))
            sys.stdout.flush()
    return 0


def rows(turn: int, config: RunConfig, inputs: dict[str, Path]) -> list[str]:
    """A probe by each clock, then a training that both time."""
    expected = {name: probed(config, config.scale.vocab_size, clock) for name, clock in CLOCKS.items()}
    return [
        f"| {turn} | {name} | {expected[name]:,.0f} | {speed:,.0f} | {speed / expected[name]:.2f} |\n"
        for name, speed in trained(config, inputs).items()
    ]


if __name__ == "__main__":
    sys.exit(main())
