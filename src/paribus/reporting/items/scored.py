"""What can be looked at item by item: tasks and sets of documents, each by the measure that the table has of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from paribus.config.groups.experiment import TableConfig
from paribus.reporting.table.column import BITS_PER_BYTE, METRICS, Column
from paribus.reporting.table.columns import columns_of
from paribus.reporting.table.comparison import Comparison
from paribus.reporting.table.frame import RunRecord
from paribus.reporting.table.score_lines import Remembered
from paribus.reporting.table.scores import Heldout, RunScores, load

HELDOUT = "heldout"
"""What the held-out documents of the corpus are called here."""
BITS_OF_ITEMS = ("choice_bits", "target_bits")
JUDGED = ("accuracy", "exact match")
"""Families of metrics whose values of one answer are right or wrong; others, such as F1, may happen to be 0 or 1."""
ROUNDING = 1e-9
"""Below which a difference between means of an item is that of the order in which they were summed."""
Kind = Literal["right", "score", "documents"]


@dataclass(frozen=True)
class Scored:
    """A task, or a set of documents, as the table measures it."""

    name: str
    kind: Kind
    """`right`: each answer is right or wrong; `score`: it has any other number; `documents`: bits of whole texts."""
    column: Column
    bits: str | None = None
    """The metric of items that has the bits of the right answer; None where there is none, or it is the measure."""

    @property
    def shots(self) -> tuple[int, ...]:
        """Numbers of examples in the prompt; none of documents."""
        return self.column.parts[0].shots if self.column.parts else ()

    @property
    def metric(self) -> str:
        """What its values are: of a perplexity the bits that it is measured and tested in."""
        return self.column.parts[0].scored if self.column.parts else "bits_per_byte"

    @property
    def lower(self) -> bool:
        """Whether less is better."""
        return self.column.better == "lower"

    def documents(self, scores: RunScores) -> Heldout | None:
        """A run's documents; None where it has none of this set."""
        found = scores.texts.get(self.column.field) if self.column.field else scores.heldout
        return found if found else None


def left_out(scored: Scored, comparison: Comparison) -> frozenset[str]:
    """The items that the table leaves out in all its rows."""
    about = comparison.left_out.get(scored.name)
    return frozenset[str]() if about is None or about.kept else frozenset[str]().union(*about.by_shots.values())


def all_scored(comparison: Comparison) -> dict[str, Scored]:
    """Tasks, then sets of documents, by name, whether the table has columns of them or not."""
    scores = list(comparison.scores.values())
    tasks = sorted({task for score in scores for task, _, _ in score.blocks})
    read = any(len(score.heldout) for score in scores)
    sets = dict.fromkeys(name for score in scores for name in score.texts)
    named = (*(_as_named(task, comparison.table) for task in tasks), *([BITS_PER_BYTE.key] if read else []), *sets)
    if not named:
        return {}
    # Groups may be called as tasks are.
    table = replace(comparison.table, columns=named, groups=None, shots="mean")
    columns = dict(zip((*tasks, *([HELDOUT] if read else []), *sets), columns_of(scores, [], table), strict=True))
    return {
        name: _task(name, column, scores) if column.parts else Scored(name, "documents", column)
        for name, column in columns.items()
    }


def _as_named(task: str, table: TableConfig) -> str:
    """`task`, or `task:metric` where the table has columns of it by that alone."""
    names = [whole for whole in (name.partition("/")[0] for name in table.columns) if whole.partition(":")[0] == task]
    return task if task in names else next(iter(names), task)


def _task(name: str, column: Column, scores: Sequence[RunScores]) -> Scored:
    (part,) = column.parts
    keys = [(name, shots, part.scored) for shots in part.shots]
    values = [score.blocks[key].values for score in scores for key in keys if key in score.blocks]
    known = METRICS.get(part.scored)
    judged = known is None or known.family in JUDGED
    kind: Kind = "right" if judged and all(np.isin(each, (0.0, 1.0)).all() for each in values) else "score"
    metrics = {metric for score in scores for task, _, metric in score.blocks if task == name}
    bits = next((metric for metric in BITS_OF_ITEMS if metric in metrics and metric != part.scored), None)
    return Scored(name, kind, column, bits)


def with_left_out(comparison: Comparison, runs: Sequence[RunRecord]) -> Mapping[str, RunScores]:
    """Scores by run id with the items that the table leaves out, for which they are read again."""
    if all(about.kept for about in comparison.left_out.values()):
        return comparison.scores
    remembered = Remembered()
    return {
        run.run_id: load(run.scores, run.finetuned, remembered)
        for run in runs
        if run.scores is not None and run.run_id in comparison.scores
    }
