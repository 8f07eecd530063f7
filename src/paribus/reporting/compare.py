"""Comparison of runs as numbers: rows are combinations of factors, columns are measures, cells know their runs.

It also gives the text that compared trainings have in common, and the numbers that a tracker logs.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paribus.config.groups.evaluation import TableConfig, default_table
from paribus.config.groups.ordering import SHUFFLED_TEXT
from paribus.config.units import rounded_up_size
from paribus.errors import ConfigurationError
from paribus.reporting.columns import (
    Cell,
    Cells,
    Values,
    cells_of,
    columns_of,
    fewest_items,
    measure,
    perplexity,
    primary_of,
    with_perplexities,
)
from paribus.reporting.fairness import Proof, by_labels, proof, refuse, tokenized_alike
from paribus.reporting.judgement import (
    Effect,
    effects,
    scores_by_measure,
    with_best,
    with_decisions,
    with_tests,
    without_inference,
)
from paribus.reporting.measures import METRICS, Labels, Measure, baselines, factors_of, ordered
from paribus.reporting.runs import (
    FinishedRun,
    LeftOut,
    MissingRun,
    RunScores,
    leave_out_cut_prompts,
    load_all,
    load_scores,
    prompts_cut_alike,
)


@dataclass(frozen=True)
class Arm:
    """One combination of factors: its labels, its runs (one a seed) and its cells by column key."""

    labels: tuple[str, ...]
    runs: tuple[FinishedRun, ...]
    cells: Mapping[str, Cell]
    missing: tuple[str, ...] = ()
    """Reasons why requested runs, or their scores, are missing."""
    diverged: int = 0
    """Number of runs that are missing since a number was not finite."""
    baseline: int | None = None
    """Place of the row that this one is compared with; None for such a row itself."""

    def scored(self, scores: Mapping[str, RunScores]) -> list[RunScores]:
        """Scores of its runs that have any; `scores` by run id."""
        return [scores[run.run_id] for run in self.runs if run.run_id in scores]

    def loses_text(self, scores: Mapping[str, RunScores]) -> bool:
        """True if its tokenizer loses scored text, so that its models predict less text than their bits count for."""
        known = self.scored(scores)
        lossy = any(run.training.get("lossy") for run in self.runs)
        return lossy and (not known or any(score.changed_documents != 0 for score in known))


@dataclass(frozen=True)
class CommonText:
    """Training text that two runs of one seed share, of two rows that are compared.

    Where it is little, a difference of these rows is one of texts too.
    """

    row: int
    base: int
    """Places of the two rows in the table, the later one first."""
    seed: int
    share: float
    """Share that both read of the text of the run that read less; every reading of a byte counts."""
    share_of_more: float
    """Share that both read of the text of the run that read more, counted likewise."""
    by_step: tuple[float, float] | None
    """Shares of the bytes that both read, first read at the same step, and within `NEAR_STEPS`; None where unknown."""
    text_bytes: int
    """Bytes read by the run that read less."""
    straddling: float
    """Share of contexts with text of two stretches, which is not shuffled as one; of the run that has more."""
    remedy: str | None
    """Override that lets both read the same text, with `{text}` for its size; None where none is known."""


@dataclass(frozen=True)
class Comparison:
    """A table of numbers with the proof that it is fair and the facts that a reader has to know."""

    factors: tuple[str, ...]
    columns: tuple[Measure, ...]
    rows: tuple[Arm, ...]
    chance: Mapping[str, float]
    """Accuracy of guessing, by column key."""
    checkpoints: int
    proof: Proof
    scores: Mapping[str, RunScores]
    """Scores by run id."""
    table: TableConfig
    primary: frozenset[str]
    """Keys of the columns that decide the question; others are exploratory."""
    common_text: Sequence[CommonText]
    """Training text that rows which are compared share, by pair and seed."""
    left_out: Mapping[str, LeftOut]
    """Items by task with a prompt that some run cut, where not all cut the same at the same place."""
    effects: tuple[Effect, ...] = ()
    """Effects of each factor on the measures that decide, and interactions of two."""

    @property
    def exploratory(self) -> bool:
        """True if there are tests of columns that do not decide the question."""
        keys = [column.key for column in self.columns if column.scored and column.key not in self.primary]
        return any(row.cells[key].p_value is not None for row in self.finished for key in keys)

    @property
    def held(self) -> tuple[str, ...]:
        """Parts of a run whose own seed all runs of a row share, so that the row's seeds do not vary them."""
        rows = [[run.config.get("seeds") or {} for run in row.runs] for row in self.rows if len(row.runs) > 1]
        parts = dict.fromkeys(part for row in rows for seeds in row for part in seeds)
        return tuple(
            part
            for part in parts
            if any(row[0].get(part) is not None and len({seeds.get(part) for seeds in row}) == 1 for row in rows)
        )

    @property
    def finished(self) -> tuple[Arm, ...]:
        """Rows that have runs."""
        return tuple(row for row in self.rows if row.runs)

    @property
    def baseline_rows(self) -> tuple[Arm, ...]:
        """The rows that others are compared with."""
        places = dict.fromkeys(row.baseline for row in self.rows if row.baseline is not None)
        return tuple(self.rows[place] for place in places if place is not None) or self.rows[:1]

    def name(self, text: str) -> str:
        """Name that the table has for a label, a factor or a task."""
        return (self.table.names or {}).get(text, text)

    def row_name(self, row: Arm) -> str:
        """A row in a sentence, a legend or on an axis."""
        return " · ".join(map(self.name, row.labels)) or "all runs"

    def place(self, row: Arm) -> int:
        """Place of a row in the table, from 0."""
        return next(place for place, candidate in enumerate(self.rows) if candidate is row)


