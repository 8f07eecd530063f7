"""What the vocabularies of a comparison have in common, as numbers and as a picture."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure

from paribus.reporting.picture import Plot, picture

_DARK = 0.6
"""Share from which on the text in a cell is white."""


@dataclass(frozen=True)
class SharedTokens:
    """Vocabularies of a comparison by name, their tokens without special ones, and what they share."""

    names: Sequence[str]
    sizes: Sequence[int]
    shares: Sequence[Sequence[float]]
    """shares[i][j]: of the tokens of vocabulary i, the share that vocabulary j has too."""

    def metrics(self) -> dict[str, float]:
        """Every share of two different vocabularies, named for a tracker."""
        return {
            f"vocabulary_overlap/{_plain(first)} in {_plain(second)}": self.shares[i][j]
            for i, first in enumerate(self.names)
            for j, second in enumerate(self.names)
            if i != j
        }


def shared_tokens_plot(shared: SharedTokens) -> Plot:
    """A square for each pair of vocabularies."""
    count = len(shared.names)
    labels = [f"{name}\n{size:,} tokens" for name, size in zip(shared.names, shared.sizes, strict=True)]

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        axes.imshow(shared.shares, vmin=0, vmax=1, cmap="Blues")
        for row, shares in enumerate(shared.shares):
            for column, share in enumerate(shares):
                colour = "white" if share > _DARK else "#222222"
                axes.text(column, row, f"{100 * share:.1f}", ha="center", va="center", color=colour)
        axes.set_xticks(
            range(count), shared.names, rotation=30 if count > 3 else 0, ha="right" if count > 3 else "center"
        )
        axes.set_yticks(range(count), labels)
        axes.set_xlabel("are in the vocabulary of")
        axes.set_ylabel("% of the tokens of")
        axes.grid(visible=False)

    caption = "Tokens that vocabularies share, by their bytes: of the tokens of each row, the percentage that the "
    caption += "vocabulary of the column has too. Special tokens and scaffolds are out."
    told = "; ".join(
        f"{first} in {second} {100 * shared.shares[i][j]:.1f} %"
        for i, first in enumerate(shared.names)
        for j, second in enumerate(shared.names)
        if i != j
    )
    return picture("vocabulary_overlap", caption, f"{caption} {told}.", (3.2 + 1.1 * count, 1.6 + 0.9 * count), draw)


def _plain(name: str) -> str:
    """A name with nothing in it that a tracker refuses."""
    return re.sub(r"[^\w. -]", "_", name)
