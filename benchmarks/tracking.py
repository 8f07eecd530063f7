"""What tracking costs a training: the time of its steps with MLflow following the run and without, in turns.

A training process tells its parent a dozen numbers every `training.log_every` steps through a pipe; the parent appends
them to the run's events, and MLflow's process sends them on. All three share this machine's cores. Blocks of steps take
turns at telling and not telling; each begins with unmeasured steps, so that MLflow's process is at work in the whole of
a block that tells. Where the speed of the machine itself varies, blocks differ by more than tracking costs: what the
telling and the other processes take is measured by itself, too.

    python benchmarks/tracking.py [--pairs 60] [--threads 1]
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

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
STEPS, BEFORE, EVERY = 40, 10, 10
"""Steps of a block, unmeasured ones before it, and steps between those that are told."""
RESAMPLES = 10_000


def train(writing: int) -> None:
    """The training process: for each line of its input one block, answered by its seconds.

    A line is `on` or `off` and the numbers of the processes that work for it.
    """
    import torch

    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True, norm_first=True)
    model = torch.nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
    optimizer = torch.optim.AdamW(model.parameters())
    batch = torch.randn(4, 128, 256)
    with os.fdopen(writing, "w", encoding="utf-8") as channel:
        listener, step = ChannelListener(channel), 0
        for line in sys.stdin:
            kind, *others = line.split()
            telling = 0.0
            for place in range(-BEFORE, STEPS):
                if place == 0:
                    telling, began, cpu = 0.0, time.perf_counter(), time.process_time()
                    helping = sum(map(cpu_seconds, others))
                optimizer.zero_grad()
                loss = model(batch).square().mean()
                loss.backward()
                optimizer.step()
                step += 1
                value, before = loss.item(), time.perf_counter()
                if kind == "on" and step % EVERY == 0:
                    for name in NUMBERS:
                        listener.metric(f"train/{name}", value + step, step=step)
                telling += time.perf_counter() - before
            wall, spent = time.perf_counter() - began, time.process_time() - cpu
            helped = sum(map(cpu_seconds, others)) - helping
            listener.send({"type": "block", "wall": wall, "cpu": spent, "telling": telling, "others": helped})


def listen(
    channel: "os.PathLike[str] | int", log: EventLog, blocks: list[dict[str, Any]], ready: threading.Event
) -> None:
    """The parent: events of numbers, and the seconds of blocks."""
    axes = TextAxes()
    with os.fdopen(channel, encoding="utf-8") as lines:
        for line in lines:
            message = json.loads(line)
            if message["type"] == "block":
                blocks.append(message)
                ready.set()
            else:
                for point in axes.points(message["name"], float(message["value"]), message["step"]):
                    log.metric(*point)


def cpu_seconds(pid: str | int) -> float:
    """CPU time of a process so far, by its clock of nanoseconds (see clock_getcpuclockid(3))."""
    return time.clock_gettime((~int(pid) << 3) | 2)


def measure(root: Path, options: argparse.Namespace) -> None:
    """Run the blocks and print the figures."""
    tracking, directory = TrackingConfig(kind="mlflow"), root / "runs" / "run"
    destination = Destination.resolve(tracking, root)
    reading, writing = os.pipe()
    environment = child_environment(EngineConfig(threads=options.threads))
    words = [sys.executable, __file__, "--child", str(writing)]
    child = subprocess.Popen(words, stdin=subprocess.PIPE, pass_fds=[writing], env=environment, text=True)
    os.close(writing)
    blocks: list[dict[str, Any]] = []
    ready, found = threading.Event(), []
    with EventLog(directory / "events.jsonl") as log:
        log.start("run", "run", None, {})
        follower = Follower(directory, tracking, root)
        listener = threading.Thread(target=listen, args=(reading, log, blocks, ready), daemon=True)
        listener.start()

        def block(kind: str) -> dict[str, Any]:
            while not is_delivered(directory, destination):
                time.sleep(0.2)
            ready.clear()
            child.stdin.write(f"{kind}\n")
            child.stdin.flush()
            ready.wait()
            return blocks[-1]

        block("on"), block("off")
        helpers = f" {os.getpid()} {read_object_if_any(destination.service_directory / 'state.json')['pid']}"
        began = time.monotonic()
        shuffled = random.Random(0)
        for _ in range(options.pairs):
            found.append({kind: block(kind + helpers) for kind in shuffled.sample(["on", "off"], 2)})
        wall = time.monotonic() - began
        child.stdin.close()
        child.wait()
        listener.join()
        log.end("FINISHED")
    follower.finish(60)
    show(found)
    say(f"({options.pairs} pairs, {wall:.0f} s, {options.threads} threads, load {os.getloadavg()[0]:.1f})")


def show(pairs: list[dict[str, dict[str, Any]]]) -> None:
    """Print the figures of pairs of blocks, one `on` and one `off` each."""
    on = [pair["on"] for pair in pairs]
    total = sum(block["wall"] for block in on)
    telling, others = (sum(block[name] for block in on) / total for name in ("telling", "others"))
    say(f"a step takes {total / (len(on) * STEPS) * 1e3:.1f} ms; telling takes {telling:.3%}")
    say(f"CPU time of the parent and of MLflow's process: {others:.2%} of a core; with telling {telling + others:.2%}")
    for name, clock in (("time", "wall"), ("CPU time of the training process", "cpu")):
        ratio, low, high = total_ratio([(pair["on"][clock], pair["off"][clock]) for pair in pairs])
        say(f"{name}, blocks with tracking / without: {ratio:.4f}, 95 % interval {low:.4f} to {high:.4f}")


def total_ratio(pairs: list[tuple[float, float]]) -> tuple[float, float, float]:
    """The first numbers' sum by that of the second, with the 95 % percentile bootstrap over pairs."""
    drawn = random.Random(1)

    def ratio(chosen: list[tuple[float, float]]) -> float:
        return sum(one for one, _ in chosen) / sum(two for _, two in chosen)

    ratios = sorted(ratio(drawn.choices(pairs, k=len(pairs))) for _ in range(RESAMPLES))
    return ratio(pairs), ratios[int(0.025 * RESAMPLES)], ratios[int(0.975 * RESAMPLES)]


def say(line: str) -> None:
    """Print a line."""
    sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=60)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--child", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child is not None:
        train(given.child)
    else:
        with tempfile.TemporaryDirectory() as directory:
            measure(Path(directory), given)
