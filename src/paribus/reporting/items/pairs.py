"""Two rows on the same items: in how many answers both are right, one of them, or none. McNemar's table."""

from dataclasses import dataclass

import numpy as np

from paribus.reporting.items.scored import ROUNDING, Scored
from paribus.reporting.significance.items import Matrix
from paribus.reporting.table.cells import Values
from paribus.reporting.table.comparison import Comparison, ComparisonRow, measured

_RELATIVE = 1e-12
"""The same of long documents, whose bits are millions."""


@dataclass(frozen=True)
class Pair:
    """A row of a table beside the one that it is compared with, in one task or set of documents.

    Of answers that are right or wrong each seed, checkpoint and number of shots counts, so that
    (only_row - only_baseline) / answers is the table's difference. Of all else an item or document counts once, by its
    mean over these.
    """

    row: int
    baseline: int
    answers: int
    """Of each of the two; of scores and documents how many there are."""
    value_row: float
    value_baseline: float
    """As in the table; shares of one where the table shows %."""
    better_row: int
    better_baseline: int
    """Where one of the two is better: of answers, where it alone is right."""
    both: int | None = None
    """Answers in which both are right; None for what is no answer that is right or wrong."""

    @property
    def neither(self) -> int | None:
        """Answers in which both are wrong; None as for `both`."""
        return None if self.both is None else self.answers - self.both - self.better_row - self.better_baseline

    @property
    def equal(self) -> int:
        """Where neither of the two is better."""
        return self.answers - self.better_row - self.better_baseline

    @property
    def difference(self) -> float:
        """The row less what it is compared with."""
        return self.value_row - self.value_baseline


def pairs_of(scored: Scored, comparison: Comparison) -> list[Pair]:
    """Each row that is compared with another, where both were scored."""
    places = [(place, row.baseline) for place, row in enumerate(comparison.rows) if row.baseline is not None]
    found = [_pair(scored, comparison, row, base) for row, base in places if base is not None]
    return [pair for pair in found if pair is not None]


def _pair(scored: Scored, comparison: Comparison, row: int, base: int) -> Pair | None:
    ours, theirs = comparison.rows[row], comparison.rows[base]
    whole = [measured(each, scored.column, comparison.scores) for each in (ours, theirs)]
    if not all(whole):
        return None
    seeds = paired_seeds(*whole, alike=_begin_alike(ours, theirs))
    values = [
        (measured(ours, column, comparison.scores), measured(theirs, column, comparison.scores))
        for column in scored.each_shot()
    ]
    if scored.kind == "right":
        return _of_answers([(a[one], b[other]) for a, b in values for one, other in seeds], row, base)
    sides = [_mean([both[side] for both in values], [pair[side] for pair in seeds]) for side in (0, 1)]
    if scored.kind == "documents":
        return _compared(scored, sides, _bits(scored, comparison, (ours, theirs), seeds), (row, base))
    return _compared(scored, sides, sides, (row, base))


def _begin_alike(ours: ComparisonRow, theirs: ComparisonRow) -> bool:
    return ours.runs[0].start == theirs.runs[0].start


def paired_seeds(ours: Values, theirs: Values, *, alike: bool) -> list[tuple[int, int]]:
    """The seeds that both have, as the table pairs them; where these are fewer than two, every one with every other.

    So it is too where rows go on from different checkpoints, and are not `alike`.
    """
    common = sorted(ours.keys() & theirs.keys())
    if len(common) > 1 and alike:
        return [(seed, seed) for seed in common]
    return [(one, other) for one in sorted(ours) for other in sorted(theirs)]


def _of_answers(answers: list[tuple[Matrix, Matrix]], row: int, base: int) -> Pair:
    ours = np.concatenate([one.ravel() for one, _ in answers])
    theirs = np.concatenate([other.ravel() for _, other in answers])
    return Pair(
        row,
        base,
        answers=len(ours),
        value_row=float(ours.mean()),
        value_baseline=float(theirs.mean()),
        better_row=int(np.sum(ours > theirs)),
        better_baseline=int(np.sum(ours < theirs)),
        both=int(np.sum((ours == 1) & (theirs == 1))),
    )


def _mean(by_shots: list[Values], seeds: list[int]) -> Matrix:
    """(items,) over checkpoints, shots and these seeds, of which one may stand there several times."""
    found: Matrix = np.mean([values[seed].mean(axis=0) for values in by_shots for seed in seeds], axis=0)
    return found


def _bits(
    scored: Scored, comparison: Comparison, rows: tuple[ComparisonRow, ComparisonRow], seeds: list[tuple[int, int]]
) -> list[Matrix]:
    """(documents,) of each of two rows: bits of each text itself, in place of what the table's tests take of it."""
    found = []
    for side, row in enumerate(rows):
        runs = {run.seed: comparison.scores[run.run_id] for run in row.runs if run.run_id in comparison.scores}
        documents = [scored.documents(runs[pair[side]]) for pair in seeds]
        found.append(np.mean([each.bits.mean(axis=0) for each in documents if each is not None], axis=0))
    return found


def _compared(scored: Scored, values: list[Matrix], items: list[Matrix], places: tuple[int, int]) -> Pair:
    sign = -1 if scored.lower else 1
    apart = ~np.isclose(items[0], items[1], rtol=_RELATIVE, atol=ROUNDING)
    ahead = np.where(apart, sign * (items[0] - items[1]), 0.0)
    return Pair(
        *places,
        answers=len(ahead),
        value_row=float(values[0].mean()),
        value_baseline=float(values[1].mean()),
        better_row=int(np.sum(ahead > 0)),
        better_baseline=int(np.sum(ahead < 0)),
    )
