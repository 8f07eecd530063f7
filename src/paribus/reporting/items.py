"""Items behind the numbers: their texts, the answers of rows, the items in which rows differ most, and a tidy table."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from paribus.config.groups.evaluation import TableConfig
from paribus.errors import DataError
from paribus.reporting.columns import columns_of
from paribus.reporting.compare import Comparison
from paribus.reporting.measures import BITS_PER_BYTE, METRICS, PERCENT, Measure
from paribus.reporting.runs import Block, FinishedRun, Heldout, Key, Remembered, RunScores, load_scores
from paribus.reporting.significance import Matrix, Vector


@dataclass(frozen=True)
class ItemText:
    """Question and answers of one item; a document that is scored whole has its text alone."""

    question: str = ""
    """Text before the answer, without examples; of a pair the source, of a document all of it."""
    choices: tuple[str, ...] = ()
    right: int | None = None
    """Index of the right choice."""
    ending: str = ""
    """Text after each choice, where choices fill a blank."""
    accepted: tuple[str, ...] = ()
    """The text that should follow, the reference of a translation, or all answers that count as right."""


NO_TEXT = ItemText()
Texts = Mapping[str, ItemText]
"""Texts by item."""

Written = Mapping[tuple[int, str], str]
"""Texts by step of the checkpoint, and item."""
_TRANSLATIONS, _PREDICTIONS = "translations.parquet", "predictions.parquet"


def written_by(run: FinishedRun, task: str) -> dict[tuple[int, str], str]:
    """Texts that the models of a run wrote in a task; empty where they are not on record.

    Raises DataError for a file that cannot be read.
    """
    texts: dict[tuple[int, str], str] = {}
    if run.scores is not None:
        texts |= _read_written(run.scores / _TRANSLATIONS, task, "document", "translation")
    if run.finetuned is not None:
        texts |= _read_written(run.finetuned / _PREDICTIONS, task, "item", "prediction")
    return texts


def _read_written(path: Path, task: str, item: str, text: str) -> dict[tuple[int, str], str]:
    if not path.is_file():
        return {}
    try:
        table = pq.read_table(path, columns=["checkpoint", item, text], filters=[("task", "=", task)])
    except (pa.ArrowException, KeyError) as error:
        raise DataError(f"{path} is no readable table of what models wrote ({error}); score the run again") from error
    steps, items, texts = (table[name].to_pylist() for name in ("checkpoint", item, text))
    return dict(zip(zip(steps, items, strict=True), texts, strict=True))


HELDOUT = "heldout"
"""Name of the held-out documents of the corpus here."""
BITS_OF_ITEMS = ("choice_bits", "target_bits")
JUDGED = ("accuracy", "exact match")
"""Families of metrics whose values of one answer are right or wrong; others, such as F1, may happen to be 0 or 1."""
ROUNDING = 1e-9
"""Largest difference between means of an item that may be due to the order in which they were summed."""
Kind = Literal["right", "score", "documents"]


@dataclass(frozen=True)
class Scored:
    """A task, or a set of documents, as the table measures it."""

    name: str
    kind: Kind
    """`right`: each answer is right or wrong; `score`: it has any other number; `documents`: bits of whole texts."""
    column: Measure
    bits: str | None = None
    """The metric of items that has the bits of the right answer; None where there is none, or it is the measure."""

    @property
    def shots(self) -> tuple[int, ...]:
        """Numbers of examples in the prompt; none of documents."""
        return self.column.parts[0].shots if self.column.parts else ()

    @property
    def metric(self) -> str:
        """Metric of its values: for a perplexity the bits that it is measured and tested in."""
        return self.column.parts[0].scored if self.column.parts else "bits_per_byte"

    @property
    def lower(self) -> bool:
        """True if less is better."""
        return self.column.better == "lower"

    def documents(self, scores: RunScores) -> Heldout | None:
        """A run's documents; None where it has none of this set."""
        return (scores.texts.get(self.column.field) if self.column.field else scores.heldout) or None


