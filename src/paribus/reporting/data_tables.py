"""Tables of tokenizers, for which no model is trained, as numbers, as text and for a terminal."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from paribus.config.groups.evaluation import TableConfig

LENGTHS = ("1-3", "4-6", "7-9", "10-12", "13-15", "16+")
"""Characters of a token, as the papers' tables have them, and the longer ones together."""

Number = float | int | None


@dataclass(frozen=True)
class Replaced:
    """Tokens in which the vocabulary of a row differs from that of its baseline (Scaffold-BPE, section 1, Figure 5).

    With BPE as the other row and Scaffold-BPE as this one, what is gone are the scaffold tokens of BPE's vocabulary.
    """

    gone: int
    """Tokens of the other vocabulary that this one lacks."""
    gone_share: float
    """Share of the other vocabulary's tokens."""
    gone_frequency: float
    """Mean occurrences of those in the text that the other encoded."""
    came: int
    came_frequency: float
    """Mean occurrences of this vocabulary's own ones in the text that it encoded."""

    @property
    def frequency_rise(self) -> float | None:
        """Mean frequency of what came over that of what is gone, less one; None from nothing."""
        return self.came_frequency / self.gone_frequency - 1 if self.gone_frequency and self.came else None


@dataclass(frozen=True)
class TokenRow:
    """One tokenizer with its encoder on the training text of a corpus."""

    labels: tuple[str, ...]
    """Labels by factor."""
    name: str
    config: Mapping[str, Any]
    """One of the configurations that ask for it, as plain data."""
    statistics: Mapping[str, Any]
    """The `statistics.json` of a `token_statistics` artefact."""
    vocab_size: int
    baseline: int | None = None
    """Place of the row that it is compared with."""
    replaced: Replaced | None = None
    """None where the vocabularies are the same, and without a row to compare with."""

    @property
    def train(self) -> Mapping[str, Any]:
        """Statistics of the training text."""
        return dict(self.statistics["train"])

    def lengths(self) -> Sequence[int]:
        """Tokens in the training text by `LENGTHS`."""
        return counts_by_length(self.train["token_lengths"])


@dataclass(frozen=True)
class OrderRow:
    """One ordering with its packing."""

    label: str
    numbers: Mapping[str, Number]
    """Single numbers, those of the order's own record among them."""
    curves: Mapping[str, Sequence[float]]
    embeddings: str
    """Key of the embeddings whose cosines these are; cosines of different embeddings say nothing about each other."""

    @classmethod
    def read(cls, label: str, directory: Path, order: Mapping[str, Any], embeddings: str) -> "OrderRow":
        """The `statistics.json` of a `context_statistics` artefact, with what the record of the order says."""
        content = json.loads((directory / "statistics.json").read_text(encoding="utf-8"))
        own = {name: value for name, value in order.items() if isinstance(value, int | float)}
        return cls(label, own | content["numbers"], content["curves"], embeddings)


def counts_by_length(buckets: Mapping[str, int]) -> list[int]:
    """Counts by `LENGTHS` of counts in buckets of three characters, `1-3`, `4-6` and so on, in whatever order."""
    counts = [0] * len(LENGTHS)
    for name, count in buckets.items():
        place = (int(name.partition("-")[0]) - 1) // 3
        counts[min(place, len(LENGTHS) - 1)] += count
    return counts


def changed(after: float, before: float) -> float | None:
    """Relative change; None from nothing."""
    return after / before - 1 if before else None


def row_numbers(row: TokenRow, other: TokenRow | None) -> dict[str, Number]:
    """Every number of a row by name; those of a comparison with `other` are None without one.

    Names that end in `_share`, `_change` or `_rise`, and scores of words, are shares and relative changes.
    """
    train, heldout = row.train, row.statistics["heldout"]
    before = other.train if other else None
    total = max(sum(row.lengths()), 1)
    numbers: dict[str, Number] = {
        "vocab_size": row.vocab_size,
        **{name: train[name] for name in _TRAIN_NUMBERS},
        "own_share": row.statistics["own_share"],
        "bytes_per_token_change": changed(train["bytes_per_token"], before["bytes_per_token"]) if before else None,
        "mean_token_length_change":
            changed(train["mean_token_length"], before["mean_token_length"]) if before else None,
        "heldout_bytes_per_token": heldout["bytes_per_token"],
        "heldout_tokens_per_word": heldout["tokens_per_word"],
        **row.statistics["words"],
    }  # fmt: skip
    for place, bucket in enumerate(LENGTHS):
        key = "tokens_" + bucket.replace("-", "_").replace("+", "_more")
        numbers[f"{key}_share"] = row.lengths()[place] / total
        numbers[f"{key}_change"] = changed(row.lengths()[place], other.lengths()[place]) if other else None
    return numbers | {name: getattr(row.replaced, name, None) for name in _REPLACED_NUMBERS}