def compare(
    runs: Sequence[FinishedRun],
    factors: Sequence[str],
    missing: Sequence[MissingRun] = (),
    table: TableConfig | None = None,
) -> Comparison:
    """Build the table that `table` describes, by default one of all measures, compared with the first row.

    A run whose scores are missing or unreadable keeps its row, with a gap and the reason.

    Raises:
        FairnessError: the runs differ in more than the factors and the seed.
        ConfigurationError: there are no runs, a label is missing, a combination has a seed twice, or `table` names
            something that does not exist.
    """
    if not runs:
        raise ConfigurationError(
            "no finished run was found to report; `paribus status` says what has run and what failed"
            + "".join(f"\n  {', '.join(run.factors.values()) or 'the run'}: {run.reason}" for run in missing[:10])
        )
    table = table or default_table()
    factors = factors_of(factors, table)
    scores, gone = load_all(runs)
    refuse(runs, factors, scores)
    groups = _in_order_of_sweep(by_labels(runs, factors), runs, missing, factors)
    _refuse_repeated_seeds(groups)
    sizes = ("model.context_length", "model.context_bytes")
    lengths = {tuple(run.fields.get(size) for size in sizes) for run in runs}
    alike = len(lengths) == 1 and tokenized_alike(runs) and prompts_cut_alike(scores)
    scores, left_out = (scores, {}) if alike else leave_out_cut_prompts(scores)
    columns = columns_of(list(scores.values()), [run.training for run in runs], table)
    columns = _without_losses_per_token(columns, runs, table)
    primary = primary_of(columns, list(scores.values()), table)
    rows = _rows(groups, missing, gone, factors, table)
    values = [{column.key: values_by_seed(row, column, scores) for column in columns} for row in rows]
    compared = [row.baseline for row in rows]
    references = dict(zip(factors, rows[0].labels, strict=True)) | dict(table.baseline or {})
    cells = _with_limits(cells_of(values), rows, columns, scores, left_out)
    by_measure = scores_by_measure(values, columns)
    cells = with_tests(cells, values, compared, columns, table, scores=by_measure)
    deciding = [column for column in columns if column.scored and column.key in primary]
    labels = [row.labels for row in rows]
    tested = effects(labels, references, compared, deciding, cells, scores=by_measure)
    cells = with_best(with_perplexities(with_decisions(cells, tested, compared), columns), labels, deciding, table)
    pairs = {frozenset((place, base)) for place, base in enumerate(compared) if base is not None}
    pairs |= {frozenset(pair) for effect in tested for pair in effect.contrast.pairs}
    return Comparison(
        factors=factors,
        columns=tuple(columns),
        rows=tuple(replace(row, cells=by_column) for row, by_column in zip(rows, cells, strict=True)),
        chance=_chance(columns, list(scores.values())),
        checkpoints=max((score.checkpoints for score in scores.values()), default=0),
        proof=proof(runs, factors),
        scores=scores,
        table=table,
        primary=primary,
        common_text=[
            text
            for base, place in sorted(sorted(pair) for pair in pairs)
            for text in shared_texts(place, rows[place].runs, base, rows[base].runs)
        ],
        left_out=left_out,
        effects=tuple(tested),
    )


