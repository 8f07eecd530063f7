"""The claims of the papers, read from `claims.yaml`, with what the papers print of them."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from claims.claim import Claim
from paribus.checks import compose_command
from paribus.config.arguments import parse
from paribus.reporting.paper import Paper
from paribus.reporting.paper import parse_paper as parse_block

FILE = Path(__file__).with_name("claims.yaml")
ENTROPY_PAPER = "Entropy-Driven Pre-Tokenization (arXiv 2506.15889)"


def claims() -> list[Claim]:
    """In the order of the page; `number` is empty in those of which nothing is measured."""
    return [_read(paper, entry) for paper, entry in entries()]


def entries() -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Paper and claim, as the file has them."""
    content: Mapping[str, Sequence[Mapping[str, Any]]] = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    for paper, own in content.items():
        yield from ((paper, entry) for entry in own)


def _read(paper: str, entry: Mapping[str, Any]) -> Claim:
    rest = {name: value for name, value in entry.items() if name not in ("printed", "unit")}
    return Claim(paper=paper, size=" ".join(filter(None, [_effect(entry["printed"]), entry["unit"]])), **rest)


def _effect(given: str | Sequence[str]) -> str:
    """The smallest and the largest difference of two rows of the paper, or one number of a row."""
    if isinstance(given, str):
        return given
    experiment, row, other, *columns = given
    paper = read_paper(experiment)
    assert paper is not None
    labels, headings = [each.label for each in paper.rows], [column.label for column in paper.columns]
    numbers = dict(zip(labels, paper.numbers or (), strict=True))
    if other in headings:
        (value,) = (numbers[row][headings.index(other)],)
        return _signed(float(value or 0), str(value))
    pairs = zip(headings, numbers[row], numbers[other], strict=True)
    differences = [
        new - old
        for heading, new, old in pairs
        if new is not None and old is not None and (not columns or heading in columns)
    ]
    digits = max(len(str(value).partition(".")[2]) for value in numbers[row] if value is not None)
    shown = [f"{value:+.{digits}f}".replace("-", "−") for value in (min(differences), max(differences))]
    return " to ".join(dict.fromkeys(shown))


@cache
def read_paper(experiment: str) -> Paper | None:
    """What the experiment file has of a paper's numbers; None where it prints none."""
    composed = compose_command(parse([f"experiment={experiment}"])).jobs[0].config.experiment
    assert composed is not None
    return None if composed.paper is None else parse_block(composed.paper)


def _signed(value: float, text: str) -> str:
    return f"{'+' if value > 0 else ''}{text}".replace("-", "−")
