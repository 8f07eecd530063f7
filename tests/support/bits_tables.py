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


def run_of(root: Path, label: str, seed: int, shift: float = 0.0, **changes: Any) -> FinishedRun:
    """A run whose held-out text costs `shift` more bits per byte."""
    noise = np.random.default_rng([len(label), seed]).normal(size=len(SIZES))
    heldout = [(float(size * (2.5 + shift + 0.02 * each)), int(size)) for size, each in zip(SIZES, noise, strict=True)]
    config = config_of({"tokenizer": label}, seed) | dict(changes.pop("config", {}))
    accuracy = changes.pop("accuracy", {})
    made = record(root, f"{label}-{seed}", {"tokenizer": label}, accuracy, seed=seed, heldout=heldout, config=config)
    return replace(made, training={**made.training, "steps": 100, **changes})


def runs_of(root: Path, shifts: Mapping[str, Sequence[float]], **changes: Any) -> list[FinishedRun]:
    """A run for each label and shift; seeds count from 0."""
    places = [(label, seed, shift) for label, row in shifts.items() for seed, shift in enumerate(row)]
    return [run_of(root, *place, **changes) for place in places]
