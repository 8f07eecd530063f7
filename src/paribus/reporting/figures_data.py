"""Plots of tokenizers, vocabularies, orderings and text.

They take plain numbers, so that they serve a comparison of runs and a table of tokenizers alike.
"""

import hashlib
import itertools
import math
import re
import textwrap
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from rich.cells import cell_len

from paribus.reporting.data_tables import LENGTHS, OrderRow, counts_by_length
from paribus.reporting.plots import COLOURS, ON_DARK, ON_LIGHT, Look, Looks, Plot, mark, picture

_READ_OUT_RANKS = (1, 10, 100, 1_000, 10_000, 100_000)

RankCurve = Sequence[Sequence[int]]


@dataclass(frozen=True)
class Segmentation:
    """Segmentation of a text by one tokenizer."""

    name: str
    look: Look
    token_lengths: Mapping[str, int]
    """Tokens by length in characters: `1-3`, `4-6`, ..."""
    frequency_by_rank: RankCurve = ()
    """(rank from 1, occurrences) of its tokens, by rank."""
    row: int | None = None
    """Place of its row in the comparison; None where it is not of a single row."""


def token_lengths(segmentations: Sequence[Segmentation], text: str) -> Plot | None:
    """Share of tokens by length, as in the papers' figures of token lengths; None where nothing is counted."""
    counted = [(part, counts_by_length(part.token_lengths)) for part in segmentations]
    shares = [(part, [100 * count / sum(counts) for count in counts]) for part, counts in counted if sum(counts)]
    if not shares:
        return None
    buckets = LENGTHS[: max(place for _, heights in shares for place, share in enumerate(heights, start=1) if share)]

    def draw(figure: Figure) -> None:
        axes, width = figure.subplots(), 0.8 / len(shares)
        for place, (part, heights) in enumerate(shares):
            centres = [position - 0.4 + (place + 0.5) * width for position in range(len(buckets))]
            bars = axes.bar(
                centres, heights[: len(buckets)], 0.92 * width, label=part.name, color=part.look.colour,
                hatch=part.look.hatch, edgecolor="#ffffff", linewidth=0,
            )  # fmt: skip
            for bar, bucket, height in zip(bars, buckets, heights, strict=False):
                mark([bar], f"{part.name}: {height:.1f} % of tokens have {bucket} characters", part.row)
        axes.set_xticks(range(len(buckets)), buckets)
        axes.set_xlabel("length of a token (characters)")
        axes.set_ylabel("share of tokens (%)")
        axes.grid(axis="x", visible=False)
        figure.legend(loc="outside right center", fontsize=9)

    caption = f"Lengths of the tokens of {text}."
    texts = [
        f"{part.name}: " + ", ".join(f"{bucket} {share:.1f} %" for bucket, share in zip(buckets, heights, strict=False))
        for part, heights in shares
    ]
    size = (9.2, max(3.8, 0.24 * len(shares)))
    return picture("token_lengths", caption, f"{caption} {'; '.join(texts)}.", size, draw)


