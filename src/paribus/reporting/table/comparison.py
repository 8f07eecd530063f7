"""The comparison itself, as numbers: rows are combinations of factors, columns are measures, cells know their runs."""

from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np

from paribus.config.groups.experiment import TableConfig, default_table
from paribus.errors import ConfigurationError, DataError
from paribus.reporting.fairness import fairness
from paribus.reporting.notes.common_text import CommonText, common_text
from paribus.reporting.significance.effects import Effect, effects, with_decisions
from paribus.reporting.significance.judgement import scores_by_measure, tested, with_best, without_inference
from paribus.reporting.table.arrangement import Labels, baselines, factors_of, ordered
from paribus.reporting.table.cells import Cell, Cells, Values, cells_of, item_averages, shown
from paribus.reporting.table.column import Column
from paribus.reporting.table.columns import columns_of, primary_of
from paribus.reporting.table.fitting import LeftOut, cut_alike, fitting
from paribus.reporting.table.frame import MissingRun, RunRecord
from paribus.reporting.table.measures import fewest_items, measure
from paribus.reporting.table.score_lines import Remembered
from paribus.reporting.table.scores import RunScores, load

_READERS = 2


@dataclass(frozen=True)
class ComparisonRow:
    """One combination of factors: its labels, its runs (one a seed) and its cells by column key."""

    labels: tuple[str, ...]
    runs: tuple[RunRecord, ...]
    cells: Mapping[str, Cell]
    missing: tuple[str, ...] = ()
    """Why runs, or scores of them, that were asked for are not there."""
    diverged: int = 0
    """Runs that are not there since a number was not finite."""
    baseline: int | None = None
    """Place of the row that this one is compared with; None for such a row itself."""

    @property
    def may_lose_text(self) -> bool:
        """Whether there is text that its tokenizer loses."""
        return any(run.training.get("lossy") for run in self.runs)

    def loses_text(self, scores: Mapping[str, RunScores]) -> bool:
        """Whether its tokenizer loses what is scored, so that its models predict less than what their bits are of."""
        found = [scores[run.run_id] for run in self.runs if run.run_id in scores]
        return self.may_lose_text and (not found or any(each.changed_documents != 0 for each in found))


@dataclass(frozen=True)
class Comparison:
    """A table of numbers with the proof that it is fair and what a reader has to know."""

    factors: tuple[str, ...]
    columns: tuple[Column, ...]
    rows: tuple[ComparisonRow, ...]
    chance: Mapping[str, float]
    """Accuracy of guessing, by column key."""
    checkpoints: int
    proof: fairness.Proof
    scores: Mapping[str, RunScores]
    """By run id."""
    table: TableConfig
    primary: frozenset[str]
    """Keys of the columns that decide the question; others are exploratory."""
    common_text: Sequence[CommonText]
    """Training text that rows which are compared share, by pair and seed."""
    left_out: Mapping[str, LeftOut]
    """By task the items with a prompt that some run cut, where not all cut the same at the same place."""
    effects: tuple[Effect, ...] = ()
    """What each factor does to the measures that decide, and how two depend on each other."""

    @property
    def exploratory(self) -> bool:
        """Whether there are tests of columns that do not decide the question."""
        others = [column.key for column in self.columns if column.scored and column.key not in self.primary]
        return any(row.cells[key].p_value is not None for row in self.finished for key in others)

    @property
    def held(self) -> tuple[str, ...]:
        """Parts of a run whose own seed all runs of a row share, so that its seeds do not vary them."""
        several = [[run.config.get("seeds") or {} for run in row.runs] for row in self.rows if len(row.runs) > 1]
        parts = dict.fromkeys(part for row in several for seeds in row for part in seeds)
        return tuple(
            part
            for part in parts
            if any(row[0].get(part) is not None and len({seeds.get(part) for seeds in row}) == 1 for row in several)
        )

    @property
    def finished(self) -> tuple[ComparisonRow, ...]:
        """Rows that have runs."""
        return tuple(row for row in self.rows if row.runs)

    @property
    def baseline_rows(self) -> tuple[ComparisonRow, ...]:
        """The rows that others are compared with."""
        places = dict.fromkeys(row.baseline for row in self.rows if row.baseline is not None)
        return tuple(self.rows[place] for place in places if place is not None) or self.rows[:1]

    def name(self, text: str) -> str:
        """What the table says for a label, a factor or a task."""
        return (self.table.names or {}).get(text, text)

    def row_name(self, row: ComparisonRow) -> str:
        """A row in a sentence, a legend or on an axis."""
        return " · ".join(map(self.name, row.labels)) or "all runs"

    def place(self, row: ComparisonRow) -> int:
        """Where a row stands in the table, from 0."""
        return next(place for place, other in enumerate(self.rows) if other is row)


