"""Finished runs that differ in the bits of their held-out documents and in nothing else."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from paribus.reporting.runs import FinishedRun
from support.tables import config_of, record

SIZES = np.random.default_rng(3).integers(500, 4000, 60)
FACTORS = ("tokenizer",)


def run(root: Path, label: str, seed: int, shift: float = 0.0, **changes: Any) -> FinishedRun:
    """A run of so many more bits per byte."""
    noise = np.random.default_rng([len(label), seed]).normal(size=len(SIZES))
    heldout = [(float(size * (2.5 + shift + 0.02 * each)), int(size)) for size, each in zip(SIZES, noise, strict=True)]
    config = config_of({"tokenizer": label}, seed) | dict(changes.pop("config", {}))
    accuracy = changes.pop("accuracy", {})
    made = record(root, f"{label}-{seed}", {"tokenizer": label}, accuracy, seed=seed, heldout=heldout, config=config)
    return replace(made, training={**made.training, "steps": 100, **changes})


def rows(root: Path, shifts: Mapping[str, Sequence[float]], **changes: Any) -> list[FinishedRun]:
    return [run(root, label, seed, shift, **changes) for label, row in shifts.items() for seed, shift in enumerate(row)]
