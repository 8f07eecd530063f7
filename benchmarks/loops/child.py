"""The process of one measurement: `python -m loops.child JOB RESULT`, both files of JSON. Started by `loops.job`."""

import json
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from loops.job import Job
from loops.turn import Turn
from loops.watch import Watch
from paribus.config.validate import build_run
from paribus.errors import OutOfMemoryError
from paribus.modeling.device import resolve_device
from paribus.training.metrics import peak_flops
from paribus.training.parallel import device_name, explained_memory_errors

SIZES = {"cpu": 2048, "cuda": 8192}
REPEATS = 20


def main(job: Job) -> dict[str, Any]:
    """Do the job; what was measured."""
    return peak(job) if job.contestant == "peak" else train(job)


def train(job: Job) -> dict[str, Any]:
    """Train with the contestant's loop."""
    from loops.contestants import CONTESTANTS

    config = build_run(job.config)
    turn = Turn(*map(Path, job.turn)) if job.turn else None
    watch = Watch(
        resolve_device(config.training.device, "training.device"),
        job.warmup,
        job.config["budget"]["steps"],
        job.window,
        turn,
    )
    with tempfile.TemporaryDirectory(dir=job.directory) as work:
        try:
            with explained_memory_errors(config.training):
                losses = CONTESTANTS[job.contestant](config, Path(job.directory), Path(work), watch)
        except OutOfMemoryError as error:
            return {"problem": str(error), "out_of_memory": True}
    return watch.measured() | {"losses": losses}


def peak(job: Job) -> dict[str, Any]:
    """What the device is and can do: FLOP/s as its maker states them, else of a large matrix product."""
    device = resolve_device(job.config["training"]["device"], "training.device")
    stated = peak_flops(device_name(device))
    memory = float(torch.cuda.mem_get_info(device)[0]) if device.type == "cuda" else None
    found = {"name": device_name(device), "memory": memory, "type": device.type, "stated": stated}
    return found | ({"peak": stated} if stated else {"peak": _product(device)})


def _product(device: torch.device) -> float:
    size = SIZES[device.type]
    kind = torch.bfloat16 if device.type == "cuda" else torch.float32
    left, right = (torch.randn(size, size, device=device, dtype=kind) for _ in range(2))
    result, best = torch.empty_like(left), float("inf")
    for _ in range(REPEATS):
        began = time.perf_counter()
        torch.mm(left, right, out=result)
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        best = min(best, time.perf_counter() - began)
    return 2 * size**3 / best


if __name__ == "__main__":
    given = Job(**json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
    Path(sys.argv[2]).write_text(json.dumps(main(given) | {"job": asdict(given)}), encoding="utf-8")
