"""The overlap of a comparison's vocabularies, as numbers and as a picture."""

import hashlib
import re
import textwrap
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from matplotlib.figure import Figure
from rich.cells import cell_len

from paribus.reporting.plots.picture import ON_DARK, ON_LIGHT, Plot, picture

_DARK = 0.6
"""Share from which on the text in a cell is white."""
_BESIDE, _LINE = 13, 24
"""Characters of names that fit beside each other below their squares, and of a line of a name."""
_LABEL_LENGTH = 90
"""Characters of a vocabulary's name in that of a metric: two of them and what is between fit in MLflow's 250."""


@dataclass(frozen=True)
class OverlapMatrix:
    """Vocabularies of a comparison by name, their tokens without special ones, and the overlap of each two."""

    names: Sequence[str]
    sizes: Sequence[int]
    shares: Sequence[Sequence[float]]
    """shares[i][j]: of the tokens of vocabulary i, the share that vocabulary j has too."""
    frequencies: Sequence[Sequence[float | None]]
    """frequencies[i][j]: how often, in a million tokens, a token occurs on average that i has and j lacks; None where
    there is none, or nothing was counted."""
    own: Mapping[str, Collection[int]] = field(default_factory=dict)
    """By identifier of a run, the ids of tokens that no other vocabulary has."""
    shown: Sequence[str] = ()
    """What a picture says for each name; the names themselves where it is empty. Metrics keep the names."""

    def metrics(self) -> dict[str, float]:
        """Every share and frequency of two different vocabularies, named for a tracker."""
        numbers = {}
        labels = _metric_labels(self.names)
        for i, first in enumerate(labels):
            for j, second in enumerate(labels):
                frequency = self.frequencies[i][j]
                if i != j:
                    numbers[f"vocabulary_overlap/{first} in {second}"] = self.shares[i][j]
                if i != j and frequency is not None:
                    numbers[f"vocabulary_overlap/occurrences per million of {first} not in {second}"] = frequency
        return numbers


def overlap_plot(overlap: OverlapMatrix) -> Plot:
    """A square for each pair of vocabularies."""
    names = overlap.shown or overlap.names
    count = len(names)
    below = [_in_lines(name) for name in names]
    labels = [f"{name}\n{size:,} tokens" for name, size in zip(below, overlap.sizes, strict=True)]
    longest = max(cell_len(line) for name in labels for line in name.split("\n"))
    turned = longest > _BESIDE or count > 3

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        axes.imshow(overlap.shares, vmin=0, vmax=1, cmap="Blues")
        for row, shares in enumerate(overlap.shares):
            for column, share in enumerate(shares):
                colour = ON_DARK if share > _DARK else ON_LIGHT
                frequency = overlap.frequencies[row][column]
                text = f"{100 * share:.1f}" + ("" if frequency is None else f"\nothers: {frequency:.1f}")
                axes.text(column, row, text, ha="center", va="center", color=colour)
        axes.set_xticks(range(count), below, rotation=30 if turned else 0, ha="right" if turned else "center")
        axes.set_yticks(range(count), labels)
        axes.set_xlabel("are in the vocabulary of")
        axes.set_ylabel("% of the tokens of")
        axes.grid(visible=False)

    caption = "Tokens that vocabularies share, by their bytes: of the tokens of each row, the percentage that the "
    caption += "vocabulary of the column has too. Special tokens and scaffolds are out. Others: how often each of the "
    caption += "other tokens of the row occurs on average, in a million tokens of the row's training text."
    told = "; ".join(
        f"{first} in {second} {100 * overlap.shares[i][j]:.1f} %{_told(overlap.frequencies[i][j])}"
        for i, first in enumerate(names)
        for j, second in enumerate(names)
        if i != j
    )
    most = max(name.count("\n") for name in labels)
    size = (2.4 + 0.09 * longest + 1.1 * count, 1.2 + (0.05 * longest if turned else 0) + (0.9 + 0.1 * most) * count)
    return picture("vocabulary_overlap", caption, f"{caption} {told}.", size, draw)


def _in_lines(name: str) -> str:
    """A name with its parts below each other, and long ones in several lines."""
    lines = []
    for part in name.split(" · "):
        wide = cell_len(part) / max(len(part), 1)  # 2 of characters as wide as they are high
        lines += textwrap.wrap(part, int(_LINE / max(wide, 1))) or [part]
    return "\n".join(lines)


def _told(frequency: float | None) -> str:
    return "" if frequency is None else f", others {frequency:.1f} in a million"


def _metric_labels(names: Sequence[str]) -> list[str]:
    """Distinct names with nothing in them that a tracker refuses.

    One that is too long, or like another once the refused characters are replaced, ends in its digest.
    """
    plain = [re.sub(r"[^\w. -]", "_", name) for name in names]
    return [
        label if len(label) <= _LABEL_LENGTH and plain.count(label) == 1 else _with_digest(label, name)
        for label, name in zip(plain, names, strict=True)
    ]


def _with_digest(label: str, name: str) -> str:
    ending = f" {hashlib.sha256(name.encode()).hexdigest()[:8]}"
    return label[: _LABEL_LENGTH - len(ending)] + ending