_TRAIN_NUMBERS = (
    "texts", "bytes", "tokens", "words", "bytes_per_token", "tokens_per_word", "mean_token_length", "entropy",
    "redundancy", "renyi_efficiency", "used_tokens", "unused_tokens", "scaffold_share",
)  # fmt: skip
_REPLACED_NUMBERS = ("gone", "gone_share", "gone_frequency", "came_frequency", "frequency_rise")

ABSENT = "–"


@dataclass(frozen=True)
class NumberColumn:
    """A number of each row."""

    heading: str
    name: str
    show: Callable[[float], str]
    rank: int = 9
    """Which columns a narrow terminal shows: the lowest."""
    wide: bool = False
    """True if only files have room for it."""


def percent(value: float) -> str:
    """A share."""
    return f"{100 * value:.2f} %"


def signed(value: float) -> str:
    """A relative change."""
    return f"{100 * value:+.2f} %".replace("-", "−")


def whole(value: float) -> str:
    """A count."""
    return f"{value:,.0f}"


def digits(number: int) -> Callable[[float], str]:
    """A number with so many digits after the point."""
    return lambda value: f"{value:.{number}f}"


COLUMNS = (
    NumberColumn("vocabulary", "vocab_size", whole, rank=5),
    NumberColumn("tokens", "tokens", whole, wide=True),
    NumberColumn("bytes/token", "bytes_per_token", digits(4), rank=0),
    NumberColumn("change", "bytes_per_token_change", signed, rank=1),
    NumberColumn("held out", "heldout_bytes_per_token", digits(4), rank=4),
    NumberColumn("chars/token", "mean_token_length", digits(3), wide=True),
    NumberColumn("tokens/word", "tokens_per_word", digits(3), rank=6),
    NumberColumn("entropy", "entropy", digits(4), rank=3),
    NumberColumn("redundancy", "redundancy", digits(4), rank=7),
    NumberColumn("Rényi", "renyi_efficiency", digits(4), wide=True),
    NumberColumn("unused", "unused_tokens", whole, wide=True),
    NumberColumn("own share", "own_share", percent, wide=True),
    NumberColumn("scaffolds", "scaffold_share", percent, wide=True),
)
LEGEND = (
    "Of the training text; special tokens are out. change: of bytes a token, from the row that a row is compared "
    "with, the first of the same vocabulary size where the experiment names no other. held out: bytes a token of the "
    "held-out text. tokens/word: words are what white space separates. entropy: of the tokens' frequencies, in bits; "
    "redundancy: one less entropy over log2 of the vocabulary's size; Rényi: efficiency of order 2.5. unused: tokens "
    "of the vocabulary that never occur. own share: occurrences of a token over those of all tokens that contain it, "
    "mean over tokens. scaffolds: scaffold tokens for each token of the vocabulary."
)


def columns_of(numbers: Sequence[Mapping[str, Number]]) -> list[NumberColumn]:
    """The columns in which some row has a number: those above, and precision, recall and F1 of segmented words."""
    words = list(dict.fromkeys(name for row in numbers for name in row if name.endswith(WORD_SCORES)))
    every = [*COLUMNS, *(NumberColumn(name.replace("_", " "), name, percent, rank=2) for name in words)]
    return [column for column in every if any(row.get(column.name) is not None for row in numbers)]


def cell_text(column: NumberColumn, row: Mapping[str, Number]) -> str:
    """Text of a cell."""
    value = row.get(column.name)
    return ABSENT if value is None else column.show(float(value))


WORD_SCORES = ("_precision", "_recall", "_f1")

Lines = list[list[str]]


def all_numbers(rows: Sequence[TokenRow]) -> list[dict[str, Number]]:
    """The numbers of each row, compared with the row that it is compared with."""
    return [row_numbers(row, None if row.baseline is None else rows[row.baseline]) for row in rows]


def main_lines(rows: Sequence[TokenRow], head: str, numbers: Sequence[Mapping[str, Number]]) -> Lines:
    """Every number that is not in a table of its own."""
    columns = columns_of(numbers)
    body = [[row.name, *(cell_text(column, own) for column in columns)] for row, own in zip(rows, numbers, strict=True)]
    return [[head, *(column.heading for column in columns)], *body]


