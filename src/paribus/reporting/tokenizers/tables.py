"""The tables of tokenizers as lines of text: a header line, then a line a row."""

from collections.abc import Mapping, Sequence

from paribus.config.groups.experiment import TableConfig
from paribus.reporting.tokenizers.columns import ABSENT, columns_of, digits, percent, shown, signed, whole
from paribus.reporting.tokenizers.row import LENGTHS, Number, TokenRow, changed, numbers

Lines = list[list[str]]


def all_numbers(rows: Sequence[TokenRow]) -> list[dict[str, Number]]:
    """The numbers of each row, compared with the row that it is compared with."""
    return [numbers(row, None if row.baseline is None else rows[row.baseline]) for row in rows]


def main_lines(rows: Sequence[TokenRow], head: str, found: Sequence[Mapping[str, Number]]) -> Lines:
    """Every number that is not in a table of its own."""
    columns = columns_of(found)
    body = [[row.name, *(shown(column, own) for column in columns)] for row, own in zip(rows, found, strict=True)]
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
    for name, counts in vocabularies(rows).items():
        lines.append([f"vocabulary of {name}", *map(whole, counts)])
    return lines


def vocabularies(rows: Sequence[TokenRow]) -> dict[str, Sequence[int]]:
    """Tokens of each vocabulary by length, by the first row that has it; of the rows alike, one."""
    found: dict[tuple[int, ...], str] = {}
    for row in rows:
        found.setdefault(tuple(row.vocabulary_lengths()), row.name)
    return {name: counts for counts, name in found.items()}


def replaced_lines(rows: Sequence[TokenRow], head: str) -> Lines:
    """What vocabularies have in place of others' tokens (Scaffold-BPE, section 1 and Figure 5); empty for none."""
    once = digits(1)
    lines = [
        [head, "gone", "share", "frequency", "of new", "rise", "compared with"],
        *(
            [
                row.name,
                whole(new.gone),
                percent(new.gone_share),
                once(new.gone_frequency),
                once(new.came_frequency) if new.came else ABSENT,
                ABSENT if new.rise is None else signed(new.rise),
                rows[row.baseline].name,
            ]
            for row in rows
            if (new := row.replaced) is not None and row.baseline is not None and new.gone
        ),
    ]
    return lines if len(lines) > 1 else []


def named(labels: Sequence[str], table: TableConfig) -> str:
    """The labels of a row as the table says them."""
    names = table.names or {}
    return " · ".join(names.get(label, label) for label in labels)
