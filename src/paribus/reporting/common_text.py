"""The text that trainings of one seed have in common, whose difference is else one of texts too."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from paribus.config.groups.packing import SHUFFLED_TEXT
from paribus.ordering.arrays import map_array
from paribus.ordering.packing.readings import common_share
from paribus.reporting.frame import RunRecord

if TYPE_CHECKING:
    from paribus.reporting.comparison import Row

LOW = 0.9
"""Below this share of common text, a table warns."""


@dataclass(frozen=True)
class CommonText:
    """What two runs of one seed, of a row and of the one it is compared with, both read in training."""

    row: int
    """Place of the row in the table."""
    seed: int
    share: float
    """Of the text that the one that read less has read, each reading of a byte counted."""
    shuffled_contexts: bool
    """Whether one of them shuffles contexts instead of text."""
    epochs: float
    """Of the one that read less of its corpus."""
    straddling: float
    """Share of contexts with text of two stretches, which is not shuffled as one; of the one that has more."""


def common_text(rows: Sequence["Row"]) -> list[CommonText]:
    """For every row that is compared with another and every seed of both, where the records say what was read."""
    found = []
    for place, row in enumerate(rows):
        others = {run.seed: run for run in rows[row.baseline].runs} if row.baseline is not None else {}
        for run in row.runs:
            if run.seed in others and (share := _share(run, others[run.seed])) is not None:
                found.append(_described(place, run, others[run.seed], share))
    return found


def _share(run: RunRecord, other: RunRecord) -> float | None:
    """None where one of them does not say what it read, or they read different corpora."""
    if run.readings is None or other.readings is None:
        return None
    one, two = (map_array(path).astype("int64") for path in (run.readings, other.readings))
    return common_share(one, two) if len(one) == len(two) else None


def _described(place: int, run: RunRecord, other: RunRecord, share: float) -> CommonText:
    both = (run, other)
    return CommonText(
        row=place,
        seed=run.seed,
        share=share,
        shuffled_contexts=any(_shuffle(each) != SHUFFLED_TEXT for each in both),
        straddling=max(float(each.training.get("straddling") or 0.0) for each in both),
        epochs=min(float(each.training.get("epochs") or 0.0) for each in both),
    )


def _shuffle(run: RunRecord) -> str | None:
    packing = run.config.get("packing") or {}
    shuffle: str | None = packing.get("shuffle")
    return shuffle


def in_words(found: Sequence[CommonText], names: Sequence[str]) -> list[str]:
    """Sentences for under a table whose rows have `names`: how much is common, a warning first where it is little."""
    if not found:
        return []
    low, high = min(each.share for each in found), max(each.share for each in found)
    shares = f"{low:.1%}" if f"{low:.1%}" == f"{high:.1%}" else f"{low:.1%} to {high:.1%}"
    told = (
        "Text that a row has in common with the one it is compared with, at one seed, of what the one with less has "
        f"read: {shares}."
    )
    if straddling := max(each.straddling for each in found):
        told += f" Contexts with text of two stretches of what is shuffled: up to {straddling:.1%}."
    return [*_warning(found, names), told]


def _warning(found: Sequence[CommonText], names: Sequence[str]) -> list[str]:
    little = [each for each in found if each.share < LOW]
    if not little:
        return []
    rows = list(dict.fromkeys(names[each.row] for each in little))
    remedies = []
    if any(each.shuffled_contexts for each in little):
        remedies.append(f"packing.shuffle={SHUFFLED_TEXT} lets all tokenizers read the same text")
    below = [each.epochs for each in little if each.epochs < 1]
    if below:
        remedies.append(
            "a budget below an epoch takes other documents from each order: let corpus.sample keep what it reads, "
            f"about {max(below):.2g}"
        )
    remedy = f" ({'; '.join(remedies)})" if remedies else ""
    return [
        f"Warning: these rows were trained on other text than the one they are compared with, so they differ in that "
        f"too, and more seeds are needed to see anything{remedy}: {'; '.join(rows)}."
    ]
