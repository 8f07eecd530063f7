"""What a training run says of itself while it runs: in the metrics file, to the tracker and on the terminal."""

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
from paribus.training import loop
from paribus.training.checkpoint import Checkpoints
from paribus.training.data import Batches, context_targets, context_text_bytes, resolve_budget
from paribus.training.loop import Meter, TrainingRun
from paribus.training.metrics import MetricsFile, Spent, peak_flops
from support.packings import FixedOrder
from support.training_inputs import TRAINING

EOS, STEPS, STEP_FLOPS = 7, 30, 2 * 10**9
LENGTHS = np.array([1, 2, 3, 4, 5, 6, 7, 0])


class Listening(SilentListener):
    """Keeps progress too."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[tuple[float, float, str]] = []

    def progress(self, done: float, total: float, *, unit: str, doing: str, detail: str = "") -> None:
        self.told.append((done, total, detail))


def metered(
    path: Path, packing: PackingConfig, start: int = 0, before: Spent | None = None, processes: int = 1
) -> tuple[Meter, Batches, Listening]:
    random = np.random.default_rng(1)
    offsets = np.concatenate([[0], np.cumsum(random.integers(1, 9, 30))])
    contexts = pack(packing, random.integers(0, EOS, offsets[-1]), offsets, FixedOrder(np.arange(30)), EOS, 4)
    batches = Batches(contexts, 3, ShuffledContexts(contexts.count, 0))
    targets, text = context_targets(contexts), context_text_bytes(contexts, LENGTHS)
    budget = resolve_budget(EqualStepsBudget(steps=STEPS), batches, targets, text, STEP_FLOPS)
    report = Listening()
    training = TrainingRun(
        training=dataclasses.replace(TRAINING, log_every=7),
        budget=budget,
        batches=batches,
        dropout_seed=0,
        targets=targets,
        text_bytes=text,
        document_end=None,
        checkpoints=Checkpoints(path.parent, frozenset(), {}),
        metrics=MetricsFile(path),
        listener=report,
        accelerator=SimpleNamespace(device=torch.device("cpu"), num_processes=processes),
    )
    return Meter(training, start, before or Spent()), batches, report


def run(meter: Meter, batches: Batches, start: int = 0) -> None:
    for step in range(start, STEPS):
        meter.record(step + 1, batches.indices(step), loss=2.0, rate=0.1, norm=1.0, skipped=0)
    meter.run.metrics.sync()


@pytest.mark.parametrize("packing", [ConcatenatePacking(), BestFitPacking(window=4)], ids=str)
def test_each_line_counts_what_was_read_until_then(packing: PackingConfig, tmp_path: Path) -> None:
    meter, batches, _ = metered(tmp_path / "metrics.jsonl", packing)
    run(meter, batches)
    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    tokens = text = 0
    for step, line in enumerate(lines):
        targets = batches.rows(step)[1]
        tokens += int((targets >= 0).sum())
        text += int(LENGTHS[targets[targets >= 0]].sum())
        assert line == {
            "step": step + 1, "train/loss": 2.0, "train/learning_rate": 0.1, "train/gradient_norm": 1.0,
            "train/tokens": tokens, "train/text_bytes": text, "train/flops": (step + 1) * STEP_FLOPS,
            "train/epochs": (step + 1) * 3 / batches.contexts.count,
        }  # fmt: skip
    budget = meter.run.budget
    last = [lines[-1][f"train/{name}"] for name in ("tokens", "text_bytes", "flops", "epochs")]
    assert last == [budget.tokens, budget.text_bytes, budget.flops, budget.epochs]


def test_a_run_that_goes_on_writes_the_lines_of_one_that_was_not_stopped(tmp_path: Path) -> None:
    whole, batches, _ = metered(tmp_path / "whole.jsonl", BestFitPacking(window=4))
    run(whole, batches)
    rest, batches, report = metered(tmp_path / "rest.jsonl", BestFitPacking(window=4), 13, Spent(450.0, 3600.0))
    run(rest, batches, 13)
    lines = (tmp_path / "whole.jsonl").read_text().splitlines()
    assert (tmp_path / "rest.jsonl").read_text().splitlines() == lines[13:]
    assert report.told[0][0] == json.loads(lines[12])["train/tokens"]
    hours = [value for name, value, _ in report.metrics if name == "train/device_hours"]
    assert hours == pytest.approx([1.0] * len(hours), abs=0.01)


def test_what_depends_on_the_device_is_reported_and_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "peak_flops", lambda device: 1e12)
    before = Spent(900.0, 3600.0)
    meter, batches, report = metered(tmp_path / "metrics.jsonl", ConcatenatePacking(), before=before, processes=4)
    run(meter, batches)
    found = {(name, step): value for name, value, step in report.metrics}
    assert sorted({step for _, step in found}) == [7, 14, 21, 28, 30]
    measured = {"train/tokens_per_second", "train/device_hours", "train/model_flops_utilization"}
    assert {name for name, _ in found} - measured - {"train/bits_per_byte"} == set(
        json.loads((tmp_path / "metrics.jsonl").open().readline())
    ) - {"step"}
    for step in (7, 14, 21, 28, 30):
        assert found["train/device_hours", step] == pytest.approx(1.0, abs=0.01)
        speed, utilization = (found[f"train/{name}", step] for name in ("tokens_per_second", "model_flops_utilization"))
        assert utilization == pytest.approx(speed / 12 * STEP_FLOPS / 4e12)


def test_the_loss_is_reported_in_bits_per_byte_of_the_text_of_the_step(tmp_path: Path) -> None:
    meter, batches, report = metered(tmp_path / "metrics.jsonl", ConcatenatePacking())
    run(meter, batches)
    for step in (7, 30):
        targets = batches.rows(step - 1)[1]
        targets = targets[targets >= 0]
        expected = 2.0 / math.log(2) * len(targets) / LENGTHS[targets].sum()
        found = [value for name, value, at in report.metrics if (name, at) == ("train/bits_per_byte", step)]
        assert found == [pytest.approx(expected)]


@pytest.mark.parametrize(
    ("name", "peak"),
    [
        ("NVIDIA H100 80GB HBM3", 989e12),
        ("NVIDIA H100 PCIe", 756e12),
        ("NVIDIA H200", 989e12),
        ("NVIDIA A100-SXM4-80GB", 312e12),
        ("NVIDIA A10", 125e12),
        ("NVIDIA L4", 121e12),
        ("NVIDIA L40S", 362e12),
        ("NVIDIA H100 80GB HBM3 MIG 1g.10gb", None),
        ("cpu", None),
    ],
)
def test_a_device_is_known_by_the_words_of_its_name(name: str, peak: float | None) -> None:
    assert peak_flops(name) == peak


def test_device_hours_are_summed_over_the_processes_of_each_part() -> None:
    spent = Spent().later(1800.0, 8).later(900.0, 2)
    assert (spent.seconds, spent.device_hours) == (2700.0, 4.5)
