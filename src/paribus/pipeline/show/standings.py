"""How the rows of a sweep stand while its runs end. Which is better the table says, of all of them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from rich.markup import escape

from paribus.config.groups.execution import SweepConfig
from paribus.errors import ParibusError
from paribus.evaluation.measures.main_scores import BITS, main_scores
from paribus.pipeline.output_root import OutputRoot
from paribus.pipeline.show.display import Display
from paribus.pipeline.show.remaining import ROWS, STAGES_FILE
from paribus.pipeline.stages import EVALUATION
from paribus.store.json_file import read_object_if_any

_MOST = 8
"""Rows that are shown; a terminal has little room, and the table has all."""
_FULL = "bits per byte of held-out text, lower is better"

Scores = Mapping[str, float]


@dataclass(frozen=True)
class Standing:
    """A row of which a run has ended."""

    row: str
    seeds: int
    mean: float
    """Over these seeds."""
    change: float | None
    """From the first row, over the seeds that both have; None of the first row itself, and where there are none."""


def show_standings(root: OutputRoot, sweep: SweepConfig | None, display: Display) -> None:
    """Say how the rows of a sweep stand, once two have a score and until all runs have."""
    if sweep is None or sweep.jobs == 1:
        return
    try:
        told = list(lines(root, read_object_if_any(root.sweep(sweep.id) / STAGES_FILE).get(ROWS, [])))
    # The run has ended well, so a line about it fails nothing.
    except (KeyError, TypeError, ValueError, OSError, ParibusError):
        return
    for line in told:
        display.message(f"  [dim]{escape(line)}[/dim]")


def lines(root: OutputRoot, rows: Sequence[tuple[str, int, str]]) -> Iterator[str]:
    """What is said of `rows`, as `rows_of` has them."""
    scores = {(row, seed): found for row, seed, key in rows if (found := _scores(root, key))}
    if len({row for row, _ in scores}) < 2 or len(scores) == len(rows):
        return
    name = next((name for name in next(iter(scores.values())) if all(name in one for one in scores.values())), None)
    if name is None:
        return
    yield f"so far, {len(scores)} of {len(rows)} runs: {_FULL if name == BITS else name}"
    ranked = list(dict.fromkeys(row for row, *_ in rows))
    told = standings({place: one[name] for place, one in scores.items()}, ranked)
    width = max(len(one.row) for one in told[:_MOST])
    for one in told[:_MOST]:
        change = "" if one.change is None else f", {one.change:+.4f} from {told[0].row} with the same seeds"
        seeds = "1 seed" if one.seeds == 1 else f"{one.seeds} seeds"
        yield f"  {one.row:<{width}}  {one.mean:.4f}  {seeds}{change}"
    if len(told) > _MOST:
        yield f"  and {len(told) - _MOST} more rows"


def standings(scores: Mapping[tuple[str, int], float], rows: Sequence[str]) -> list[Standing]:
    """Of `rows`, those that have one of `scores`, by row and seed, in their order."""
    by_row = {row: {seed: score for (of, seed), score in scores.items() if of == row} for row in rows}
    first = by_row[rows[0]]
    found = []
    for row, of_row in ((row, of_row) for row, of_row in by_row.items() if of_row):
        changes = [score - first[seed] for seed, score in of_row.items() if seed in first and row != rows[0]]
        found.append(Standing(row, len(of_row), fmean(of_row.values()), fmean(changes) if changes else None))
    return found


def _scores(root: OutputRoot, key: str) -> Scores:
    artifact = root.store.find(EVALUATION, key)
    return main_scores(artifact.record()["result"]["metrics"]) if artifact else {}