def values_by_seed(row: Arm, column: Measure, scores: Mapping[str, RunScores]) -> Values:
    """A row's values for a column by seed, without the runs that have none."""
    values = {run.seed: measure(column, run.training, scores.get(run.run_id)) for run in row.runs}
    return {seed: value for seed, value in values.items() if value is not None}


def cells_by_column(comparison: Comparison, columns: Sequence[Measure], checkpoint: int | None = None) -> list[Cells]:
    """Cells, by row, of columns that need not be the table's; if `checkpoint`, an index, is given, of that one alone.

    As in the table, those of too few items have no interval.
    """
    values: list[dict[str, Values]] = []
    for row in comparison.finished:
        row_values = {column.key: values_by_seed(row, column, comparison.scores) for column in columns}
        if checkpoint is not None:
            row_values = {
                key: {
                    seed: scores[checkpoint : checkpoint + 1]
                    for seed, scores in seeds.items()
                    if len(scores) > checkpoint
                }
                for key, seeds in row_values.items()
            }
        values.append(row_values)
    cells = _with_limits(cells_of(values), comparison.finished, columns, comparison.scores, comparison.left_out)
    return with_perplexities([without_inference(row, columns) for row in cells], columns)


def _with_limits(
    cells: Sequence[Cells],
    rows: Sequence[Arm],
    columns: Sequence[Measure],
    scores: Mapping[str, RunScores],
    left_out: Mapping[str, LeftOut],
) -> list[Cells]:
    """The cells with the limits of what they show.

    These are the checkpoint that all runs of the row start from, which no seed varies; for bits of texts, whether the
    tokenizer loses text, which its models then need not predict; for a mean over tasks the items of the smallest, and
    of a task whose prompts are cut differently in the rows those that fit all.
    """
    copies = [dict(row) for row in cells]
    for row, by_column in zip(rows, copies, strict=True):
        row_scores, lossy = row.scored(scores), row.loses_text(scores)
        for column in columns if row.runs else ():
            of_text = column.kind in ("bits_per_byte", "perplexity")
            cell = replace(by_column[column.key], start=row.runs[0].start, lossy=of_text and lossy)
            known = [fewest_items(column, score) for score in row_scores]
            sizes = [(size, False) for size in known if size is not None]
            sizes += [
                (out.whole(part.shots), True) for part in column.parts if (out := left_out.get(part.task)) and out.kept
            ]
            if sizes and cell.value is not None:
                fewest, fits = min(sizes)
                cell = replace(cell, fewest=fewest, fitting=fits)
            by_column[column.key] = cell
    return copies


def _without_losses_per_token(
    columns: Sequence[Measure], runs: Sequence[FinishedRun], table: TableConfig
) -> list[Measure]:
    """The columns without losses a token where runs have different tokens; ConfigurationError if `table` names one."""
    losses = [column.key for column in columns if column.kind == "loss"]
    if not losses or tokenized_alike(runs):
        return list(columns)
    if named := [key for key in losses if key in table.columns]:
        message = "is per token, and these runs have different tokens; name bits_per_byte"
        raise ConfigurationError(f"experiment.table.columns: {named[0]} {message}")
    return [column for column in columns if column.kind != "loss"]