def length_lines(rows: Sequence[TokenRow], head: str) -> Lines:
    """Shares of tokens by length in the text, with the change of their number (LBPE, Table II); then vocabularies."""
    lines = [[head, *(f"{bucket} characters" for bucket in LENGTHS)]]
    for row in rows:
        total, before = max(sum(row.lengths()), 1), None if row.baseline is None else rows[row.baseline].lengths()
        cells = []
        for place, count in enumerate(row.lengths()):
            change = changed(count, before[place]) if before else None
            cells.append(percent(count / total) + (f" ({signed(change)})" if change is not None else ""))
        lines.append([row.name, *cells])
    for name, counts in vocabulary_lengths(rows).items():
        lines.append([f"vocabulary of {name}", *map(whole, counts)])
    return lines


def vocabulary_lengths(rows: Sequence[TokenRow]) -> dict[str, Sequence[int]]:
    """Tokens of each vocabulary by length, by the first row that has it; of the rows alike, one."""
    names: dict[tuple[int, ...], str] = {}
    for row in rows:
        names.setdefault(tuple(counts_by_length(row.statistics["vocabulary_lengths"])), row.name)
    return {name: counts for counts, name in names.items()}


def replaced_lines(rows: Sequence[TokenRow], head: str) -> Lines:
    """Tokens that vocabularies have in place of others' (Scaffold-BPE, section 1 and Figure 5); empty for none."""
    once, lines = digits(1), [[head, "gone", "share", "frequency", "of new", "rise", "compared with"]]
    for row in rows:
        if (new := row.replaced) is not None and row.baseline is not None and new.gone:
            came = once(new.came_frequency) if new.came else ABSENT
            rise = ABSENT if new.frequency_rise is None else signed(new.frequency_rise)
            gone = [whole(new.gone), percent(new.gone_share), once(new.gone_frequency)]
            lines.append([row.name, *gone, came, rise, rows[row.baseline].name])
    return lines if len(lines) > 1 else []


def joined_labels(labels: Sequence[str], table: TableConfig) -> str:
    """The labels of a row as the table says them."""
    return " · ".join((table.names or {}).get(label, label) for label in labels)


_GAP = 2
"""Characters between columns."""


def terminal_table(
    title: str, rows: Sequence[TokenRow], head: str, numbers: Sequence[Mapping[str, Number]], width: int
) -> Table:
    """The columns that say most, as many as fit, those of the lowest rank first; the files have all of them."""
    columns = [column for column in columns_of(numbers) if not column.wide]
    cells = {column.name: [cell_text(column, own) for own in numbers] for column in columns}
    left = max(len(row.name) for row in rows)
    room, shown = width - left, set()
    for column in sorted(columns, key=lambda column: column.rank):
        room -= _GAP + max(map(len, [column.heading, *cells[column.name]]))
        if room < 0:
            break
        shown.add(column.name)
    fitting = [column for column in columns if column.name in shown]
    caption = f"{LEGEND.partition(' tokens/word')[0]} The files have more columns, lengths of tokens and pictures."
    lines = [[head, *(column.heading for column in fitting)]]
    lines += [[row.name, *(cells[column.name][place] for column in fitting)] for place, row in enumerate(rows)]
    return plain_table(title, lines, width, caption)


def plain_table(title: str, lines: Sequence[Sequence[str]], width: int, caption: str | None = None) -> Table:
    """Lines of text, the first of which are headings; columns without one, and the first, hold names. What is in
    brackets goes below its number where the lines are too wide, and the last columns go where they still are.
    """
    left = min(max(len(line[0]) for line in lines[1:]), width // 2)
    count = _count_fitting(lines, width - left)
    if count < len(lines[0]):
        lines = [[cell.replace(" (", "\n(") for cell in line] for line in lines]
        count = _count_fitting(lines, width - left)
    fewer = "The files have more columns." if count < len(lines[0]) else ""
    table = bare_table(title, " ".join(filter(None, (caption, fewer))))
    table.add_column(lines[0][0], overflow="fold", min_width=left)
    for heading in lines[0][1:count]:
        # Numbers never fold, so that rich takes what is missing from names alone.
        table.add_column(heading, justify="right" if heading else "left", overflow="fold", no_wrap=bool(heading))
    for line in lines[1:]:
        table.add_row(*map(Text, line[:count]))
    return table


def _count_fitting(lines: Sequence[Sequence[str]], width: int) -> int:
    """Number of columns, with the first, of which the others fit into a width."""
    for place, heading in enumerate(lines[0]):
        if place:
            breaks = "\n" if heading else None
            width -= _GAP + max(len(part) for line in lines for part in line[place].split(breaks) or [""])
            if width < 0:
                return place
    return len(lines[0])


def bare_table(title: str, caption: str | None = None) -> Table:
    """A table without columns yet."""
    looks = {"title_justify": "left", "caption_justify": "left", "box": SIMPLE_HEAD, "pad_edge": False}
    return Table(title=title, caption=caption, collapse_padding=True, **looks)  # type: ignore[arg-type]