def left_out(scored: Scored, comparison: Comparison) -> frozenset[str]:
    """The items that the table leaves out in all its rows."""
    about = comparison.left_out.get(scored.name)
    return frozenset[str]() if about is None or about.kept else frozenset[str]().union(*about.by_shots.values())


def all_scored(comparison: Comparison) -> dict[str, Scored]:
    """Tasks, then sets of documents, by name, even without columns in the table."""
    scores = list(comparison.scores.values())
    tasks = sorted({task for score in scores for task, _, _ in score.blocks})
    has_heldout = any(len(score.heldout) for score in scores)
    sets = dict.fromkeys(name for score in scores for name in score.texts)
    heldout_keys, heldout_names = ([BITS_PER_BYTE.key], [HELDOUT]) if has_heldout else ([], [])
    keys = (*(_named_in_table(task, comparison.table) for task in tasks), *heldout_keys, *sets)
    if not keys:
        return {}
    # A group may have the name of a task.
    table = replace(comparison.table, columns=keys, groups=None, shots="mean")
    columns = dict(zip((*tasks, *heldout_names, *sets), columns_of(scores, [], table), strict=True))
    return {
        name: _scored_task(name, column, scores) if column.parts else Scored(name, "documents", column)
        for name, column in columns.items()
    }


def _named_in_table(task: str, table: TableConfig) -> str:
    """`task`, or `task:metric` where the table has columns of it by that alone."""
    columns = (column.partition("/")[0] for column in table.columns)
    names = [name for name in columns if name.partition(":")[0] == task]
    return task if task in names else next(iter(names), task)


def _scored_task(name: str, column: Measure, scores: Sequence[RunScores]) -> Scored:
    (part,) = column.parts
    keys = [(name, shots, part.scored) for shots in part.shots]
    values = [score.blocks[key].values for score in scores for key in keys if key in score.blocks]
    known = METRICS.get(part.scored)
    judged = known is None or known.family in JUDGED
    kind: Kind = "right" if judged and all(np.isin(each, (0.0, 1.0)).all() for each in values) else "score"
    metrics = {metric for score in scores for task, _, metric in score.blocks if task == name}
    bits = next((metric for metric in BITS_OF_ITEMS if metric in metrics and metric != part.scored), None)
    return Scored(name, kind, column, bits)


def with_left_out(comparison: Comparison, runs: Sequence[FinishedRun]) -> Mapping[str, RunScores]:
    """Scores by run id with the items that the table leaves out, which are read again."""
    if all(counts.kept for counts in comparison.left_out.values()):
        return comparison.scores
    remembered = Remembered()
    return {
        run.run_id: load_scores(run.scores, run.finetuned, remembered)
        for run in runs
        if run.scores is not None and run.run_id in comparison.scores
    }


_LARGEST_DIFFERENCE = 1e12
"""Largest difference that is distinguished; infinite ones count as this."""


@dataclass(frozen=True)
class RowAnswers:
    """Arrays (items,) of one row: the answers of its runs at the checkpoints and shots that are looked at."""

    answers: NDArray[np.int64]
    value: Vector
    """Mean of the measure, of documents bits a byte; NaN where there is no answer."""
    bits: Vector
    """Mean bits of the right answer; NaN where that is not on record."""

    @property
    def right(self) -> NDArray[np.int64]:
        """Number of right answers, where answers are right or wrong."""
        return np.rint(np.nan_to_num(self.value) * self.answers).astype(np.int64)


Answers = tuple[tuple[str, ...], Mapping[int, RowAnswers]]
"""Items, and the answers to them of all rows that have runs, by place in the table."""


