"""Finished runs that reports are made from: their records, and every score of every item at every checkpoint.

No aggregate is stored: all that a report shows is computed from these scores, so that every number has an error bar and
a test.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from paribus.config.identity import canonical
from paribus.errors import DataError
from paribus.reporting.equality import ENVIRONMENT, flatten
from paribus.reporting.measures import ITEMS_TO_JUDGE
from paribus.reporting.significance import Matrix, Vector


@dataclass(frozen=True)
class FinishedRun:
    """Record of one finished run; a report is built from these alone."""

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
    """Number of tokens in the vocabulary, which may be smaller than configured."""
    tokens: Path | None = None
    """Directory of the `tokens` artefact."""
    readings: Path | None = None
    """File with the number of times that training read each byte of a sample of the corpus."""
    find_steps: Callable[[], Any] | None = None
    """Function to the step at which training first read each of these bytes, int64, -1 where it did not."""
    finetuned: Path | None = None
    """Directory of the `finetuning` artefact."""
    gone: tuple[str, ...] = ()
    """Artefacts of the record that are missing or damaged, in words."""
    corpus: Mapping[str, Any] = field(default_factory=dict)
    """Result of the corpus; `overlap` of its held-out documents with training text, and what `moved` there."""
    commit: str | None = None
    """Commit of the code that trained it."""
    ended: float | None = None
    """Time of its end, in seconds since 1970."""
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
        """Identity of the checkpoint that training goes on from; None where it begins at random."""
        start = self.config.get("start") or {}
        files = (self.config.get("fingerprints") or {}).get("start")
        return canonical([start, files]) if start.get("kind") == "checkpoint" else None

    @cached_property
    def fields(self) -> Mapping[str, str]:
        """Configuration and environment, path -> canonical JSON."""
        return flatten(self.config) | {ENVIRONMENT + name: canonical(value) for name, value in self.environment.items()}


@dataclass(frozen=True)
class MissingRun:
    """A combination of factors that was requested and has no finished run."""

    factors: Mapping[str, str]
    reason: str
    diverged: bool = False
    """True if it failed by a number, such as a loss that is not finite."""
    after: int | None = None
    """Number of finished runs that precede it in the sweep, whose order rows have; None for all."""


ITEMS = "items.parquet"
ITEM_COLUMNS = ("checkpoint", "task", "shots", "item", "doc_hash", "metric", "value")
HELDOUT_COLUMNS = ("checkpoint", "document", "bits", "bytes")
TEXTS_COLUMNS = (*HELDOUT_COLUMNS, "text_set", "tokens")


@dataclass(frozen=True)
class Block:
    """Scores of one task, number of shots and metric; items are sorted by name."""

    items: tuple[str, ...]
    hashes: tuple[str, ...]
    """Digest of each item's content."""
    values: Matrix
    """(checkpoints, items), checkpoints in order of their steps."""


@dataclass(frozen=True)
class Heldout:
    """Bits of held-out documents, which are sorted by name."""

    documents: tuple[str, ...] = ()
    bits: Matrix = field(default_factory=lambda: np.empty((0, 0)))
    """(checkpoints, documents)."""
    bytes: Vector = field(default_factory=lambda: np.empty(0))
    """(documents,)."""
    tokens: Vector = field(default_factory=lambda: np.empty(0))
    """(documents,) of sets of texts; none of held-out text."""

    def __len__(self) -> int:
        """Number of documents."""
        return len(self.documents)


Key = tuple[str, int, str]
"""Task, number of shots, metric."""


