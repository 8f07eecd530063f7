"""Speed and memory of training beside the bare model step and transformers.Trainer, with the losses compared.

python benchmarks/training.py [--device auto|cpu|cuda] [--shapes NAME ...] [--output FILE] [--json FILE]

The contestants train the same weights on the same contexts with the same optimizer and learning rates. Every
measurement is a process of its own, in the environment that paribus gives a stage. Where memory suffices for all at
once they take turns every few steps, so that they meet the machine in the same state; otherwise they run after one
another, in an order drawn for each round, or as they are named where there is one round.

The exit status is 1 where a contestant fails or losses differ that must not.

Model-FLOPs utilisation: FLOPs a token after Chowdhery et al. 2022 (PaLM, arXiv 2204.02311), appendix B, 6 N + 12 ·
layers · width · context length, N without the input embedding, nothing added for activations that are computed again;
times tokens a second; over the peak that the maker of the device states (`training/metrics.py`), or where it states
none over a large matrix product measured in the same run.
"""

import argparse
import dataclasses
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

from loops import shapes, tables
from loops.inputs import write_inputs
from loops.job import Job, run, run_in_turn
from loops.results import CHECKPOINTED, UNDISTURBED, Results
from loops.shapes import Shape

from paribus.config.identity import to_plain
from paribus.modeling.parameters import artefact_bytes, flops_per_token
from paribus.store import files

CONTESTANTS = ("bare", "bare_logits", "paribus", "trainer", "trainer_compiled", CHECKPOINTED)
CONTESTANT_OF = {CHECKPOINTED: "paribus", UNDISTURBED: "paribus"}
EVERY = 5
"""Steps between the checkpoints of the one that writes them."""
WARMUP = {"cpu": 5, "cuda": 10}
ON_DISK = 3
"""Checkpoints on the disk while a third is written."""


def main(given: argparse.Namespace) -> int:
    """Measure and write the tables; 1 where something fails or differs."""
    # A scheduler or `timeout` ends with SIGTERM: a process that measures would train on, and disturb what comes next.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    device = _device(given)
    gpu = device["type"] == "cuda"
    known, default = (shapes.GPU, shapes.GPU_DEFAULT) if gpu else (shapes.CPU, shapes.CPU_DEFAULT)
    results: list[Results] = []
    for name in given.shapes or default:
        for found in _measure(known[name], device, given):
            _write_numbers(given.json, device, [*results, found])
        results.append(found)
    report = f"{_machine(device, given)}\n{tables.report(results, device, EVERY)}"
    sys.stdout.write(report)
    if given.output:
        given.output.write_text(report, encoding="utf-8")
    return 0 if all(one.right for one in results if not one.problem) else 1


def _write_numbers(path: Path | None, device: dict[str, Any], results: list[Results]) -> None:
    """Every number so far."""
    found = [
        {"shape": vars(one.shape), "flops": one.flops, "problem": one.problem, "answers": one.answers}
        for one in results
    ]
    if path:
        files.write_text(path, json.dumps({"device": device, "results": found}))


def _device(given: argparse.Namespace) -> dict[str, Any]:
    """What the device is and can do, and the precision computed in."""
    _report("the device")
    config = shapes.configuration(shapes.CPU["demo"], 10, given.device)
    device = run(Job("peak", to_plain(config), ""), given.limit)
    if "problem" in device:
        raise SystemExit(f"--device {given.device}: {device['problem']}")
    precision = {"cpu": "fp32", "cuda": "bf16"}[device["type"]] if given.precision == "auto" else given.precision
    return device | {"memory": device["memory"] or shapes.free_memory(), "precision": precision}


def _measure(shape: Shape, device: dict[str, Any], given: argparse.Namespace) -> Iterator[Results]:
    """What was measured, each time that there is more; last the whole."""
    asked = _changed(shape, given)
    gpu, half = device["type"] == "cuda", device["precision"] == "bf16"
    fitted = shapes.fitting(asked, device["memory"], half=half, gpu=gpu)
    if given.micro_batch:
        fitted = asked
    if isinstance(fitted, str):
        yield Results(shape, 0, device["precision"], fitted)
        return
    while True:
        for results in _play(fitted, device, given):
            yield results
        if not results.out_of_memory or fitted.micro_batch == 1:
            return
        fitted = fitted.halved()


def _changed(shape: Shape, given: argparse.Namespace) -> Shape:
    """The shape as the command line changes it."""
    asked = {"steps": given.steps, "micro_batch": given.micro_batch, "checkpointing": given.activation_checkpointing}
    return dataclasses.replace(shape, **{name: value for name, value in asked.items() if value})


