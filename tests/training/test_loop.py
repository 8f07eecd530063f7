"""What a training run reports while it runs: in the metrics file, to the tracker and on the terminal."""

import dataclasses
import json
import math
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from paribus.config.groups.ordering import BestFitPacking, ConcatenatePacking, PackingConfig
from paribus.config.groups.training import EqualStepsBudget
from paribus.ordering.contexts import pack
from paribus.ordering.shuffle import ShuffledContexts
from paribus.stage import SilentListener
from paribus.training.checkpoint import Checkpoints
from paribus.training.data import Batches, context_targets, context_text_bytes, resolve_budget
from paribus.training.loop import Meter, TrainingRun
from paribus.training.metrics import MetricsFile, Spent
from support.packings import FixedOrder
from support.training_inputs import TRAINING

EOS, STEPS, STEP_FLOPS = 7, 30, 2 * 10**9
LENGTHS = np.array([1, 2, 3, 4, 5, 6, 7, 0])


class ProgressListener(SilentListener):
    """Keeps the units that were done each time progress was reported, too."""

    def __init__(self) -> None:
        super().__init__()
        self.done: list[float] = []

    def progress(self, done: float, total: float, *, unit: str, doing: str, detail: str = "") -> None:
        self.done.append(done)


def metered(
    path: Path, packing: PackingConfig, start: int = 0, before: Spent | None = None
) -> tuple[Batches, ProgressListener, list[dict[str, float]]]:
    """Batches, listener and metrics file of a run of all steps from `start` on."""
    random = np.random.default_rng(1)
    offsets = np.concatenate([[0], np.cumsum(random.integers(1, 9, 30))])
    contexts = pack(packing, random.integers(0, EOS, offsets[-1]), offsets, FixedOrder(np.arange(30)), EOS, 4)
    batches, listener = Batches(contexts, 3, ShuffledContexts(contexts.count, 0)), ProgressListener()
    targets, text = context_targets(contexts), context_text_bytes(contexts, LENGTHS)
    budget = resolve_budget(EqualStepsBudget(steps=STEPS), batches, targets, text, STEP_FLOPS)
    run = TrainingRun(
        training=dataclasses.replace(TRAINING, log_every=7),
        budget=budget,
        batches=batches,
        dropout_seed=0,
        targets=targets,
        text_bytes=text,
        document_end=None,
        checkpoints=Checkpoints(path.parent, frozenset(), {}),
        metrics=MetricsFile(path),
        listener=listener,
        accelerator=SimpleNamespace(device=torch.device("cpu"), num_processes=1),
    )
    meter = Meter(run, start, before or Spent())
    for step in range(start, STEPS):
        meter.record(step + 1, batches.indices(step), loss=2.0, rate=0.1, norm=1.0, skipped=0)
    run.metrics.sync()
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    if start == 0:
        last = [lines[-1][f"train/{name}"] for name in ("tokens", "text_bytes", "flops", "epochs")]
        assert last == [budget.tokens, budget.text_bytes, budget.flops, budget.epochs]
    return batches, listener, lines


@pytest.mark.parametrize("packing", [ConcatenatePacking(), BestFitPacking(window=4)], ids=str)
def test_each_line_counts_everything_read_so_far(packing: PackingConfig, tmp_path: Path) -> None:
    batches, listener, lines = metered(tmp_path / "metrics.jsonl", packing)
    bits = {step: value for name, value, step in listener.metrics if name == "train/bits_per_byte"}
    assert bits.keys() == {7, 14, 21, 28, 30}
    tokens = text = 0
    for step, line in enumerate(lines, start=1):
        targets = batches.rows(step - 1)[1]
        targets = targets[targets >= 0]
        step_text = int(LENGTHS[targets].sum())
        tokens, text = tokens + len(targets), text + step_text
        assert line == {
            "step": step, "train/loss": 2.0, "train/learning_rate": 0.1, "train/gradient_norm": 1.0,
            "train/tokens": tokens, "train/text_bytes": text, "train/flops": step * STEP_FLOPS,
            "train/epochs": step * 3 / batches.contexts.count,
        }  # fmt: skip
        if step in bits:
            assert bits[step] == pytest.approx(2.0 / math.log(2) * len(targets) / step_text)


def test_resumed_run_writes_the_lines_of_an_uninterrupted_one(tmp_path: Path) -> None:
    _, _, whole = metered(tmp_path / "whole.jsonl", BestFitPacking(window=4))
    _, listener, rest = metered(tmp_path / "rest.jsonl", BestFitPacking(window=4), 13, Spent(450.0, 3600.0))
    assert rest == whole[13:]
    assert listener.done[0] == whole[12]["train/tokens"]
    hours = [value for name, value, _ in listener.metrics if name == "train/device_hours"]
    assert hours == pytest.approx([1.0] * len(hours), abs=0.01)


# The metrics file itself.


def metrics_file(path: Path, steps: int) -> MetricsFile:
    metrics = MetricsFile(path)
    for step in range(1, steps + 1):
        metrics.append(step, {"train/loss": float(step)})
        # A line can be read as soon as it is appended.
        assert MetricsFile(path).complete_steps() == step
    return metrics


def test_only_whole_lines_in_sequence_count(tmp_path: Path) -> None:
    metrics = metrics_file(tmp_path / "metrics.jsonl", 3)
    whole = metrics.path.read_text()
    for tail in ("", '{"step": 4, "train/lo', '{"step": 4}', "null\n", '{"step": 9}\n'):
        metrics.path.write_text(whole + tail)
        assert metrics.complete_steps() == 3, tail
        metrics.truncate(3)
        assert metrics.path.read_text() == whole, tail


def test_count_is_read_at_the_resumed_step_whatever_came_after_it(tmp_path: Path) -> None:
    metrics = MetricsFile(tmp_path / "metrics.jsonl")
    for step, skipped in enumerate([0, 1, 1, 2], start=1):
        metrics.append(step, {"train/skipped_steps": skipped} if skipped else {})
    assert [metrics.at(step, "train/skipped_steps") for step in range(6)] == [0, 0, 1, 1, 2, 0]
