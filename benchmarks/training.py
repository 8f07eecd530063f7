"""Speed and memory of training beside the bare model step and transformers.Trainer, with the losses compared.

python benchmarks/training.py [--device auto|cpu|cuda] [--shapes NAME ...] [--json FILE]

The contestants train the same weights on the same contexts with the same optimizer and learning rates. Every
measurement is a process of its own, in the environment that paribus gives a stage. Where memory suffices for all at
once they take turns every few steps, so that they meet the machine in the same state; otherwise they run after one
another, in an order drawn for each round.

The exit status is 1 where a contestant fails or losses differ that must not.

Model-FLOPs utilisation: FLOPs a token after Chowdhery et al. 2022 (PaLM, arXiv 2204.02311), appendix B, 6 N + 12 ·
layers · width · context length, N without the input embedding, nothing added for activations that are computed again;
times tokens a second; over the peak that the maker of the device states (`training/metrics.py`), or where it states
none over a large matrix product measured in the same run.
"""

import argparse
import json
import math
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import shapes
from machine import described, say
from shapes import Shape
from tables import number, spread, table
from training_loops import CONTESTANTS, Job, Turn, write_inputs

from paribus.config.groups.execution import EngineConfig
from paribus.config.identity import to_plain
from paribus.modeling.parameters import flops_per_token
from paribus.pipeline.execute import child_environment
from paribus.store import files

WARMUP = {"cpu": 5, "cuda": 10}
REFERENCE = "bare"
TOLERANCE = {"cpu": 1e-3, "cuda": 2e-2}
"""Largest relative difference of a loss that rounding may make, in float32 and in bfloat16."""
LOSSES_COMPARED = 5
"""Steps whose losses must agree; rounding grows with every further step."""
LIMIT_S = 1800.0
NAMES = {
    "bare": "bare step",
    "bare_logits": "bare step, model of transformers",
    "paribus": "paribus",
    "trainer": "Trainer",
}


@dataclass
class Results:
    """The answers of the processes of each contestant that trained a shape."""

    shape: Shape
    flops: int = 0
    """Training FLOPs of a token."""
    problem: str = ""
    """Why nothing was measured."""
    together: bool = False
    """Whether the contestants took turns every few steps."""
    answers: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def problem_of(self, name: str) -> str:
        """What went wrong with a contestant."""
        return next((answer["problem"] for answer in self.answers[name] if "problem" in answer), "")

    @property
    def measured(self) -> list[str]:
        """The contestants with which nothing went wrong."""
        return [name for name in NAMES if name in self.answers and not self.problem_of(name)]

    @property
    def out_of_memory(self) -> bool:
        """Whether any contestant wanted for memory."""
        return any("out_of_memory" in answer for answers in self.answers.values() for answer in answers)

    def windows(self, name: str) -> list[float]:
        """Seconds a step of all windows of all rounds."""
        return [value for answer in self.answers[name] for value in answer["seconds"]]

    def ratios(self, name: str) -> list[float]:
        """Time of a step over that of the bare step: a value a window in turn, or of median steps a value a round."""
        if self.together:
            pairs = zip(self.windows(name), self.windows(REFERENCE), strict=True)
            return [mine / theirs for mine, theirs in pairs]
        rounds = zip(self.answers[name], self.answers[REFERENCE], strict=True)
        return [statistics.median(one["seconds"]) / statistics.median(other["seconds"]) for one, other in rounds]

    def difference(self, name: str) -> float:
        """Largest relative difference of the first losses to those of the bare step; 0 where there are none."""
        if REFERENCE not in self.measured:
            return 0.0
        expected = self.answers[REFERENCE][0]["losses"][:LOSSES_COMPARED]
        found = [answer["losses"] for answer in self.answers[name]]
        return max(abs(a - b) / abs(b) for losses in found for a, b in zip(losses, expected, strict=False))

    def right(self, tolerance: float) -> bool:
        """Whether nothing went wrong and the losses agree."""
        return len(self.measured) == len(self.answers) and all(
            self.difference(name) <= tolerance for name in self.measured
        )