def _in_order_of_sweep(
    groups: Mapping[Labels, Sequence[FinishedRun]],
    runs: Sequence[FinishedRun],
    missing: Sequence[MissingRun],
    factors: Sequence[str],
) -> dict[Labels, Sequence[FinishedRun]]:
    """The runs by labels in the order of the sweep, none where none is finished: so the first row stays the first."""
    places = [(place, 1, _labels_of(run, factors)) for place, run in enumerate(runs)]
    places += [(len(runs) if run.after is None else run.after, 0, _labels_of(run, factors)) for run in missing]
    return {labels: groups.get(labels, ()) for _, _, labels in sorted(places, key=lambda place: place[:2])}


def _labels_of(run: FinishedRun | MissingRun, factors: Sequence[str]) -> Labels:
    return tuple(run.factors.get(factor, "?") for factor in factors)


def _rows(
    groups: Mapping[Labels, Sequence[FinishedRun]],
    missing: Sequence[MissingRun],
    gone: Mapping[str, str],
    factors: Sequence[str],
    table: TableConfig,
) -> list[Arm]:
    reasons: dict[Labels, list[str]] = {labels: [] for labels in groups}
    diverged: Counter[Labels] = Counter()
    for run in missing:
        labels = _labels_of(run, factors)
        reasons[labels].append(run.reason)
        diverged[labels] += run.diverged
    for labels, group in groups.items():
        for record in group:
            lost = [*record.gone, *([gone[record.run_id]] if record.run_id in gone else [])]
            reasons[labels] += [f"run {record.run_id} (seed {record.seed}): {reason}" for reason in lost]
    places = ordered(list(reasons), factors, table)
    compared = baselines(places, factors, table)
    return [
        Arm(labels, tuple(groups.get(labels, ())), {}, tuple(reasons[labels]), diverged[labels], baseline)
        for labels, baseline in zip(places, compared, strict=True)
    ]


def _refuse_repeated_seeds(groups: Mapping[Labels, Sequence[FinishedRun]]) -> None:
    for labels, group in groups.items():
        seeds = [run.seed for run in group]
        for seed in sorted(set(seeds)):
            if seeds.count(seed) > 1:
                ids = ", ".join(run.run_id for run in group if run.seed == seed)
                raise ConfigurationError(f"{', '.join(labels)} with seed {seed} was given twice: runs {ids}")


def _chance(columns: Sequence[Measure], scores: Sequence[RunScores]) -> dict[str, float]:
    known = {task: level for score in scores for task, level in score.chance.items()}
    return {
        column.key: float(np.mean([known[part.task] for part in column.parts]))
        for column in columns
        if column.parts and all(part.metric.startswith("acc") and part.task in known for part in column.parts)
    }


Readings = NDArray[np.int64]
_ORDER_GROUPS = ("ordering", "duplicates", "embedder", "neighbours")
LOW_SHARE = 0.9
"""Share of common text below which a verdict is reserved: the text, and not the factor alone, may have caused it."""
NEAR_STEPS = 5
LARGEST_SAMPLE = 1.1
"""Largest ratio of a sample to the text that is read at which no smaller sample is proposed."""