def answers_of(scored: Scored, comparison: Comparison, scores: Mapping[str, RunScores]) -> Answers:
    """Answers of each row; `scores` by run id, those of items that the table leaves out too."""
    if scored.kind == "documents":
        return _document_answers(scored, comparison, scores)
    lists = {block.items for score in scores.values() for key, block in score.blocks.items() if key[0] == scored.name}
    items = tuple(sorted({item for names in lists for item in names}, key=_item_order))
    index = {item: place for place, item in enumerate(items)}
    places = {names: np.array([index[item] for item in names], dtype=np.int64) for names in lists}
    (part,) = scored.column.parts
    rows = {}
    for place, row in enumerate(comparison.rows):
        if row.runs:
            blocks = [score.blocks for score in row.scored(scores)]
            count, value = _summed(blocks, scored, part.scored, places, len(items))
            bits_count, bits = _summed(blocks, scored, scored.bits, places, len(items))
            rows[place] = RowAnswers(count, _divided(value, count), _divided(bits, bits_count))
    return items, rows


def _item_order(item: str) -> tuple[str, int, str]:
    """`test/2` before `test/10`."""
    head, _, number = item.rpartition("/")
    return (head, int(number), "") if number.isascii() and number.isdecimal() and len(number) < 19 else (item, 0, item)


def _summed(
    runs: Sequence[Mapping[Key, Block]],
    scored: Scored,
    metric: str | None,
    places: Mapping[tuple[str, ...], NDArray[np.int64]],
    items: int,
) -> tuple[NDArray[np.int64], Vector]:
    """(items,) number of values of the metric, and their sum."""
    count, total = np.zeros(items, np.int64), np.zeros(items)
    for blocks in runs:
        for (task, shots, name), block in blocks.items():
            if task == scored.name and name == metric and shots in scored.shots:
                count[places[block.items]] += len(block.values)
                total[places[block.items]] += block.values.sum(axis=0)
    return count, total


def _divided(total: Vector, count: NDArray[np.int64]) -> Vector:
    mean: Vector = np.divide(total, count, out=np.full(len(total), np.nan), where=count > 0)
    return mean


def _document_answers(scored: Scored, comparison: Comparison, scores: Mapping[str, RunScores]) -> Answers:
    known = [documents for score in scores.values() if (documents := scored.documents(score)) is not None]
    names, sizes = known[0].documents, known[0].bytes
    rows: dict[int, RowAnswers] = {}
    for place, row in enumerate(comparison.rows):
        bits = [documents.bits for score in row.scored(scores) if (documents := scored.documents(score)) is not None]
        if bits:
            count = sum(len(run_bits) for run_bits in bits)
            mean = np.sum([run_bits.sum(axis=0) for run_bits in bits], axis=0) / count
            counts = np.full(len(names), count, np.int64)
            rows[place] = RowAnswers(counts, mean / np.maximum(sizes, 1), np.full(len(names), np.nan))
    return names, rows


def by_difference(scored: Scored, comparison: Comparison, rows: Mapping[int, RowAnswers]) -> list[int]:
    """Places of all items, those in which rows differ most from what they are compared with first.

    Items are sorted by the measure; those that only rounding distinguishes, by the bits of the right answer. Where
    nothing is compared, those that were answered worst come first.
    """
    bases = [(place, row.baseline) for place, row in enumerate(comparison.rows)]
    pairs = [(rows[row], rows[base]) for row, base in bases if base is not None and {row, base} <= rows.keys()]

    def largest(vector: Callable[[RowAnswers], Vector]) -> Any:
        """(items,) the largest difference of two rows, 0 where one has no answer; without pairs the sum of all rows."""
        if pairs:
            return np.max([np.abs(np.nan_to_num(vector(row) - vector(base))) for row, base in pairs], axis=0)
        return np.sum([np.nan_to_num(vector(row)) for row in rows.values()], axis=0)

    values, bits = largest(lambda row: row.value), largest(lambda row: row.bits)
    values = values if pairs or scored.lower else -values
    rounded = np.round(np.clip(values, -_LARGEST_DIFFERENCE, _LARGEST_DIFFERENCE) / ROUNDING)
    order: list[int] = np.lexsort((-bits, -rounded)).tolist()
    return order


