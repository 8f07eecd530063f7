"""Plots of how a tokenizer cuts text: how long its tokens are, and how often they occur.

They take numbers, so that they serve a comparison of runs and a table of tokenizers alike.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from paribus.reporting.plots.looks import Look
from paribus.reporting.plots.marks import mark
from paribus.reporting.plots.picture import Plot, picture

LAST_BUCKET = 16
"""Tokens of this length and more are one bar."""
_TOLD_RANKS = (1, 10, 100, 1_000, 10_000, 100_000)

RankCurve = Sequence[Sequence[int]]


@dataclass(frozen=True)
class Segmentation:
    """How one tokenizer cut a text."""

    name: str
    look: Look
    token_lengths: Mapping[str, int]
    """Tokens by length in characters: `1-3`, `4-6`, ..."""
    frequency_by_rank: RankCurve = ()
    """(rank from 1, occurrences) of its tokens, by rank."""
    row: int | None = None
    """Place of its row among those of the comparison, where it is of one alone."""


def token_lengths(segmentations: Sequence[Segmentation], text: str) -> Plot | None:
    """Share of tokens by length, as in the papers' figures of token lengths; None where nothing is counted."""
    shares = [(part, _shares(part.token_lengths)) for part in segmentations if sum(part.token_lengths.values())]
    if not shares:
        return None
    buckets = sorted({bucket for _, found in shares for bucket in found}, key=_first_length)

    def draw(figure: Figure) -> None:
        axes, width = figure.subplots(), 0.8 / len(shares)
        for place, (part, found) in enumerate(shares):
            left = [position - 0.4 + (place + 0.5) * width for position in range(len(buckets))]
            heights = [100 * found.get(bucket, 0.0) for bucket in buckets]
            bars = axes.bar(
                left, heights, 0.92 * width, label=part.name, color=part.look.colour, hatch=part.look.hatch,
                edgecolor="#ffffff", linewidth=0,
            )  # fmt: skip
            for bar, bucket, height in zip(bars, buckets, heights, strict=True):
                mark([bar], f"{part.name}: {height:.1f} % of tokens have {bucket} characters", part.row)
        axes.set_xticks(range(len(buckets)), buckets)
        axes.set_xlabel("length of a token (characters)")
        axes.set_ylabel("share of tokens (%)")
        axes.grid(axis="x", visible=False)
        figure.legend(loc="outside right center", fontsize=9)

    caption = f"Lengths of the tokens of {text}."
    told = [f"{part.name}: " + ", ".join(f"{bucket} {100 * found.get(bucket, 0):.1f} %" for bucket in buckets)
            for part, found in shares]  # fmt: skip
    return picture("token_lengths", caption, f"{caption} {'; '.join(told)}.", (9.2, max(3.8, 0.24 * len(shares))), draw)


def token_frequencies(segmentations: Sequence[Segmentation], text: str) -> Plot | None:
    """Occurrences of tokens by rank on log scales, as in the papers' figures; None where nothing is counted.

    Beside it with an even scale of ranks, on which rare tokens, where vocabularies differ, have the room.
    """
    shown = [part for part in segmentations if part.frequency_by_rank]
    if not shown:
        return None

    def draw(figure: Figure) -> None:
        panels = figure.subplots(1, 2, sharey=True)
        for panel, part in itertools.product(panels, shown):
            ranks, counts = zip(*part.frequency_by_rank, strict=True)
            label = part.name if panel is panels[0] else None
            looks: dict[str, Any] = {"linestyle": part.look.dashes, "color": part.look.colour}
            drawn = panel.plot(ranks, counts, linewidth=1.6, label=label, **looks)
            mark(drawn, part.name, part.row)
            panel.set_xlabel("rank of a token by frequency")
        panels[0].set_xscale("log")
        panels[0].set_yscale("log")
        panels[0].set_ylabel("occurrences")
        panels[1].xaxis.set_major_locator(MaxNLocator(5))
        figure.legend(loc="outside lower center", fontsize=9, ncols=min(2, len(shown)))

    caption = f"Occurrences of the tokens of {text} by rank. First: ranks on a log scale; second: on an even one."
    told = "; ".join(f"{part.name}: {_told(part.frequency_by_rank)}" for part in shown)
    return picture("token_frequencies", caption, f"{caption} {told}.", (9.2, 4.2 + 0.1 * len(shown)), draw)


def _shares(counts: Mapping[str, int]) -> dict[str, float]:
    """Shares by bucket; the long ones together."""
    shares: dict[str, float] = {}
    for bucket, count in counts.items():
        name = f"{LAST_BUCKET}+" if _first_length(bucket) >= LAST_BUCKET else bucket
        shares[name] = shares.get(name, 0.0) + count / sum(counts.values())
    return shares


def _first_length(bucket: str) -> int:
    """Where a bucket such as `4-6` or `16+` begins."""
    digits = "".join(itertools.takewhile(str.isdigit, bucket))
    return int(digits) if digits else 0


def _told(curve: RankCurve) -> str:
    """Counts at the powers of ten, or at the nearest rank there is, and at the last rank."""
    ranks = {min(curve, key=lambda point: abs(point[0] - rank))[0] for rank in _TOLD_RANKS if rank <= curve[-1][0]}
    return ", ".join(f"rank {rank} {count}" for rank, count in curve if rank in ranks or rank == curve[-1][0])