def shared_texts(row: int, runs: Sequence[FinishedRun], base: int, baseline: Sequence[FinishedRun]) -> list[CommonText]:
    """Common texts of a row and the one it is compared with, for each seed of both whose records list the text read."""
    texts, by_seed = [], {run.seed: run for run in baseline}
    for run in runs:
        other = by_seed.get(run.seed)
        if not (other and run.readings and other.readings) or run.corpus.get("digest") != other.corpus.get("digest"):
            continue
        readings, base_readings = (
            np.load(path, allow_pickle=False).astype(np.int64) for path in (run.readings, other.readings)
        )
        if len(readings) != len(base_readings):
            continue
        steps, base_steps, by_step = run.steps_read, other.steps_read, None
        if steps is not None and base_steps is not None and (read := (steps >= 0) & (base_steps >= 0)).any():
            distances = np.abs(steps - base_steps)[read]
            by_step = float((distances == 0).mean()), float((distances <= NEAR_STEPS).mean())
        trainings = (run.training, other.training)
        size = min(int(training["text_bytes"]) for training in trainings)
        straddling = max(float(training.get("straddling") or 0.0) for training in trainings)
        shares, remedy = common_shares(readings, base_readings), _remedy(run, other)
        texts.append(CommonText(row, base, run.seed, *shares, by_step, size, straddling, remedy))
    return texts


def common_shares(ours: Readings, theirs: Readings) -> tuple[float, float]:
    """Shares of the text of the training that read less, and of the other's, which both read.

    Both (places,) say how often each of a sample of the corpus' bytes was read.
    """
    common, less, more = int(np.minimum(ours, theirs).sum()), *sorted((int(ours.sum()), int(theirs.sum())))
    return (common / less, common / more) if less else (0.0, 0.0)


def _remedy(run: FinishedRun, other: FinishedRun) -> str | None:
    packings, both = (_packing(run), _packing(other)), (run, other)
    seeds = [(either.config.get("seeds") or {}).get("order") for either in both]
    other_order = seeds[0] != seeds[1] or any(run.config.get(part) != other.config.get(part) for part in _ORDER_GROUPS)
    if any(packing.get("shuffle") != SHUFFLED_TEXT and packing.get("kind") != "pair" for packing in packings):
        return f"packing.shuffle={SHUFFLED_TEXT} lets all tokenizers read the same text"
    if _stretch(run) != _stretch(other):
        return (
            "where contexts differ in length, so do the stretches of text that are shuffled: give all one "
            "packing.stretch_bytes"
        )
    if other_order and any((either.config.get("ordering") or {}).get("kind") == "nn" for either in both):
        return "ordering=nn repeats documents, and so reads fewer of them"
    full_epochs = min(float(either.training.get("epochs") or 0.0) for either in both) >= 1
    if full_epochs or (other_order and _sampled(run) and _sampled(other)):
        return None
    if other_order:
        return (
            "a budget below an epoch takes other documents from each order: corpus.sample={text} chooses them before "
            "they are ordered"
        )
    return (
        "with best_fit a context holds documents of a whole window: packing=concatenate has more in common"
        if any(packing.get("kind") == "best_fit" for packing in packings)
        else "the budget reads only a few contexts of each stretch of text: a larger one has more in common"
    )


def _packing(run: FinishedRun) -> Mapping[str, Any]:
    return run.config.get("packing") or {}


def _stretch(run: FinishedRun) -> tuple[Any, ...]:
    """Configured length of the stretches, else the size of a context, which decides it."""
    stretch, model = _packing(run).get("stretch_bytes"), run.config.get("model") or {}
    return (stretch,) if stretch else (model.get("context_length"), model.get("context_bytes"))


def _sampled(run: FinishedRun) -> bool:
    """True if `corpus.sample` is a size that hardly exceeds the text that training reads."""
    sample = (run.config.get("corpus") or {}).get("sample")
    return isinstance(sample, int) and sample <= LARGEST_SAMPLE * int(run.training["text_bytes"])


def common_text_notes(texts: Sequence[CommonText]) -> list[str]:
    """Notes for the proof under a table on how much training text is common."""
    if not texts:
        return []
    note = (
        "Training text that two rows which are compared share at one seed: "
        f"{_share_range([text.share for text in texts])} of what the one that read less has read, "
        f"{_share_range([text.share_of_more for text in texts])} of what the other has."
    )
    if known := [text.by_step for text in texts if text.by_step]:
        same, near = map(_share_range, zip(*known, strict=True))
        note += f" Of it both first read {same} at the same step, and {near} within {NEAR_STEPS} steps."
    if straddling := max(text.straddling for text in texts):
        note += f" Contexts with text of two stretches of what is shuffled: up to {straddling:.1%}."
    return [note]