_LONGEST_TEXT = 300
"""Longest text that is shown."""
_MOST_ROWS = 12
"""Most rows of the table that are shown."""


@dataclass(frozen=True)
class DifferentItems:
    """Items of one task or set of documents in which rows differ most."""

    name: str
    count: int
    """Number of items."""
    lines: Sequence[Sequence[str]]
    """A header, then a line an item: its name, its text, and a cell for each of the table's first rows."""


def most_different(
    comparison: Comparison, scored: Scored, scores: Mapping[str, RunScores], texts: Texts, limit: int
) -> DifferentItems:
    """The `limit` items in which rows differ most; `scores` by run id."""
    items, answers = answers_of(scored, comparison, scores)
    rows = list(answers)[:_MOST_ROWS]
    header = ["item", "text", *(comparison.row_name(comparison.rows[place]) for place in rows)]
    written = {}
    for place in rows:  # texts of its first run, at the last checkpoint that was scored
        by_step = written_by(comparison.rows[place].runs[0], scored.name)
        last = max((step for step, _ in by_step), default=None)
        written[place] = {item: text for (step, item), text in by_step.items() if step == last}
    lines = [header]
    for place in by_difference(scored, comparison, answers)[:limit]:
        item = items[place]
        cells = [_answer_text(scored, answers[row], place, written[row].get(item)) for row in rows]
        lines.append([item, _item_line(scored, texts.get(item, NO_TEXT)), *cells])
    return DifferentItems(scored.name, len(items), lines)


def _answer_text(scored: Scored, row: RowAnswers, place: int, written: str | None) -> str:
    if not row.answers[place]:
        return "no answer"
    if scored.kind == "right":
        bits = "" if math.isnan(row.bits[place]) else f", {row.bits[place]:.2f} bits"
        text = f"{row.right[place]} of {row.answers[place]} right{bits}"
    elif scored.kind == "documents":
        text = f"{row.value[place]:.4f} bits a byte"
    else:
        text = f"{scored.metric} {row.value[place] * scored.column.factor:.4g}"
    return text if written is None else f"{text}: {_one_line(written)[:_LONGEST_TEXT]}"


def _item_line(scored: Scored, text: ItemText) -> str:
    """The end of a question, or the beginning of a text that is scored whole, and the right answer."""
    from_start = scored.kind == "documents" or scored.metric in PERCENT
    question = _one_line(text.question)
    parts = [question[:_LONGEST_TEXT] if from_start else question[-_LONGEST_TEXT:]] if question else []
    parts += [f"{'✓' if place == text.right else '·'} {_one_line(choice)}" for place, choice in enumerate(text.choices)]
    parts += [_one_line(text.ending)] if text.ending else []
    parts += [f"✓ {_one_line(' | '.join(text.accepted))[:_LONGEST_TEXT]}"] if text.accepted else []
    return " / ".join(parts)


def _one_line(text: str) -> str:
    """Text with single spaces for whitespace, and escapes for those that do not print, as control characters."""
    joined = " ".join(text.split())
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in joined)


MOST_LINES = 5_000_000
"""Most lines of a table of items; beyond, it has those of the last checkpoint alone."""
BITS = "bits"
"""The metric of documents."""
_TEXT, _COUNT = pa.string(), pa.int64()
_ITEM_FIELDS: tuple[tuple[str, pa.DataType], ...] = (
    ("run_id", _TEXT), ("seed", _COUNT), ("checkpoint", _COUNT), ("task", _TEXT), ("shots", _COUNT), ("item", _TEXT),
    ("left_out", pa.bool_()), ("metric", _TEXT), ("value", pa.float64()), ("bytes", _COUNT), ("written", _TEXT),
)  # fmt: skip
_TEXT_SCHEMA = pa.schema(
    [
        ("task", _TEXT), ("item", _TEXT), ("question", _TEXT), ("choices", pa.list_(_TEXT)), ("right", _COUNT),
        ("ending", _TEXT), ("accepted", pa.list_(_TEXT)),
    ]
)  # fmt: skip


