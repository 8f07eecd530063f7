"""What tracking costs a training: the time of its steps with MLflow following the run and without, in turns.

A training process tells its parent a dozen numbers a step through a pipe; the parent appends them to the run's events,
and MLflow's process sends them on. All three share this machine's cores. Blocks of steps alternate between telling and
not telling; each begins with unmeasured steps, so that MLflow's process is at work in the whole of a block that tells.

    python benchmarks/tracking.py [--pairs 30] [--steps 10] [--threads 1] [--uri http://127.0.0.1:5000]
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from paribus.config.groups.execution import EngineConfig, TrackingConfig
from paribus.pipeline.child import PipeReporter
from paribus.pipeline.execute import child_environment
from paribus.tracking.destination import Destination
from paribus.tracking.events import EventLog
from paribus.tracking.files import read_json
from paribus.tracking.follower import Follower
from paribus.tracking.replay import is_delivered
from paribus.tracking.text_axes import TextAxes

NUMBERS = ("learning_rate", "gradient_norm", "loss", "tokens", "text_bytes", "flops", "epochs", "bits_per_byte",
           "tokens_per_second", "device_hours", "model_flops_utilization")  # fmt: skip
SHARE_BEFORE = 0.5
"""Unmeasured steps before a block, as a share of it."""


def train(writing: int, steps: int) -> None:
    """The training process: for each line `on` or `off` of its input one block, answered by its seconds."""
    import torch

    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True, norm_first=True)
    model = torch.nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
    optimizer = torch.optim.AdamW(model.parameters())
    batch = torch.randn(4, 128, 256)
    with os.fdopen(writing, "w", encoding="utf-8") as channel:
        reporter, step = PipeReporter(channel), 0
        for line in sys.stdin:
            told = 0.0
            for place in range(-int(SHARE_BEFORE * steps), steps):
                if place == 0:
                    began, cpu, told = time.perf_counter(), time.process_time(), 0.0
                optimizer.zero_grad()
                loss = model(batch).square().mean()
                loss.backward()
                optimizer.step()
                step += 1
                value, before = loss.item(), time.perf_counter()
                if line.strip() == "on":
                    for name in NUMBERS:
                        reporter.metric(f"train/{name}", value + step, step=step)
                told += time.perf_counter() - before
            seconds = {"wall": time.perf_counter() - began, "cpu": time.process_time() - cpu, "telling": told}
            reporter.send({"type": "block", **seconds})


def listen(
    channel: "os.PathLike[str] | int", log: EventLog, blocks: list[dict[str, float]], ready: threading.Event
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


def cpu_seconds(pid: int) -> float:
    """CPU time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(root: Path, uri: str | None, pairs: int, steps: int, threads: int) -> None:
    """Run the blocks and print the figures."""
    tracking, directory = TrackingConfig(kind="mlflow", uri=uri), root / "runs" / "run"
    destination = Destination.resolve(tracking, root)
    reading, writing = os.pipe()
    environment = child_environment(EngineConfig(threads=threads))
    words = [sys.executable, __file__, "--child", str(writing), "--steps", str(steps)]
    child = subprocess.Popen(words, stdin=subprocess.PIPE, pass_fds=[writing], env=environment, text=True)
    os.close(writing)
    blocks: list[dict[str, float]] = []
    ready, found = threading.Event(), []
    with EventLog(directory / "events.jsonl") as log:
        log.start("run", "run", None, {})
        follower = Follower(directory, tracking, root)
        listener = threading.Thread(target=listen, args=(reading, log, blocks, ready), daemon=True)
        listener.start()

        def block(kind: str) -> dict[str, float]:
            while not is_delivered(directory, destination):
                time.sleep(0.2)
            ready.clear()
            child.stdin.write(f"{kind}\n")
            child.stdin.flush()
            ready.wait()
            return blocks[-1]

        block("on"), block("off")
        service = int(read_json(destination.service_directory / "state.json")["pid"])
        before, began = (cpu_seconds(service), cpu_seconds(os.getpid())), time.monotonic()
        shuffled = random.Random(0)
        for _ in range(pairs):
            found.append({kind: block(kind) for kind in shuffled.sample(["on", "off"], 2)})
        after, wall = (cpu_seconds(service), cpu_seconds(os.getpid())), time.monotonic() - began
        child.stdin.close()
        child.wait()
        listener.join()
        log.end("FINISHED")
    follower.finish(60)
    told = pairs * int((1 + SHARE_BEFORE) * steps)
    step = statistics.median(pair["off"]["wall"] for pair in found) / steps
    telling = statistics.median(pair["on"]["telling"] for pair in found) / steps
    say(f"a step takes {step * 1e3:.1f} ms, of which telling takes {telling * 1e6:.0f} us, {telling / step:.3%}")
    for name, clock in (("time of a step", "wall"), ("CPU time of the training process", "cpu")):
        ratios = [pair["on"][clock] / pair["off"][clock] for pair in found]
        low, high = interval(ratios)
        ratio = f"median {statistics.median(ratios):.4f}, 95 % interval {low:.4f} to {high:.4f}"
        say(f"{name}, with tracking / without: {ratio}, {pairs} pairs")
    for name, one, two in zip(("MLflow's process", "the parent"), before, after, strict=True):
        say(f"CPU of {name}: {(two - one) / told * 1e3:.2f} ms for each step told")
    say(f"({wall:.0f} s, {threads} threads, load {os.getloadavg()[0]:.1f})")


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def interval(ratios: list[float], repeats: int = 10_000) -> tuple[float, float]:
    """Percentile bootstrap of the median."""
    drawn = random.Random(1)
    medians = sorted(statistics.median(drawn.choices(ratios, k=len(ratios))) for _ in range(repeats))
    return medians[int(0.025 * repeats)], medians[int(0.975 * repeats)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=30)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--uri", help="MLflow; an SQLite file where it is not given")
    parser.add_argument("--child", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child is not None:
        train(options.child, options.steps)
        return
    with tempfile.TemporaryDirectory() as root:
        measure(Path(root), options.uri, options.pairs, options.steps, options.threads)


if __name__ == "__main__":
    main()