def main(given: argparse.Namespace) -> int:
    """Measure and write the tables; 1 where something fails or differs."""
    # A scheduler or `timeout` ends with SIGTERM: a process that measures would train on, and disturb what comes next.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    device = device_of(given.device)
    gpu = device["type"] == "cuda"
    known = {shape.name: shape for shape in (shapes.GPU if gpu else shapes.CPU)}
    chosen = [known[name] for name in given.shapes or (shapes.GPU_DEFAULT if gpu else known)]
    results = [measure(shape, device, given) for shape in chosen]
    if given.json:
        files.write_text(given.json, json.dumps({"device": device, "results": [asdict(one) for one in results]}))
    peak = "as its maker states" if device["stated"] else "measured: a large matrix product"
    sys.stdout.write(
        f"{device['name']}; {described(('torch', 'transformers', 'accelerate'))}. Peak {device['peak'] / 1e12:.3g} "
        f"TFLOP/s ({peak}). {given.rounds} rounds.\n\n{tables(results, device)}"
    )
    return 0 if all(one.right(TOLERANCE[device["type"]]) for one in results) else 1


def device_of(named: str) -> dict[str, Any]:
    """What the device is and can do."""
    say("the device")
    (device,) = run([Job("peak", to_plain(shapes.configuration(shapes.CPU[0], 10, named)), "")])
    if "problem" in device:
        raise SystemExit(f"--device {named}: {device['problem']}")
    return device | {"memory": device["memory"] or shapes.free_memory()}