def items_table(
    comparison: Comparison, scored: Sequence[Scored], scores: Mapping[str, RunScores], most: int = MOST_LINES
) -> pa.Table:
    """Every metric of every item of these tasks and sets of documents; missing values are null.

    Columns: the labels of the factors; run_id, seed, checkpoint (step of the training), task, shots, item, left_out
    (of the table), metric, value (of documents `bits`), bytes (of documents), written (by the model). `scores` by run
    id. Beyond `most` lines it has only those of the last checkpoint.
    """
    reserved = dict(_ITEM_FIELDS)  # the factor `seed` has its column among these
    schema = pa.schema([*((factor, _TEXT) for factor in comparison.factors if factor not in reserved), *_ITEM_FIELDS])
    runs = [(row, run, scores[run.run_id]) for row in comparison.rows for run in row.runs if run.run_id in scores]
    count = sum(values.size for task in scored for *_, score in runs for *_, values, _ in _matrices(task, score))
    parts: list[pa.Table] = []
    for task in scored:
        out = left_out(task, comparison)
        for row, run, score in runs:
            labels = dict(zip(comparison.factors, row.labels, strict=True))
            constant = {**labels, "run_id": run.run_id, "seed": run.seed, "task": task.name}
            for columns in _item_columns(task, score, written_by(run, task.name), out, last=count > most):
                lines = len(columns["value"])
                arrays = {
                    name: value if isinstance(value, pa.Array) else pa.repeat(value, lines)
                    for name, value in (constant | columns).items()
                }
                parts.append(pa.table({field.name: arrays[field.name].cast(field.type) for field in schema}, schema))
    return pa.concat_tables(parts) if parts else schema.empty_table()


def texts_table(texts: Mapping[str, Texts]) -> pa.Table:
    """The texts of all items by task: task, item, question, choices, right (place in choices), ending, accepted."""
    lines = []
    for task, items in texts.items():
        for item, text in items.items():
            known = {name: value for name, value in vars(text).items() if value not in ("", ())}
            lines.append({"task": task, "item": item, **known})
    return pa.Table.from_pylist(lines, schema=_TEXT_SCHEMA)


def _item_columns(
    scored: Scored, scores: RunScores, written: Written, out: frozenset[str], *, last: bool
) -> Iterator[dict[str, Any]]:
    """The columns of each metric and number of shots of one run, (checkpoints * items,), or one value for all lines."""
    for shots, metric, items, values, sizes in _matrices(scored, scores):
        shown = values[-1:] if last else values
        checkpoints, count = shown.shape
        steps = scores.steps[-checkpoints:]  # fine-tuning goes on from the last one
        places = np.tile(np.arange(count), checkpoints)
        yield {
            "checkpoint": pa.array(np.repeat(steps, count)),
            "shots": pa.nulls(shown.size, _COUNT) if shots is None else shots,
            "item": pa.array(items).take(places),
            "left_out": pa.array([item in out for item in items]).take(places),
            "metric": metric,
            "value": pa.array(shown.ravel()),
            "bytes": pa.nulls(shown.size, _COUNT) if sizes is None else pa.array(sizes.astype(np.int64)).take(places),
            "written": pa.array([written.get((step, item)) for step in steps for item in items], _TEXT),
        }


def _matrices(
    scored: Scored, scores: RunScores
) -> Iterator[tuple[int | None, str, tuple[str, ...], Matrix, Matrix | None]]:
    """Shots, metric, items, values (checkpoints, items) and bytes of documents."""
    if scored.kind == "documents":
        if (documents := scored.documents(scores)) is not None:
            yield None, BITS, documents.documents, documents.bits, documents.bytes
        return
    for (task, shots, metric), block in scores.blocks.items():
        if task == scored.name and shots in scored.shots:
            yield shots, metric, block.items, block.values, None
