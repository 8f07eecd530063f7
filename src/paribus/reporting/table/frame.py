"""What a report is built from: the records of runs, and their items as one tidy table."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paribus.config.identity import canonical
from paribus.reporting.fairness.equality import ENVIRONMENT, flatten
from paribus.reporting.table.scores import load

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class RunRecord:
    """What the record of one finished run says; a report is built from these alone."""

    run_id: str
    config: Mapping[str, Any]
    """The full identity configuration as nested JSON, with `seed`."""
    factors: Mapping[str, str]
    """Label of this run at each declared factor: {"tokenizer": "scaffold_bpe"}."""
    environment: Mapping[str, str]
    """Device, precision, `packages.<stage>.<name>` of deciding ones, `code_version.<stage>`, `digest.<stage>`."""
    training: Mapping[str, Any]
    """Result of the training: tokens, text_bytes, steps, epochs, parameters, flops, device_hours, final_loss."""
    scores: Path | None
    """Directory of the `evaluation` artefact; None where the run has not been evaluated."""
    directory: Path
    """Directory of the run, which cells link to."""
    mlflow_url: str | None = None
    vocabulary: Path | None = None
    """Directory of the `vocabulary` artefact."""
    vocabulary_size: int | None = None
    """Tokens that the vocabulary has, which may be fewer than were asked for."""
    tokens: Path | None = None
    """Directory of the `tokens` artefact."""
    readings: Path | None = None
    """File that says how often training read a sample of the corpus' bytes."""
    find_steps: Callable[[], Any] | None = None
    """Find the step at which training first read each of these bytes, int64, -1 where it did not."""
    finetuned: Path | None = None
    """Directory of the `finetuning` artefact."""
    gone: tuple[str, ...] = ()
    """What the record names and is there no longer, in words."""
    corpus: Mapping[str, Any] = field(default_factory=dict)
    """Result of the corpus; `overlap` of its held-out documents with training text, and what `moved` there."""
    commit: str | None = None
    """Of the code that trained it."""
    ended: float | None = None
    """When it ended, in seconds since 1970."""
    harmless: Mapping[str, str] = field(default_factory=dict)
    """Versions of packages that can change no number, by package."""

    @property
    def seed(self) -> int:
        """Seed of the run."""
        return int(self.config.get("seed", 0))

    @cached_property
    def steps_read(self) -> Any:
        """Result of `find_steps`; None without it."""
        return self.find_steps() if self.find_steps else None

    @property
    def start(self) -> str | None:
        """What tells the checkpoint that training goes on from from others; None where it begins at random."""
        start = self.config.get("start") or {}
        files = (self.config.get("fingerprints") or {}).get("start")
        return canonical([start, files]) if start.get("kind") == "checkpoint" else None

    @cached_property
    def fields(self) -> Mapping[str, str]:
        """Configuration and environment, path -> canonical JSON."""
        return flatten(self.config) | {ENVIRONMENT + name: canonical(value) for name, value in self.environment.items()}


@dataclass(frozen=True)
class MissingRun:
    """A combination of factors that was asked for and has no finished run."""

    factors: Mapping[str, str]
    reason: str
    diverged: bool = False
    """Whether it failed by a number, such as a loss that is not finite."""
    after: int | None = None
    """How many of the finished runs were asked for before it, None for all: rows stand in the order of the sweep."""


def frame(runs: Sequence[RunRecord]) -> "pd.DataFrame":
    """All items of all runs, one line an item and checkpoint, whatever becomes of them.

    Columns run_id, one a factor, seed, checkpoint (0 for the first of the scored ones), task, shots, item, doc_hash,
    metric, value.
    """
    import pandas as pd

    parts = []
    for run in runs:
        labels: dict[str, Any] = {"run_id": run.run_id, **run.factors, "seed": run.seed}
        for (task, shots, metric), block in load(run.scores, run.finetuned).blocks.items() if run.scores else ():
            for checkpoint, values in enumerate(block.values):
                named = {"checkpoint": checkpoint, "task": task, "shots": shots, "item": block.items}
                parts.append(
                    pd.DataFrame(labels | named | {"doc_hash": block.hashes, "metric": metric, "value": values})
                )
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()