def measure(shape: Shape, device: dict[str, Any], given: argparse.Namespace) -> Results:
    """What was measured of a shape, with half the micro-batch where a contestant wants for memory."""
    asked = replace(shape, steps=given.steps or shape.steps, micro_batch=given.micro_batch or shape.micro_batch)
    fitted = asked if given.micro_batch else shapes.fitting(asked, device["memory"], gpu=device["type"] == "cuda")
    if isinstance(fitted, str):
        return Results(shape, problem=fitted)
    results = rounds_of(fitted, device, given)
    while results.out_of_memory and fitted.micro_batch > 1:
        fitted = replace(fitted, micro_batch=fitted.micro_batch // 2)
        results = rounds_of(fitted, device, given)
    return results


def rounds_of(shape: Shape, device: dict[str, Any], given: argparse.Namespace) -> Results:
    """Rounds of all contestants; where one wants for memory, no more are made.

    A peak that is measured is the best of all rounds.
    """
    warmup, gpu = WARMUP[device["type"]], device["type"] == "cuda"
    config = shapes.configuration(shape, warmup + shape.steps, device["type"])
    number = len(given.contestants)
    together = number > 1 and shapes.fit_together(shape, device["memory"], number, gpu=gpu)
    results = Results(shape, flops_per_token(config.model, shape.vocab_size), together=together)
    with tempfile.TemporaryDirectory() as directory:
        write_inputs(Path(directory), config, shape.vocab_size, warmup + shape.steps)
        for turn in range(given.rounds):
            if not device["stated"]:
                device["peak"] = max(device["peak"], device_of(device["type"])["peak"])
            order = random.Random(turn).sample(given.contestants, number)
            for group in [order] if together else [[name] for name in order]:
                say(f"{shape.name}, micro-batch {shape.micro_batch}, round {turn + 1}, {', '.join(group)}")
                jobs = [Job(name, to_plain(config), directory, warmup, shape.window) for name in group]
                for name, answer in zip(group, run(jobs), strict=True):
                    results.answers.setdefault(name, []).append(answer)
                if results.out_of_memory:
                    return results
    return results


def run(jobs: Sequence[Job]) -> list[dict[str, Any]]:
    """What fresh processes measured, several of which take turns; where one fails, the others are ended."""
    with tempfile.TemporaryDirectory() as scratch, ExitStack() as ended:
        directory = Path(scratch)
        if len(jobs) > 1:
            pipes = [str(directory / f"turn_{place}") for place in range(len(jobs))]
            for pipe in pipes:
                os.mkfifo(pipe)
            jobs = [replace(job, pipes=(pipes[place - 1], pipes[place])) for place, job in enumerate(jobs)]
            Turn((pipes[-1],)).hand_on()
        processes = [started(job, directory / str(place)) for place, job in enumerate(jobs)]
        for process in processes:
            ended.callback(process.wait)
            ended.callback(process.kill)
        end = time.monotonic() + LIMIT_S
        while any(one.poll() is None for one in processes) and not any(one.poll() for one in processes):
            if time.monotonic() > end:
                return [{"problem": f"more than {LIMIT_S:.0f} s"}] * len(jobs)
            time.sleep(0.2)
        return [answer(process, directory / str(place)) for place, process in enumerate(processes)]


def started(job: Job, directory: Path) -> "subprocess.Popen[bytes]":
    """The process of a job, whose files are in `directory`."""
    directory.mkdir()
    (directory / "job.json").write_text(json.dumps(asdict(job)), encoding="utf-8")
    child, environment = Path(__file__).with_name("training_loops.py"), child_environment(EngineConfig())
    # Of several GPUs all but one are hidden: Trainer would divide its batches among them.
    visible = environment.get("CUDA_VISIBLE_DEVICES", "0").partition(",")[0]
    command = [sys.executable, str(child), str(directory / "job.json"), str(directory / "result.json")]
    with (directory / "said.txt").open("wb") as said:
        return subprocess.Popen(
            command,
            env=environment | {"HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": visible},
            stdout=said,
            stderr=said,
        )


def answer(process: "subprocess.Popen[bytes]", directory: Path) -> dict[str, Any]:
    """What a process measured, or its problem."""
    if process.poll() is None:
        return {"problem": "was ended, since another one failed"}
    if process.returncode:
        last = (directory / "said.txt").read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return {"problem": last[-1] if last else f"exit status {process.returncode}"}
    measured: dict[str, Any] = json.loads((directory / "result.json").read_text(encoding="utf-8"))
    return measured


def tables(results: Sequence[Results], device: dict[str, Any]) -> str:
    """Both tables, and what was left out."""
    speed = ["shape", "loop", "s a step", "to bare", "CPU s", "tokens/s", "utilisation %", "peak GiB"]
    rows = [speed_row(one, name, device) for one in results for name in NAMES if name in one.answers]
    outside = ["shape", "waiting for data %", "metrics %", "other %", "outside the step %"]
    shares = [outside_row(one) for one in results if "paribus" in one.measured]
    left_out = "".join(f"{one.shape.name} was left out: {one.problem}.\n" for one in results if one.problem)
    return f"{table([*speed, 'losses differ by'], rows)}\n{table(outside, shares)}\n{left_out}"


def speed_row(one: Results, name: str, device: dict[str, Any]) -> list[str]:
    """A line of a contestant."""
    shape = one.shape
    again = ", activations again" if shape.checkpointing else ""
    size = f"{shape.vocab_size:,} tokens, {shape.global_batch} x {shape.context_length}"
    told = [f"{shape.name} ({size}, micro-batch {shape.micro_batch}{again})", NAMES[name]]
    if name not in one.measured:
        return [*told, f"**{one.problem_of(name)}**", *[""] * 6]
    rate = shape.step_tokens / statistics.median(one.windows(name))
    bold = "**" if one.difference(name) > TOLERANCE[device["type"]] else ""
    return [
        *told,
        spread(one.windows(name)),
        interval(one.ratios(name)) if REFERENCE in one.measured else "",
        f"{statistics.median(answer['processor'] for answer in one.answers[name]):.3g}",
        number(rate),
        f"{100 * rate * one.flops / device['peak']:.1f}",
        f"{max(answer['peak'] for answer in one.answers[name]) / 2**30:.2f}",
        f"{bold}{one.difference(name):.0e}{bold}" if REFERENCE in one.measured else "",
    ]


def interval(values: list[float]) -> str:
    """The median, and the ends of its 95 % confidence interval: order statistics, whatever the distribution is."""
    ordered, count = sorted(values), len(values)
    reach = math.ceil(1.96 * math.sqrt(count) / 2)
    low, high = max(0, count // 2 - reach), min(count - 1, (count - 1) // 2 + reach)
    return f"{statistics.median(values):.3f} ({ordered[low]:.3f}-{ordered[high]:.3f})"


def outside_row(one: Results) -> list[str]:
    """A line of what the loop of paribus does beside its steps; the median of rounds."""
    answers = one.answers["paribus"]
    data, metrics, step = (
        statistics.median(answer["parts"].get(part, 0.0) / answer["whole"] for answer in answers)
        for part in ("data", "metrics", "step")
    )
    shares = (data, metrics, 1 - data - metrics - step, 1 - step)
    return [one.shape.name, *(f"{100 * share:.2f}" for share in shares)]


def arguments() -> argparse.Namespace:
    """Those of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add, names = parser.add_argument, sorted({shape.name for shape in (*shapes.CPU, *shapes.GPU)})
    add("--device", default="auto", help="auto, cpu or cuda, the first that is visible")
    add("--shapes", nargs="+", choices=names, help="default: those that suit the device")
    add("--contestants", nargs="+", choices=CONTESTANTS, default=list(CONTESTANTS))
    add("--rounds", type=int, default=3, help="processes of each contestant")
    add("--steps", type=int, help="measured steps, a multiple of the window; those of warm-up come before")
    add("--micro-batch", type=int, help="default: the largest that should fit, halved while it does not")
    add("--json", type=Path, help="file for every number")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main(arguments()))