@dataclass(frozen=True)
class RunScores:
    """Scores of one run at its last checkpoints."""

    blocks: Mapping[Key, Block]
    heldout: Heldout
    statistics: Mapping[str, Any] = field(default_factory=dict)
    """Statistics of held-out text under the run's tokenizer: bytes_per_token, entropy, redundancy, token_lengths."""
    chance: Mapping[str, float] = field(default_factory=dict)
    """Accuracy of guessing, by task."""
    truncated: Mapping[tuple[str, int], tuple[str, ...]] = field(default_factory=dict)
    """Items whose prompt was cut to fit the context, by task and shots."""
    crossed_choices: int = 0
    """Choices with a token that crosses into them from the context, of all tasks and shots."""
    omitted: float = 0.0
    """Largest share of a probability that a sum over such tokens left out."""
    cut_sources: int = 0
    """Held-out pairs whose source lost its end, since it is longer than the context."""
    changed_documents: int | None = None
    """Scored texts that the tokenizer does not decode to what they were; None where that is not known."""
    documents_cut: Mapping[str, int] = field(default_factory=dict)
    """Documents that lost their end, by fine-tuned task."""
    document_bytes: Mapping[str, float] = field(default_factory=dict)
    """Mean bytes of text that the model read of a document, by fine-tuned task."""
    uniformity: Mapping[str, float | None] = field(default_factory=dict)
    """Uniformity of the last checkpoint's input embeddings of used, frequent, medium, rare and unused tokens."""
    checkpoints: int = 0
    steps: tuple[int, ...] = ()
    """Training steps of the checkpoints."""
    texts: Mapping[str, Heldout] = field(default_factory=dict)
    """Bits of the documents of each set of texts, by its name."""

    content: Mapping[str, str] = field(default_factory=dict)
    """Scored content by path: checkpoints, items of each task and number of shots, held-out documents."""


Integers = NDArray[np.int64]


@dataclass(frozen=True)
class ItemLines:
    """Arrangement of the lines of `items.parquet`."""

    order: Integers
    """Lines by task, shots, metric, item and checkpoint."""
    checkpoints: int
    blocks: Mapping[Key, tuple[tuple[str, ...], tuple[str, ...], slice]]
    """Items, hashes and lines among the ordered ones."""
    content: tuple[tuple[str, str], ...]
    """Scored content: (path, number of lines and digest) of each task and number of shots."""


@dataclass(frozen=True)
class DocumentLines:
    """Arrangement of the lines of `heldout.parquet`, or of one set of `texts.parquet`."""

    order: Integers
    """Lines by document and checkpoint."""
    checkpoints: int
    documents: tuple[str, ...]
    bytes: NDArray[np.float64]
    content: tuple[tuple[str, str], ...]


_Lines = TypeVar("_Lines", ItemLines, DocumentLines)
_MOST_REMEMBERED = 8
_CHECKPOINT = "checkpoint"


class Remembered:
    """Cache of the last arrangements, each with the columns that it was made from.

    Runs of one comparison differ in the values and in the steps of their checkpoints, seldom in anything else.
    """

    def __init__(self) -> None:
        self._last: tuple[tuple[pa.Table, Any], ...] = ()

    def arranged(self, table: pa.Table, value: str, make: Callable[[], _Lines]) -> _Lines:
        """Result of `make` for this table, cached where all columns but `value` equal those of an earlier one.

        Of the checkpoints only their order counts.
        """
        steps = pa.array(_ranked(table[_CHECKPOINT])[1])
        columns = table.drop_columns([value]).set_column(0, _CHECKPOINT, steps)
        for known, arrangement in self._last:
            if known.equals(columns):
                result: _Lines = arrangement
                return result
        result = make()
        self._last = (*self._last, (columns, result))[-_MOST_REMEMBERED:]
        return result


