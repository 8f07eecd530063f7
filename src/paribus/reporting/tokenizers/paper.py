"""A paper's table of tokenizers, ours beside it."""

from collections.abc import Mapping, Sequence

from paribus.reporting.paper.block import Paper, PaperRow
from paribus.reporting.paper.paper import ABSENT, fits_choices
from paribus.reporting.paper.setting import Setting
from paribus.reporting.tokenizers.columns import WORD_SCORES
from paribus.reporting.tokenizers.row import Number, TokenRow

_PERCENT = ("_share", "_change", "_rise", *WORD_SCORES)
"""Endings of names of what papers print in %."""


def paper_lines(
    paper: Paper, rows: Sequence[TokenRow], found: Sequence[Mapping[str, Number]], factors: Sequence[str]
) -> list[list[str]]:
    """A header line, then a line for each number of the paper: its row, its column, theirs, ours and the difference.

    A row of ours stands beside one of the paper's that makes the same choices with a vocabulary of the same size and,
    where the paper says it, unit. Of several of ours that fit one of theirs each has its lines.
    """
    lines = [["", "", "paper", "ours", "difference"]]
    for wanted, printed in zip(paper.rows, paper.numbers or (), strict=False):
        alike = [place for place, row in enumerate(rows) if _fits(wanted, row, factors)]
        places: list[int | None] = [*alike] or [None]
        for place in places:
            label = wanted.label if place is None or len(alike) < 2 else f"{wanted.label} ({rows[place].name})"
            for position, (number, column) in enumerate(zip(printed, paper.columns, strict=True)):
                if number is not None:
                    ours = None if place is None else found[place].get(column.task)
                    scale = 100 if column.task.endswith(_PERCENT) else 1
                    compared = _cells(number, ours, scale, paper.decimals(position))
                    lines.append([label, column.label, paper.printed(number, position), *compared])
    return lines


def _fits(wanted: PaperRow, row: TokenRow, factors: Sequence[str]) -> bool:
    alike = fits_choices(wanted, dict(zip(factors, row.labels, strict=True)), [row.config])
    unit = (row.config.get("tokenizer") or {}).get("unit")
    return alike and wanted.setting.fits(Setting(vocabulary=row.vocab_size, unit=unit))


def _cells(printed: float, ours: Number, scale: int, digits: int) -> list[str]:
    if ours is None:
        return [ABSENT, ABSENT]
    value = scale * float(ours)
    return [text.replace("-", "−") for text in (f"{value:.{digits}f}", f"{value - printed:+.{digits}f}")]
