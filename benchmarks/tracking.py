"""What tracking costs a training: the time that the training spends telling, and that of the processes behind it.

python benchmarks/tracking.py [--steps 1600] [--threads 1]

A training process tells its parent eleven numbers every ten steps through a pipe; the parent appends them to the run's
events, and MLflow's process sends them into SQLite. All three share this machine's cores, so where none is free the
training waits for as long as the others compute.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from machine import described

from paribus.config.groups.execution import EngineConfig, TrackingConfig
from paribus.pipeline.execute import child_environment
from paribus.stage import ChannelListener
from paribus.store.files import read_object_if_any
from paribus.tracking.destination import Destination
from paribus.tracking.events import EventLog, TextAxes
from paribus.tracking.mlflow import is_delivered
from paribus.tracking.sync import Follower

NUMBERS = ("learning_rate", "gradient_norm", "loss", "tokens", "text_bytes", "flops", "epochs", "bits_per_byte",
           "tokens_per_second", "device_hours", "model_flops_utilization")  # fmt: skip
EVERY, BEFORE = 10, 20
"""Steps between those that are told, and unmeasured ones before, after which MLflow's process is at work."""


def train(writing: int, steps: int) -> None:
    """The training process: last it sends the seconds of its steps and those spent telling."""
    import torch

    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True, norm_first=True)
    model = torch.nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
    optimizer, batch = torch.optim.AdamW(model.parameters()), torch.randn(4, 128, 256)
    with os.fdopen(writing, "w", encoding="utf-8") as channel:
        listener, telling, began = ChannelListener(channel), 0.0, 0.0
        for step in range(1, BEFORE + steps + 1):
            optimizer.zero_grad()
            loss = model(batch).square().mean()
            loss.backward()
            optimizer.step()
            value, before = loss.item(), time.perf_counter()
            if step % EVERY == 0:
                for name in NUMBERS:
                    listener.metric(f"train/{name}", value + step, step=step)
            telling += time.perf_counter() - before
            if step == BEFORE:
                # The parent lets go on once all of it is delivered.
                listener.send({"type": "ready"})
                sys.stdin.readline()
                telling, began = 0.0, time.perf_counter()
        listener.send({"type": "done", "wall": time.perf_counter() - began, "telling": telling})


def measure(root: Path, steps: int, threads: int) -> None:
    """Run the training, do what its parent does, and print the figures."""
    tracking, directory = TrackingConfig(kind="mlflow"), root / "runs" / "run"
    destination = Destination.resolve(tracking, root)
    reading, writing = os.pipe()
    command = [sys.executable, __file__, "--steps", str(steps), "--child", str(writing)]
    environment = child_environment(EngineConfig(threads=threads))
    child = subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=[writing], env=environment, text=True)
    os.close(writing)
    processes, before = [os.getpid()], 0.0
    with os.fdopen(reading, encoding="utf-8") as lines, EventLog(directory / "events.jsonl") as log:
        log.start("run", "run", None, {})
        follower, axes = Follower(directory, tracking, root), TextAxes()
        for message in map(json.loads, lines):
            if message["type"] == "ready":
                while not is_delivered(directory, destination):
                    time.sleep(0.2)
                processes.append(read_object_if_any(destination.service_directory / "state.json")["pid"])
                before = sum(map(cpu_seconds, processes))
                child.stdin.write("\n")
                child.stdin.flush()
            elif message["type"] == "done":
                spent, wall, telling = sum(map(cpu_seconds, processes)) - before, message["wall"], message["telling"]
            else:
                for point in axes.points(message["name"], float(message["value"]), message["step"]):
                    log.metric(*point)
        log.end("FINISHED")
    child.wait()
    follower.finish(60)
    sys.stdout.write(
        f"a step takes {wall / steps * 1e3:.1f} ms; telling takes {telling / wall:.3%}\n"
        f"CPU time of the parent and of MLflow's process: {spent / wall:.2%} of a core; with telling "
        f"{(spent + telling) / wall:.2%}\n({steps:,} steps, {threads} threads; {described(('torch', 'mlflow'))})\n"
    )


def cpu_seconds(pid: int) -> float:
    """CPU time of a process so far, by its clock of nanoseconds (see clock_getcpuclockid(3))."""
    return time.clock_gettime((~pid << 3) | 2)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=1600)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--child", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child is not None:
        train(given.child, given.steps)
    else:
        with tempfile.TemporaryDirectory() as directory:
            measure(Path(directory), given.steps, given.threads)