def load_scores(directory: Path, finetuned: Path | None = None, remembered: Remembered | None = None) -> RunScores:
    """Read an `evaluation` artefact, and the items of a `finetuning` one with it.

    With `remembered`, lines that an earlier artefact had too are not arranged again.

    Raises:
        DataError: a file is missing or torn, lacks columns or repeats an item.
    """
    cache = remembered or Remembered()
    items = _items_table(directory)
    heldout = _read_table(directory / "heldout.parquet", HELDOUT_COLUMNS, ("document",))
    statistics = _read_json(directory / "statistics.json")
    tasks: Mapping[str, Mapping[str, Any]] = statistics.get("tasks", {})
    tuned_tasks: Mapping[str, Any] = _read_json(finetuned / "statistics.json")["tasks"] if finetuned else {}
    steps = sorted({step for table in (items, heldout) for step in table["checkpoint"].unique().to_pylist()})
    checkpoints = len(steps)
    blocks, content = _blocks_and_content(items, directory / ITEMS, cache)
    content = {"scores.checkpoints": str(checkpoints)} | content
    if finetuned:
        tuned_blocks, tuned_content = _blocks_and_content(_items_table(finetuned), finetuned / ITEMS, cache)
        blocks, content = blocks | tuned_blocks, content | tuned_content
    documents = Heldout()
    if heldout.num_rows:
        lines = cache.arranged(heldout, "bits", lambda: document_lines(heldout, directory / "heldout.parquet"))
        documents, content = _heldout_scores(heldout, lines), content | dict(lines.content)
    texts, texts_content = _text_sets(directory / "texts.parquet", cache) if statistics.get("texts") else ({}, {})
    return RunScores(
        blocks=blocks,
        heldout=documents,
        statistics=statistics.get("heldout", {}),
        chance={task: float(about["chance"]) for task, about in tasks.items() if about.get("chance") is not None},
        truncated={
            (task, int(shots)): tuple(items)
            for task, about in tasks.items()
            for shots, items in about.get("truncated_items", {}).items()
        },
        crossed_choices=sum(sum(about.get("crossed_choices", {}).values()) for about in tasks.values()),
        omitted=float(statistics.get("omitted_at_boundaries") or 0.0),
        uniformity=((statistics.get("embeddings") or {}).get("uniformity") or {}).get("input", {}),
        cut_sources=int(statistics.get("cut_sources") or 0),
        changed_documents=statistics.get("changed_documents"),
        documents_cut={task: int(about["documents_cut"]) for task, about in tuned_tasks.items()},
        document_bytes={task: float(about["document_bytes"]) for task, about in tuned_tasks.items()},
        checkpoints=checkpoints,
        steps=tuple(steps),
        content=content | texts_content,
        texts=texts,
    )


def load_all(runs: Sequence[FinishedRun]) -> tuple[dict[str, RunScores], dict[str, str]]:
    """Scores by run id, and the errors of runs whose scores cannot be read."""
    cache, scores, errors = Remembered(), dict[str, RunScores](), dict[str, str]()
    for run in runs:
        try:
            if run.scores:
                scores[run.run_id] = load_scores(run.scores, run.finetuned, cache)
        except DataError as error:
            errors[run.run_id] = str(error)
    return scores, errors


def _items_table(directory: Path) -> pa.Table:
    return _read_table(directory / ITEMS, ITEM_COLUMNS, ("task", "item", "doc_hash", "metric"))


def _blocks_and_content(table: pa.Table, path: Path, cache: Remembered) -> tuple[dict[Key, Block], dict[str, str]]:
    if not table.num_rows:
        return {}, {}
    lines = cache.arranged(table, "value", lambda: item_lines(table, path))
    values = table["value"].to_numpy()[lines.order].astype(np.float64)
    blocks = {
        key: Block(items, hashes, np.ascontiguousarray(values[place].reshape(-1, lines.checkpoints).T))
        for key, (items, hashes, place) in lines.blocks.items()
    }
    return blocks, dict(lines.content)


def _heldout_scores(table: pa.Table, lines: DocumentLines) -> Heldout:
    bits = table["bits"].to_numpy()[lines.order].astype(np.float64).reshape(-1, lines.checkpoints)
    return Heldout(lines.documents, np.ascontiguousarray(bits.T), lines.bytes)


def _text_sets(path: Path, cache: Remembered) -> tuple[dict[str, Heldout], dict[str, str]]:
    all_sets = _read_table(path, TEXTS_COLUMNS, ("text_set", "document")).select(TEXTS_COLUMNS)
    sets: dict[str, Heldout] = {}
    content: dict[str, str] = {}
    for name in all_sets["text_set"].unique().to_pylist():
        table = all_sets.filter(pc.field("text_set") == name)
        scored = table.drop_columns(["tokens"])  # tokenizers split the same documents into different tokens
        lines = cache.arranged(scored, "bits", partial(document_lines, scored, path, f"scores.texts.{name}"))
        tokens = table["tokens"].to_numpy()[lines.order].astype(np.float64).reshape(-1, lines.checkpoints)[:, 0]
        sets[name] = replace(_heldout_scores(scored, lines), tokens=tokens)
        content |= dict(lines.content)
    return sets, content