def token_frequencies(segmentations: Sequence[Segmentation], text: str) -> Plot | None:
    """Occurrences of tokens by rank on log scales, as in the papers' figures; None where nothing is counted.

    A second panel has a linear scale of ranks, which gives room to rare tokens, where vocabularies differ.
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
            mark(panel.plot(ranks, counts, linewidth=1.6, label=label, **looks), part.name, part.row)
            panel.set_xlabel("rank of a token by frequency")
        panels[0].set_xscale("log")
        panels[0].set_yscale("log")
        panels[0].set_ylabel("occurrences")
        panels[1].xaxis.set_major_locator(MaxNLocator(5))
        figure.legend(loc="outside lower center", fontsize=9, ncols=min(2, len(shown)))

    caption = f"Occurrences of the tokens of {text} by rank. First: ranks on a log scale; second: on an even one."
    texts = "; ".join(f"{part.name}: {_rank_text(part.frequency_by_rank)}" for part in shown)
    return picture("token_frequencies", caption, f"{caption} {texts}.", (9.2, 4.2 + 0.1 * len(shown)), draw)


def _rank_text(curve: RankCurve) -> str:
    """Counts at the powers of ten, or at the nearest rank that exists, and at the last rank."""
    ranks = {min(curve, key=lambda point: abs(point[0] - rank))[0] for rank in _READ_OUT_RANKS if rank <= curve[-1][0]}
    return ", ".join(f"rank {rank} {count}" for rank, count in curve if rank in ranks or rank == curve[-1][0])


def own_shares_plot(rows: Sequence[tuple[str, Look, Sequence[int]]]) -> Plot | None:
    """Tokens by the share of their occurrences among those of all tokens that contain them, a line a row.

    `rows` are names and looks with the counts of equal bins from 0 to 1; None where nothing is counted.
    """
    shown = [row for row in rows if sum(row[2])]
    if not shown:
        return None

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for name, look, counts in shown:
            middles = [100 * (number + 0.5) / len(counts) for number in range(len(counts))]
            heights = [100 * count / sum(counts) for count in counts]
            axes.plot(middles, heights, linestyle=look.dashes, color=look.colour, linewidth=1.6, marker=".", label=name)
        axes.set_xlabel("occurrences of a token among those of all tokens that contain it (%)")
        axes.set_ylabel("share of tokens (%)")
        axes.set_xlim(0, 100)
        axes.set_ylim(bottom=0)
        figure.legend(loc="outside lower center", fontsize=9, ncols=min(2, len(shown)))

    caption = "Tokens by how much of what they spell is their own: on the left those that mostly occur inside longer "
    caption += "tokens, which Scaffold-BPE calls scaffold tokens."
    texts = "; ".join(
        f"{name}: {100 * counts[0] / sum(counts):.1f} % in the lowest bin, "
        f"{100 * counts[-1] / sum(counts):.1f} % in the highest"
        for name, _, counts in shown
    )
    return picture("own_shares", caption, f"{caption} {texts}.", (7.0, 3.8 + 0.1 * len(shown)), draw)


_DARK_SHARE = 0.6
"""Share from which on the text in a cell is white."""
_LONGEST_UNTURNED, _LONGEST_LINE = 13, 24
"""Most characters of names that fit side by side below their squares, and of a line of a name."""
_LABEL_LENGTH = 90
"""Most characters of a vocabulary's name in that of a metric: two of them and the words between fit in MLflow's 250."""


@dataclass(frozen=True)
class OverlapMatrix:
    """Vocabularies of a comparison by name, their tokens without special ones, and the overlap of each two."""

    names: Sequence[str]
    sizes: Sequence[int]
    shares: Sequence[Sequence[float]]
    """shares[i][j]: of the tokens of vocabulary i, the share that vocabulary j has too."""
    frequencies: Sequence[Sequence[float | None]]
    """frequencies[i][j]: mean occurrences, in a million tokens, of a token that i has and j lacks; None where there is
    none, or nothing was counted."""
    own: Mapping[str, Collection[int]] = field(default_factory=dict)
    """Ids of the tokens that no other vocabulary has, by identifier of a run."""
    shown: Sequence[str] = ()
    """Labels of the names in a picture; the names themselves where it is empty. Metrics keep the names."""

    def metrics(self) -> dict[str, float]:
        """Every share and frequency of two different vocabularies, named for a tracker."""
        numbers = {}
        for (i, first), (j, second) in itertools.permutations(enumerate(_metric_labels(self.names)), 2):
            numbers[f"vocabulary_overlap/{first} in {second}"] = self.shares[i][j]
            if (frequency := self.frequencies[i][j]) is not None:
                numbers[f"vocabulary_overlap/occurrences per million of {first} not in {second}"] = frequency
        return numbers


def overlap_plot(overlap: OverlapMatrix) -> Plot:
    """A square for each pair of vocabularies."""
    names = overlap.shown or overlap.names
    count = len(names)
    below = [_in_lines(name) for name in names]
    labels = [f"{name}\n{size:,} tokens" for name, size in zip(below, overlap.sizes, strict=True)]
    longest = max(cell_len(line) for name in labels for line in name.split("\n"))
    turned = longest > _LONGEST_UNTURNED or count > 3

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        axes.imshow(overlap.shares, vmin=0, vmax=1, cmap="Blues")
        for row, shares in enumerate(overlap.shares):
            for column, share in enumerate(shares):
                colour = ON_DARK if share > _DARK_SHARE else ON_LIGHT
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
    texts = "; ".join(
        f"{first} in {second} {100 * overlap.shares[i][j]:.1f} %"
        + ("" if (frequency := overlap.frequencies[i][j]) is None else f", others {frequency:.1f} in a million")
        for (i, first), (j, second) in itertools.permutations(enumerate(names), 2)
    )
    most = max(name.count("\n") for name in labels)
    size = (2.4 + 0.09 * longest + 1.1 * count, 1.2 + (0.05 * longest if turned else 0) + (0.9 + 0.1 * most) * count)
    return picture("vocabulary_overlap", caption, f"{caption} {texts}.", size, draw)


def _in_lines(name: str) -> str:
    """A name with a line for each part, and several for long ones."""
    lines = []
    for part in name.split(" · "):
        width = cell_len(part) / max(len(part), 1)  # 2 for full-width characters
        lines += textwrap.wrap(part, int(_LONGEST_LINE / max(width, 1))) or [part]
    return "\n".join(lines)


def _metric_labels(names: Sequence[str]) -> list[str]:
    """Distinct names of characters that trackers accept.

    A name that is too long, or equals another once refused characters are replaced, ends in its digest.
    """
    plain = [re.sub(r"[^\w. -]", "_", name) for name in names]
    endings = [f" {hashlib.sha256(name.encode()).hexdigest()[:8]}" for name in names]
    return [
        label
        if len(label) <= _LABEL_LENGTH and plain.count(label) == 1
        else label[: _LABEL_LENGTH - len(ending)] + ending
        for label, ending in zip(plain, endings, strict=True)
    ]


_COSINE_BIN = 2.0 / 100
"""Cosines of one bar of `similarity_inside`, which counts from -1 to 1."""


def order_plots(rows: Sequence[OrderRow]) -> list[Plot]:
    """Plots of contexts by similarity and by number of documents, and of similarity along the order."""
    inside = ("mean cosine of two documents of a context", "share of contexts (%)")
    documents = ("documents in a context", "share of contexts (%)")
    along = ("part of the order (%)", "mean cosine with the next document")
    inside_caption = "Contexts by the mean cosine of two of their documents."
    documents_caption = "Contexts by the number of documents they hold."
    along_caption = "Mean cosine of documents that follow each other, along the order."
    return [
        _order_plot(rows, "similarity_inside", inside_caption, inside, _cosine_shares),
        _order_plot(rows, "contexts_of_documents", documents_caption, documents, _document_shares),
        _order_plot(rows, "similarity_along", along_caption, along, _cosines_along),
    ]


def _order_plot(
    rows: Sequence[OrderRow],
    curve: str,
    caption: str,
    axes_labels: tuple[str, str],
    points: Callable[[Sequence[float]], tuple[list[float], list[float]]],
) -> Plot:
    def draw(figure: Figure) -> None:
        axes, looks = figure.subplots(), Looks(["row"], [[row.label] for row in rows])
        for row in rows:
            look = looks.of([row.label])
            drawstyle = "steps-mid" if curve == "contexts_of_documents" else "default"
            options: dict[str, Any] = {"color": look.colour, "linewidth": 1.6, "drawstyle": drawstyle}
            axes.plot(*points(row.curves[curve]), linestyle=look.dashes, label=row.label, **options)
        if curve == "similarity_inside":
            label = f"{rows[0].label} in random order"
            axes.plot(*points(rows[0].curves["similarity_shuffled"]), color="#8C8C8C", linewidth=1, label=label)
        if curve == "contexts_of_documents":
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_xlabel(axes_labels[0])
        axes.set_ylabel(axes_labels[1])
        figure.legend(loc="outside right center", fontsize=9)

    return picture(curve, caption, caption, (9.2, 3.8), draw)


def _cosine_shares(counts: Sequence[float]) -> tuple[list[float], list[float]]:
    """Middles and shares of the bars from one before the first filled to one after the last; empty without counts."""
    filled = [place for place, count in enumerate(counts) if count]
    if not filled:
        return [], []
    places, total = range(max(0, filled[0] - 1), min(len(counts), filled[-1] + 2)), sum(counts)
    return [-1 + (place + 0.5) * _COSINE_BIN for place in places], [100 * counts[place] / total for place in places]


def _document_shares(counts: Sequence[float]) -> tuple[list[float], list[float]]:
    total = sum(counts) or 1
    return [float(place) for place in range(1, len(counts))], [100 * count / total for count in counts[1:]]


def _cosines_along(values: Sequence[float]) -> tuple[list[float], list[float]]:
    points = [(100 * (place + 0.5) / len(values), value) for place, value in enumerate(values) if value is not None]
    return [place for place, _ in points], [value for _, value in points]


_CHARACTERS_A_PANEL = 48
"""Characters side by side; a longer line goes on in the panel below."""
_MOST_PANELS = 16


@dataclass(frozen=True)
class EntropyLine:
    """One line of text, its entropies and its boundaries."""

    text: str
    entropies: Sequence[float]
    """Bits, before the first character (NaN where that is not known) and after each."""
    boundaries: Sequence[int]
    """Numbers of characters after which a piece ends inside the line."""


def entropy_plot(lines: Sequence[EntropyLine], name: str = "entropy") -> Plot:
    """A panel a line: the entropy after each character, and a dotted line at each character that ends a piece.

    *Entropy-Driven Pre-Tokenization for Byte-Pair Encoding*, arXiv 2506.15889, Figures 3 and 5.
    """
    all_parts = [(line, places) for line in lines for places in _line_parts(line)]
    parts = all_parts[:_MOST_PANELS]
    longest = max(len(places) for _, places in parts)
    highest = max(entropy for line in lines for entropy in line.entropies if not math.isnan(entropy))

    def draw(figure: Figure) -> None:
        panels = figure.subplots(len(parts), 1, squeeze=False)[:, 0]
        for panel, (line, places) in zip(panels, parts, strict=True):
            entropies = [line.entropies[place] for place in places]
            panel.plot(places, entropies, color=COLOURS[0], linewidth=1.4, marker=".")
            for place in line.boundaries:
                if place in places:
                    panel.axvline(place, color=COLOURS[1], linestyle=":", linewidth=1.4)
            panel.set_xticks(places, ["", *line.text][places.start : places.stop])
            panel.grid(axis="x", visible=False)
            panel.set_xlim(places.start - 0.5, places.start + longest - 0.5)
            panel.set_ylim(0, 1.05 * highest)
        figure.supylabel("entropy of the next character (bits)", fontsize=10)

    caption = "Entropy of a language model's next character after each character; a piece ends where a dotted line is."
    if len(parts) < len(all_parts):
        caption += f" The first {len(parts)} of {len(all_parts)} panels."
    texts = "; ".join("|".join(pieces(line)) for line in lines)
    size = (max(4.0, 1.1 + 0.22 * longest), 0.5 + 1.5 * len(parts))
    return picture(name, caption, f"{caption} {texts}.", size, draw)


def pieces(line: EntropyLine) -> list[str]:
    """Pieces into which the boundaries cut the line."""
    ends = [*line.boundaries, len(line.text)]
    return [line.text[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def _line_parts(line: EntropyLine) -> Iterator[range]:
    """Ranges of places in the line, one a panel; place 0 is before the first character."""
    places = len(line.text) + 1
    rows = math.ceil(places / _CHARACTERS_A_PANEL)
    for row in range(rows):
        yield range(places * row // rows, places * (row + 1) // rows)


Reals = npt.NDArray[np.float64]
_MOST_BARS = 64
"""Largest number of bars of one quantity."""
_ROUNDED_TO = 9


Histograms = Mapping[str, npt.NDArray[np.int64]]
"""Candidates in each bin by quantity, shape (bins,)."""


def histograms(quantities: Mapping[str, Reals]) -> tuple[Reals, Histograms]:
    """Edges of bins in bits, (bins + 1,), ascending, of a power of two in width, and the counts of all `quantities`.

    There are no more bins than cover all values; each quantity must have one value at least. A bin includes its lower
    edge, the last one both edges.
    """
    # An entropy of 0 may be computed as -2e-16.
    quantities = {name: np.round(values, _ROUNDED_TO) for name, values in quantities.items()}
    low = min(float(values.min()) for values in quantities.values())
    high = max(float(values.max()) for values in quantities.values())
    width = 2.0 ** math.ceil(math.log2(max(high - low, 1.0) / (_MOST_BARS - 2)))
    first, last = math.floor(low / width), math.floor(high / width) + 1
    edges = width * np.arange(first, last + 1, dtype=np.float64)
    return edges, {name: np.histogram(values, edges)[0] for name, values in quantities.items()}


def candidates_plot(edges: Reals, counts: Histograms, text: str) -> Plot:
    """A panel a quantity, with one axis of bits below all, so that their ranges can be compared.

    *Entropy-Driven Pre-Tokenization for Byte-Pair Encoding*, arXiv 2506.15889, Figure 2.
    """

    def draw(figure: Figure) -> None:
        panels = figure.subplots(len(counts), 1, sharex=True, squeeze=False)[:, 0]
        for place, (panel, (name, bins)) in enumerate(zip(panels, counts.items(), strict=True)):
            heights = 100 * bins / bins.sum()
            panel.bar(edges[:-1], heights, np.diff(edges), align="edge", color=COLOURS[place % len(COLOURS)])
            panel.set_title(name)
            panel.set_ylabel("candidates (%)")
            panel.grid(axis="x", visible=False)
        panels[-1].set_xlabel("bits")

    caption = f"Candidate spans of {text} by mutual information and by the entropies of what stands beside them."
    texts = []
    for name, bins in counts.items():
        filled, most = np.flatnonzero(bins), f"most of them from {edges[bins.argmax()]:g} bits"
        texts.append(f"{name}: {edges[filled[0]]:g} to {edges[filled[-1] + 1]:g} bits, {most}")
    return picture("candidates", caption, f"{caption} {'; '.join(texts)}.", (7.0, 2.1 * len(counts) + 0.4), draw)
