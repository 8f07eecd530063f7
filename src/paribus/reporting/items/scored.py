"""What can be looked at item by item: tasks and sets of documents, each by the measure that the table has of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from paribus.config.groups.experiment import TableConfig
from paribus.config.validate import unknown
from paribus.errors import ConfigurationError
from paribus.reporting.table.column import BITS_PER_BYTE, METRICS, Column
from paribus.reporting.table.columns import columns_of
from paribus.reporting.table.comparison import Comparison
from paribus.reporting.table.frame import RunRecord
from paribus.reporting.table.score_lines import Remembered
from paribus.reporting.table.scores import Heldout, RunScores, load

HELDOUT = "heldout"
"""What the held-out documents of the corpus are called here."""
LAST = "last"
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

    def each_shot(self) -> list[Column]:
        """The column of each number of shots alone; of documents the only one."""
        if not self.column.parts:
            return [self.column]
        part = self.column.parts[0]
        return [replace(self.column, parts=(replace(part, shots=(number,)),)) for number in self.shots]

    def documents(self, scores: RunScores) -> Heldout | None:
        """A run's documents; None where it has none of this set."""
        found = scores.texts.get(self.column.field) if self.column.field else scores.heldout
        return found if found else None


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


def asked_for(scored: Mapping[str, Scored], task: str | None, shots: int | None) -> list[Scored]:
    """The one of this name, or all; at this number of shots alone, which documents do not have.

    ConfigurationError for what is not there, with what is.
    """
    if not scored:
        raise ConfigurationError("none of these runs has scores of items or documents; paribus status says why")
    if task is not None and task not in scored:
        raise ConfigurationError(f"--task: {unknown(task, list(scored))}")
    found = [scored[task]] if task is not None else list(scored.values())
    if shots is None:
        return found
    known = sorted({number for one in found for number in one.shots})
    if shots not in known:
        of = "" if task is None else f"{task}: "
        listed = f"there are {', '.join(map(str, known))}" if known else "there are none, only documents"
        raise ConfigurationError(f"--shots {shots}: {of}no answers with so many examples in the prompt; {listed}")
    return [_at(one, shots) for one in found if shots in one.shots]


def _at(scored: Scored, shots: int) -> Scored:
    (part,) = scored.column.parts
    return replace(scored, column=replace(scored.column, parts=(replace(part, shots=(shots,)),)))


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


def at_checkpoint(scores: Mapping[str, RunScores], asked: str) -> dict[str, RunScores]:
    """Scores of one checkpoint: the `last`, or that of a step, and those that stand at its place in other runs.

    ConfigurationError for a step that none was scored at, or that stands at several places.
    """
    steps = [found.steps for found in scores.values()]
    if asked == LAST:
        return {run: _only(found, -1) for run, found in scores.items()}
    places = {each.index(int(asked)) for each in steps if asked.isdecimal() and int(asked) in each}
    if len(places) != 1:
        known = ", ".join(dict.fromkeys(str(step) for each in steps for step in each))
        why = "stands at different shares of the runs' budgets" if places else "was not scored"
        raise ConfigurationError(f"--checkpoint {asked}: {why}; there are {LAST}, {known}")
    (place,) = places
    return {run: _only(found, place) for run, found in scores.items()}


def _only(scores: RunScores, place: int) -> RunScores:
    last = place in (-1, len(scores.steps) - 1)
    blocks = {
        key: replace(block, values=block.values[-1 if last else place][None])
        for key, block in scores.blocks.items()
        # Fine-tuning goes on from the last one, whatever was scored before it.
        if last or len(block.values) == len(scores.steps)
    }
    texts = {name: replace(each, bits=each.bits[place][None]) for name, each in scores.texts.items()}
    heldout = replace(scores.heldout, bits=scores.heldout.bits[place][None]) if len(scores.heldout) else scores.heldout
    return replace(scores, blocks=blocks, heldout=heldout, texts=texts, checkpoints=1, steps=(scores.steps[place],))