def _read_table(path: Path, columns: Sequence[str], texts: Sequence[str]) -> pa.Table:
    _check_present(path)
    try:
        present = pq.read_schema(path).names
        if absent := [column for column in columns if column not in present]:
            raise DataError(f"{path} lacks the columns {', '.join(absent)}; a scores table has {', '.join(columns)}")
        file = pq.ParquetFile(path, memory_map=True, read_dictionary=list(texts))
        table = file.read(columns=list(columns), use_threads=False)
    except pa.ArrowException as error:
        raise DataError(f"{path} is no readable Parquet file ({error}); score the run again") from error
    return table.unify_dictionaries() if any(table[name].num_chunks > 1 for name in texts) else table


def _read_json(path: Path) -> Any:
    _check_present(path)
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise DataError(f"{path} is no JSON ({error}); score the run again") from error


def _check_present(path: Path) -> None:
    if not path.is_file():
        message = "the scores of this run are incomplete; `paribus clean --verify` checks the store"
        raise DataError(f"{path} is missing: {message}")


@dataclass(frozen=True)
class LeftOut:
    """Items of a task with a prompt that some run cut."""

    cut: int
    items: int
    by_shots: Mapping[int, frozenset[str]] = field(default_factory=dict)
    """Names of the cut items at each number of shots."""

    def whole(self, shots: Iterable[int]) -> int:
        """Number of items whose prompts of these numbers of shots fit every run."""
        return self.items - len(frozenset[str]().union(*(self.by_shots.get(number, ()) for number in shots)))

    @property
    def kept(self) -> bool:
        """True if all items stay, since too few would remain."""
        return self.items - self.cut < ITEMS_TO_JUDGE


def prompts_cut_alike(scores: Mapping[str, RunScores]) -> bool:
    """True if all runs cut the prompts of the same items, of the tasks that they were scored on."""
    cuts: dict[tuple[str, int], set[frozenset[str]]] = {}
    for score in scores.values():
        for task_and_shots in {key[:2] for key in score.blocks}:
            cuts.setdefault(task_and_shots, set()).add(frozenset(score.truncated.get(task_and_shots, ())))
    return all(len(items) == 1 for items in cuts.values())


def leave_out_cut_prompts(scores: Mapping[str, RunScores]) -> tuple[dict[str, RunScores], dict[str, LeftOut]]:
    """Scores by run id without items that any run cut, where enough remain, and the cut items by task.

    A prompt longer than the context loses its beginning, so arms with other tokens would answer after other examples,
    or after none: it is not one question. Such items are left out for all, at all numbers of shots, so that means over
    shots stay means of one item.
    """
    cut: dict[str, dict[int, set[str]]] = {}
    items: dict[str, set[str]] = {}
    for score in scores.values():
        for (task, shots), names in score.truncated.items():
            cut.setdefault(task, {}).setdefault(shots, set()).update(names)
        for (task, _, _), block in score.blocks.items():
            items.setdefault(task, set()).update(block.items)
    cut_items = {task: set[str]().union(*by_shots.values()) for task, by_shots in cut.items()}
    left_out = {
        task: LeftOut(
            len(cut_items[task]), len(items[task]), {shots: frozenset(names) for shots, names in cut[task].items()}
        )
        for task in sorted(cut)
        if cut_items[task] and task in items
    }
    removed = {task: cut_items[task] for task, counts in left_out.items() if not counts.kept}
    remaining = {}
    for run, score in scores.items():
        blocks = {key: _block_without(block, removed.get(key[0], set())) for key, block in score.blocks.items()}
        remaining[run] = replace(score, blocks=blocks)
    return remaining, left_out


def _block_without(block: Block, removed: set[str]) -> Block:
    if not removed:
        return block
    places = [place for place, item in enumerate(block.items) if item not in removed]
    items, hashes = (tuple(texts[place] for place in places) for texts in (block.items, block.hashes))
    return Block(items, hashes, np.ascontiguousarray(block.values[:, places]))