def _play(shape: Shape, device: dict[str, Any], given: argparse.Namespace) -> Iterator[Results]:
    """Rounds of all contestants, after each of them that measures alone; where one wants for memory, no more are made.

    A peak that is measured is the best of all rounds.
    """
    warmup, window = WARMUP[device["type"]], shape.window
    options = (f"training.precision={device['precision']}", f"training.compile={given.compile}")
    config = shapes.configuration(shape, warmup + shape.steps, given.device, *options)
    saving = shapes.configuration(
        shape, warmup + shape.steps, given.device, *options, f"training.checkpoint_every={EVERY}"
    )
    results = Results(shape, flops_per_token(config.model, shape.vocab_size), device["precision"])
    with tempfile.TemporaryDirectory(dir=given.directory) as directory:
        write_inputs(Path(directory), config, shape.vocab_size, warmup + shape.steps)
        names = _contestants(device, given, artefact_bytes(config.model, shape.vocab_size, 1), Path(directory))
        results.together = _fit_together(shape, device, len(names))
        for turn in range(given.rounds):
            if not device["stated"]:
                device["peak"] = max(device["peak"], _device(given)["peak"])
            # One round alone may be broken off: what is named first is measured first.
            order = random.Random(turn).sample(names, len(names)) if given.rounds > 1 else names
            for group in _groups(order, together=results.together):
                _report(f"{shape.name}, micro-batch {shape.micro_batch}, round {turn + 1}, {', '.join(group)}")
                jobs = [
                    Job(CONTESTANT_OF.get(name, name), to_plain(used), directory, warmup, window)
                    for name in group
                    for used in [saving if name == CHECKPOINTED else config]
                ]
                for name, answer in zip(group, run_in_turn(jobs, given.limit), strict=True):
                    results.answers.setdefault(name, []).append(answer)
                yield results
                if results.out_of_memory:
                    return
        if not results.answers:
            yield results


def _groups(names: list[str], *, together: bool) -> list[list[str]]:
    """Those that measure at the same time."""
    if not together:
        return [[name] for name in names]
    turns = [name for name in names if name != CHECKPOINTED]
    return [turns, *([[UNDISTURBED], [CHECKPOINTED]] if CHECKPOINTED in names else [])]


def _fit_together(shape: Shape, device: dict[str, Any], processes: int) -> bool:
    gpu, half = device["type"] == "cuda", device["precision"] == "bf16"
    return processes > 1 and shapes.fit_together(shape, device["memory"], processes, half=half, gpu=gpu)


def _contestants(device: dict[str, Any], given: argparse.Namespace, checkpoint: int, directory: Path) -> list[str]:
    """Those asked for; Trainer compiles where paribus does, and checkpoints are written where there is room."""
    left_out = set()
    if not (given.compile == "always" or (given.compile == "auto" and device["type"] == "cuda")):
        left_out.add("trainer_compiled")
    if ON_DISK * checkpoint > shutil.disk_usage(directory).free or checkpoint > 1e9 * given.checkpoint_gigabytes:
        left_out.add(CHECKPOINTED)
    return [name for name in given.contestants if name not in left_out]


def _machine(device: dict[str, Any], given: argparse.Namespace) -> str:
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    versions = ", ".join(f"{name} {version(name)}" for name in ("torch", "transformers", "accelerate"))
    peak = "as its maker states" if device["stated"] else "measured: a large matrix product"
    return (
        f"{device['name']}, {os.cpu_count()} cores, load average {load} at the end; {time.strftime('%Y-%m-%d')}; "
        f"{versions}; {device['precision']}, compile={given.compile}. Peak {device['peak'] / 1e12:.3g} TFLOP/s "
        f"({peak}). {given.rounds} rounds.\n"
    )


def _report(what: str) -> None:
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} load {os.getloadavg()[0]:.1f} {what}\n")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add = parser.add_argument
    names = sorted({*shapes.CPU, *shapes.GPU})
    add("--device", default="auto", help="auto, cpu or cuda, the first that is visible")
    add("--shapes", nargs="+", choices=names, help="default: those that suit the device")
    add("--contestants", nargs="+", choices=CONTESTANTS, default=CONTESTANTS)
    add("--rounds", type=int, default=3, help="processes of each contestant")
    add("--steps", type=int, help="measured steps, a multiple of the window; those of warm-up come before")
    add("--micro-batch", type=int, help="default: the largest that should fit, halved while it does not")
    add("--activation-checkpointing", action="store_true", help="also where memory suffices without")
    add("--precision", choices=("auto", "fp32", "bf16"), default="auto")
    add("--compile", choices=("auto", "always", "never"), default="auto")
    add("--checkpoint-gigabytes", type=float, default=6.0, help="larger checkpoints are not written")
    add("--limit", type=float, default=1800.0, help="seconds after which a process is given up")
    add("--directory", type=Path, help="where inputs and checkpoints lie while they are needed")
    add("--output", type=Path, help="file for the tables")
    add("--json", type=Path, help="file for every number, rewritten as they are measured")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main(_arguments()))