def compare(
    runs: Sequence[RunRecord],
    factors: Sequence[str],
    missing: Sequence[MissingRun] = (),
    table: TableConfig | None = None,
) -> Comparison:
    """Build the table that `table` describes: without it, one of all measures, compared with the first row.

    A run whose scores are gone or unreadable keeps its row, with a gap and the reason.

    Raises:
        FairnessError: the runs differ in more than the factors and the seed.
        ConfigurationError: there are no runs, a label is missing, a combination has a seed twice, or `table` names what
            is not there.
    """
    if not runs:
        raise ConfigurationError(
            "no finished run was found to report; `paribus status` says what has run and what failed"
            + "".join(f"\n  {', '.join(run.factors.values()) or 'the run'}: {run.reason}" for run in missing[:10])
        )
    table = table or default_table()
    factors = factors_of(factors, table)
    scores, gone = _load(runs)
    fairness.refuse(runs, factors, scores)
    groups = _as_asked(fairness.by_labels(runs, factors), runs, missing, factors)
    _refuse_repeated_seeds(groups)
    sizes = ("model.context_length", "model.context_bytes")
    lengths = {tuple(run.fields.get(size) for size in sizes) for run in runs}
    alike = len(lengths) == 1 and fairness.tokenized_alike(runs) and cut_alike(scores)
    scores, left_out = (scores, {}) if alike else fitting(scores)
    columns = columns_of(list(scores.values()), [run.training for run in runs], table)
    columns = _comparable(columns, runs, table)
    primary = primary_of(columns, list(scores.values()), table)
    rows = _rows(groups, missing, gone, factors, table)
    values = [{column.key: measured(row, column, scores) for column in columns} for row in rows]
    averages = item_averages(values)
    compared = [row.baseline for row in rows]
    references = {factor: rows[0].labels[at] for at, factor in enumerate(factors)} | dict(table.baseline or {})
    cells = _with_fewest(cells_of(values, averages), rows, columns, scores, left_out)
    cells = _with_grounds(cells, rows, columns, scores)
    by_measure = scores_by_measure(values, columns)
    cells = tested(cells, values, compared, columns, table, scores=by_measure, averages=averages)
    deciding = [column for column in columns if column.scored and column.key in primary]
    labels = [row.labels for row in rows]
    found = effects(labels, references, compared, deciding, cells, scores=by_measure)
    cells = with_best(shown(with_decisions(cells, found, compared), columns), labels, deciding, table)
    pairs = {frozenset((place, base)) for place, base in enumerate(compared) if base is not None}
    pairs |= {frozenset(pair) for effect in found for pair in effect.contrast.pairs}
    return Comparison(
        factors=factors,
        columns=tuple(columns),
        rows=tuple(replace(row, cells=by_column) for row, by_column in zip(rows, cells, strict=True)),
        chance=_chance(columns, list(scores.values())),
        checkpoints=max((score.checkpoints for score in scores.values()), default=0),
        proof=fairness.proof(runs, factors),
        scores=scores,
        table=table,
        primary=primary,
        common_text=[
            text
            for base, place in sorted(sorted(pair) for pair in pairs)
            for text in common_text(place, rows[place].runs, base, rows[base].runs)
        ],
        left_out=left_out,
        effects=tuple(found),
    )


def measured(row: ComparisonRow, column: Column, scores: Mapping[str, RunScores]) -> Values:
    """A row's values for a column by seed, without the runs that have none."""
    values = {run.seed: measure(column, run.training, scores.get(run.run_id)) for run in row.runs}
    return {seed: value for seed, value in values.items() if value is not None}


def cells_by_column(comparison: Comparison, columns: Sequence[Column], checkpoint: int | None = None) -> list[Cells]:
    """Cells, by row, of columns that need not be the table's; of one of the checkpoints alone, where it is given.

    As in the table, those of too few items have no interval.
    """
    values: list[dict[str, Values]] = []
    for row in comparison.finished:
        found = {column.key: measured(row, column, comparison.scores) for column in columns}
        if checkpoint is not None:
            found = {
                key: {seed: each[checkpoint : checkpoint + 1] for seed, each in seeds.items() if len(each) > checkpoint}
                for key, seeds in found.items()
            }
        values.append(found)
    cells = cells_of(values, item_averages(values))
    cells = _with_fewest(cells, comparison.finished, columns, comparison.scores, comparison.left_out)
    return shown([without_inference(row, columns) for row in cells], columns)


def _with_grounds(
    cells: Sequence[Cells], rows: Sequence[ComparisonRow], columns: Sequence[Column], scores: Mapping[str, RunScores]
) -> list[Cells]:
    """The cells with the checkpoint that their row goes on from, which is no part of the seed: all its runs do.

    Those of bits of texts also with whether its tokenizer loses text, which its models then need not predict.
    """
    of_texts = {column.key for column in columns if column.kind in ("bits_per_byte", "perplexity")}
    return [
        {
            key: replace(cell, start=row.runs[0].start, lossy=key in of_texts and row.loses_text(scores))
            for key, cell in by_column.items()
        }
        if row.runs
        else by_column
        for by_column, row in zip(cells, rows, strict=True)
    ]