def item_lines(table: pa.Table, path: Path) -> ItemLines:
    """The arrangement of a table of items, which has lines.

    Raises:
        DataError: a line without a name, repeated lines, or lines that differ between checkpoints.
    """
    names, codes = zip(*(_coded(table[name], path) for name in ("task", "metric", "item", "doc_hash")), strict=True)
    shots, shot_codes = np.unique(table["shots"].to_numpy(), return_inverse=True)
    columns = (codes[0], shot_codes, codes[1], codes[2])
    order, checkpoints = _line_order(table, columns, ("task", "shots", "metric", "item"), path)
    task, shot, metric, item, document = (column[order] for column in (*columns, codes[3]))
    block = (task * len(shots) + shot) * len(names[1]) + metric
    starts = np.flatnonzero(np.diff(block, prepend=-1))
    by_checkpoint = document.reshape(-1, checkpoints)
    if (by_checkpoint != by_checkpoint[:, :1]).any():
        raise DataError(f"{path} has items whose content differs between checkpoints; score the run again")
    items = [names[2][code] for code in item[::checkpoints].tolist()]
    hashes = [names[3][code] for code in by_checkpoint[:, 0].tolist()]
    blocks: dict[Key, tuple[tuple[str, ...], tuple[str, ...], slice]] = {}
    for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(block)], strict=True):
        key = (names[0][task[start]], int(shots[shot[start]]), names[1][metric[start]])
        lines = slice(start // checkpoints, end // checkpoints)
        blocks[key] = tuple(items[lines]), tuple(hashes[lines]), slice(start, end)
    content = []
    for name, shot_count in dict.fromkeys(key[:2] for key in blocks):
        parts = [(key[2], *block[:2]) for key, block in blocks.items() if key[:2] == (name, shot_count)]
        count = sum(len(ids) for _, ids, _ in parts)
        digest = _digest([text for label, ids, digests in parts for text in (label, *ids, *digests)])
        content.append((f"scores.{name}.{shot_count}_shot", f"{count} lines ({digest})"))
    return ItemLines(order, checkpoints, blocks, tuple(content))


def document_lines(table: pa.Table, path: Path, name: str = "scores.heldout") -> DocumentLines:
    """The arrangement of a table of documents, which has lines; `name` is its path in the scored content.

    Raises:
        DataError: as `item_lines`.
    """
    names, codes = _coded(table["document"], path)
    order, checkpoints = _line_order(table, (codes,), ("document",), path)
    documents = tuple(names[code] for code in codes[order][::checkpoints].tolist())
    sizes = table["bytes"].to_numpy()[order].astype(np.float64)[::checkpoints]
    digest = _digest([*documents, *map(str, sizes.tolist())])
    content = ((name, f"{len(documents)} documents ({digest})"),)
    return DocumentLines(order, checkpoints, documents, sizes, content)


def _line_order(table: pa.Table, columns: Sequence[Integers], names: Sequence[str], path: Path) -> tuple[Integers, int]:
    """Order of the lines by these columns, then by checkpoint, and the number of checkpoints.

    Raises DataError for repeated lines, and for lines that some checkpoints lack.
    """
    steps, codes = _ranked(table[_CHECKPOINT])
    key = np.zeros(table.num_rows, dtype=np.int64)
    for column in columns:
        key = key * (int(column.max()) + 1) + column
    order = np.argsort(key * len(steps) + codes, kind="stable")
    lines, step = key[order], codes[order]
    repeated = np.flatnonzero((np.diff(lines) == 0) & (np.diff(step) == 0))
    if len(repeated):
        line = table.slice(int(order[repeated[0]]), 1).to_pylist()[0]
        first = ", ".join(f"{name} {line[name]}" for name in (_CHECKPOINT, *names))
        raise DataError(f"{path} has {len(repeated)} repeated lines, the first at {first}")
    _, counts = np.unique(lines, return_counts=True)
    if counts.min() != counts.max():
        raise DataError(f"{path} has checkpoints that were not scored on the same lines; score the run again")
    return order, int(counts[0])


def _coded(column: pa.ChunkedArray, path: Path) -> tuple[list[str], Integers]:
    """The distinct texts of a column, sorted, and for each line the place of its text among them."""
    if column.null_count:
        raise DataError(f"{path} has {column.null_count} lines without a value in a column that names them")
    return _ranked(column)


def _ranked(column: pa.ChunkedArray) -> tuple[list[Any], Integers]:
    """The distinct values of a column in order, and for each line the place of its value among them."""
    array = column.combine_chunks()
    array = array if isinstance(array, pa.DictionaryArray) else array.dictionary_encode()
    values = array.dictionary.to_pylist()
    order = sorted(range(len(values)), key=values.__getitem__)
    ranks = np.empty(len(values), dtype=np.int64)
    ranks[order] = np.arange(len(values))
    return [values[index] for index in order], ranks[array.indices.to_numpy()]


def _digest(texts: Sequence[str]) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:12]