def _share_range(shares: Sequence[float]) -> str:
    low, high = f"{min(shares):.1%}", f"{max(shares):.1%}"
    return low if low == high else f"{low} to {high}"


def remedies(texts: Sequence[CommonText]) -> list[str]:
    """Overrides that let the rows of `texts`, which must not be empty, read the same text."""
    size = rounded_up_size(max(text.text_bytes for text in texts))
    return list(dict.fromkeys(text.remedy.format(text=size) for text in texts if text.remedy))


SECTION = "table/"
_LONGEST_ROW = 120
_UNSAFE = re.compile(r"[^\w.\-]")


def run_numbers(scores: Path, finetuned: Path | None, training: Mapping[str, Any]) -> dict[str, float]:
    """Numbers of this run alone, whatever the table: means over items, the last checkpoints and shots.

    By `table/<task>/<metric>/mean` and, of several numbers of shots, `table/<task>/<metric>/5_shot`;
    `table/bits_per_byte`, `table/<set>/bits_per_byte`, and each statistic and result of training. Means over tasks
    depend on the table, so they are numbers of the sweep alone.

    Raises:
        DataError: the scores are torn.
    """
    score = load_scores(scores, finetuned)
    numbers = {}
    for column in _columns_of_run(score, training):
        values = measure(column, training, score) if len(column.parts) <= 1 else None
        if values is not None:
            mean = float(values.mean(axis=1).mean())  # in the order in which a cell averages: items, then checkpoints
            numbers[SECTION + logged_column_name(column)] = perplexity(mean) if column.kind == "perplexity" else mean
    return numbers


def table_numbers(comparison: Comparison) -> dict[str, float]:
    """Numbers of every cell by `table/<row>/<column>`, in shares where the table shows percent.

    Below that are `half_width`, `difference`, `low`, `high`, `p_value` and `p_adjusted`, as far as the cell has them.
    """
    numbers_by_name: dict[str, float] = {}
    for row in comparison.rows:
        for column in comparison.columns:
            name, cell = f"{SECTION}{logged_row_name(row.labels)}/{logged_column_name(column)}", row.cells[column.key]
            low, high = cell.interval or (None, None)
            numbers = {
                name: cell.value,
                f"{name}/half_width": cell.half_width,
                f"{name}/difference": cell.difference,
                f"{name}/low": low,
                f"{name}/high": high,
                f"{name}/p_value": cell.p_value,
                f"{name}/p_adjusted": cell.p_adjusted,
            }
            numbers_by_name |= {key: float(value) for key, value in numbers.items() if value is not None}
    return numbers_by_name


def logged_row_name(labels: Sequence[str]) -> str:
    """The labels of a row in characters that trackers accept, with a digest of the labels where some are lost."""
    name = " ".join(labels) or "all runs"
    safe = " ".join(_UNSAFE.sub("_", label) for label in labels)[:_LONGEST_ROW] or name
    return safe if safe == name else f"{safe}-{hashlib.sha256(repr(tuple(labels)).encode()).hexdigest()[:8]}"


def logged_column_name(column: Measure) -> str:
    """The key of a column; that of a task has its metric too, which a table may choose."""
    if len(column.parts) != 1 or "/" not in column.key:
        return column.key
    (part,) = column.parts
    return f"{part.task}/{part.metric}/{column.key.rpartition('/')[2]}"


def _columns_of_run(scores: RunScores, training: Mapping[str, Any]) -> list[Measure]:
    named = {
        f"{task}:{name}": None
        for task, _, metric in sorted(scores.blocks)
        for name in (metric, *(derived for derived, about in METRICS.items() if about.source == metric))
    }
    plain = default_table()
    tables = [plain, replace(plain, columns=tuple(named))] if named else [plain]
    return [column for table in tables for column in columns_of([scores], [training], table)]