def _with_fewest(
    cells: Sequence[Cells],
    rows: Sequence[ComparisonRow],
    columns: Sequence[Column],
    scores: Mapping[str, RunScores],
    left_out: Mapping[str, LeftOut],
) -> list[Cells]:
    """The cells of means over tasks with the items of the smallest, which alone may say too little.

    Of a task whose prompts are cut otherwise in each row these are the ones that fit all.
    """
    found = [dict(row) for row in cells]
    for row, by_column in zip(rows, found, strict=True):
        for column in columns:
            known = [fewest_items(column, scores[run.run_id]) for run in row.runs if run.run_id in scores]
            sizes = [(size, False) for size in known if size is not None]
            sizes += [
                (out.whole(part.shots), True) for part in column.parts if (out := left_out.get(part.task)) and out.kept
            ]
            if sizes and by_column[column.key].value is not None:
                fewest, fits = min(sizes)
                by_column[column.key] = replace(by_column[column.key], fewest=fewest, fitting=fits)
    return found


def _comparable(columns: Sequence[Column], runs: Sequence[RunRecord], table: TableConfig) -> list[Column]:
    """The columns without a loss per token where runs have different tokens; ConfigurationError if one was named."""
    losses = [column.key for column in columns if column.kind == "loss"]
    if not losses or fairness.tokenized_alike(runs):
        return list(columns)
    if named := [key for key in losses if key in table.columns]:
        raise ConfigurationError(
            f"experiment.table.columns: {named[0]} is per token, and these runs have different tokens; name "
            "bits_per_byte"
        )
    return [column for column in columns if column.kind != "loss"]


def _load(runs: Sequence[RunRecord]) -> tuple[dict[str, RunScores], dict[str, str]]:
    """Scores by run id, and why there are none for runs that should have them."""

    remembered = Remembered()

    def read(run: RunRecord) -> RunScores | str | None:
        try:
            return load(run.scores, run.finetuned, remembered) if run.scores else None
        except DataError as error:
            return str(error)

    with ThreadPoolExecutor(_READERS) as readers:
        found = {run.run_id: result for run, result in zip(runs, readers.map(read, runs), strict=True)}
    scores = {run_id: result for run_id, result in found.items() if isinstance(result, RunScores)}
    return scores, {run_id: result for run_id, result in found.items() if isinstance(result, str)}


def _as_asked(
    groups: Mapping[Labels, Sequence[RunRecord]],
    runs: Sequence[RunRecord],
    missing: Sequence[MissingRun],
    factors: Sequence[str],
) -> dict[Labels, Sequence[RunRecord]]:
    """The runs by their labels as they were asked for, none where none is finished: the first row stays the first."""
    found = [(place, 1, _labels(run, factors)) for place, run in enumerate(runs)]
    found += [(len(runs) if run.after is None else run.after, 0, _labels(run, factors)) for run in missing]
    return {labels: groups.get(labels, ()) for _, _, labels in sorted(found, key=lambda each: each[:2])}


def _labels(run: RunRecord | MissingRun, factors: Sequence[str]) -> Labels:
    return tuple(run.factors.get(factor, "?") for factor in factors)


def _rows(
    groups: Mapping[Labels, Sequence[RunRecord]],
    missing: Sequence[MissingRun],
    gone: Mapping[str, str],
    factors: Sequence[str],
    table: TableConfig,
) -> list[ComparisonRow]:
    reasons: dict[Labels, list[str]] = {labels: [] for labels in groups}
    diverged: Counter[Labels] = Counter()
    for run in missing:
        labels = _labels(run, factors)
        reasons[labels].append(run.reason)
        diverged[labels] += run.diverged
    for labels, group in groups.items():
        for record in group:
            lost = [*record.gone, *([gone[record.run_id]] if record.run_id in gone else [])]
            reasons[labels] += [f"run {record.run_id} (seed {record.seed}): {reason}" for reason in lost]
    places = ordered(list(reasons), factors, table)
    compared = baselines(places, factors, table)
    return [
        ComparisonRow(labels, tuple(groups.get(labels, ())), {}, tuple(reasons[labels]), diverged[labels], baseline)
        for labels, baseline in zip(places, compared, strict=True)
    ]


def _refuse_repeated_seeds(groups: Mapping[Labels, Sequence[RunRecord]]) -> None:
    for labels, group in groups.items():
        seeds = [run.seed for run in group]
        for seed in sorted(set(seeds)):
            if seeds.count(seed) > 1:
                ids = ", ".join(run.run_id for run in group if run.seed == seed)
                raise ConfigurationError(f"{', '.join(labels)} with seed {seed} was given twice: runs {ids}")


def _chance(columns: Sequence[Column], scores: Sequence[RunScores]) -> dict[str, float]:
    known = {task: level for score in scores for task, level in score.chance.items()}
    levels: dict[str, float] = {}
    for column in columns:
        right = all(part.metric.startswith("acc") and part.task in known for part in column.parts)
        if column.parts and right:
            levels[column.key] = float(np.mean([known[part.task] for part in column.parts]))
    return levels
