"""The text that trainings of one seed have in common, whose difference is else one of texts too."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from paribus.config.groups.packing import SHUFFLED_TEXT
from paribus.config.units import rounded_up_size
from paribus.reporting.table.frame import RunRecord

Readings = npt.NDArray[np.int64]
_ORDER = ("ordering", "duplicates", "embedder", "neighbours")
LOW = 0.9
"""Share of common text below which a difference is not called one of the factor alone."""
NEAR = 5
ENOUGH = 1.1
"""A sample of up to so many times the text that is read needs no smaller one."""


@dataclass(frozen=True)
class CommonText:
    """Training text that two runs of one seed share, of two rows that are compared."""

    row: int
    base: int
    """Places of the two rows in the table, the later one first."""
    seed: int
    share: float
    """Of the text that the one that read less has read, each reading of a byte counted."""
    share_of_more: float
    """The same, of the text of the other."""
    by_step: tuple[float, float] | None
    """Shares of the bytes that both read which they first read at one step, and within `NEAR`; None where unknown."""
    shuffled_contexts: bool
    """Whether one of them shuffles contexts instead of text, and could do the other."""
    other_stretches: bool
    """Whether the stretches of text that they shuffle differ in length."""
    other_order: bool
    """Whether their documents are in different orders."""
    repeats: bool
    """Whether one of these repeats documents."""
    sampled: bool
    """Whether `corpus.sample` has chosen no more text than they read."""
    best_fit: bool
    epochs: float
    """Of the one that read less of its corpus."""
    text_bytes: int
    """What both read at least."""
    straddling: float
    """Share of contexts with text of two stretches, which is not shuffled as one; of the one that has more."""


def common_text(row: int, runs: Sequence[RunRecord], base: int, baseline: Sequence[RunRecord]) -> list[CommonText]:
    """For every seed that a row and the one it is compared with share, where the records say what was read."""
    found, others = [], {run.seed: run for run in baseline}
    for run in runs:
        if run.seed in others and (shares := _shares(run, others[run.seed])) is not None:
            found.append(_described((row, base), run, others[run.seed], shares))
    return found


def _shares(run: RunRecord, other: RunRecord) -> tuple[float, float] | None:
    """None where one of them does not say what it read, or they read different corpora."""
    digests = {run.corpus.get("digest"), other.corpus.get("digest")}
    if run.readings is None or other.readings is None or len(digests) > 1:
        return None
    one, two = (np.load(path, allow_pickle=False).astype(np.int64) for path in (run.readings, other.readings))
    return common_shares(one, two) if len(one) == len(two) else None


def common_shares(one: Readings, other: Readings) -> tuple[float, float]:
    """Shares of the text of the training that read less, and of the other's, which both read.

    Both (places,) say how often each of a sample of the corpus' bytes was read.
    """
    common, less, more = int(np.minimum(one, other).sum()), *sorted((int(one.sum()), int(other.sum())))
    return (common / less, common / more) if less else (0.0, 0.0)


def _described(places: tuple[int, int], run: RunRecord, other: RunRecord, shares: tuple[float, float]) -> CommonText:
    both = (run, other)
    return CommonText(
        row=places[0],
        base=places[1],
        seed=run.seed,
        share=shares[0],
        share_of_more=shares[1],
        by_step=_by_step(run.steps_read, other.steps_read),
        shuffled_contexts=any(
            packing.get("shuffle") != SHUFFLED_TEXT and packing.get("kind") != "pair" for packing in map(_packing, both)
        ),
        other_stretches=_stretch(run) != _stretch(other),
        other_order=any(run.config.get(part) != other.config.get(part) for part in _ORDER) or _order_seeds_differ(both),
        repeats=any((run.config.get("ordering") or {}).get("kind") == "nn" for run in both),
        sampled=all(_sampled(run) for run in both),
        best_fit=any(_packing(each).get("kind") == "best_fit" for each in both),
        straddling=max(float(each.training.get("straddling") or 0.0) for each in both),
        epochs=min(float(each.training.get("epochs") or 0.0) for each in both),
        text_bytes=min(int(each.training["text_bytes"]) for each in both),
    )


def _by_step(one: Readings | None, other: Readings | None) -> tuple[float, float] | None:
    if one is None or other is None or not (both := (one >= 0) & (other >= 0)).any():
        return None
    apart = np.abs(one - other)[both]
    return float((apart == 0).mean()), float((apart <= NEAR).mean())


def _order_seeds_differ(runs: Sequence[RunRecord]) -> bool:
    seeds = [(run.config.get("seeds") or {}).get("order") for run in runs]
    return len(set(seeds)) > 1


def _packing(run: RunRecord) -> Mapping[str, Any]:
    return run.config.get("packing") or {}


def _stretch(run: RunRecord) -> tuple[Any, ...]:
    """What decides the length of a run's stretches: that which is given, else the size of a context."""
    given, model = _packing(run).get("stretch_bytes"), run.config.get("model") or {}
    return (given,) if given else (model.get("context_length"), model.get("context_bytes"))


def _sampled(run: RunRecord) -> bool:
    sample = (run.config.get("corpus") or {}).get("sample")
    return isinstance(sample, int) and sample <= ENOUGH * int(run.training["text_bytes"])


def in_words(found: Sequence[CommonText]) -> list[str]:
    """For the proof under a table: how much is common."""
    if not found:
        return []
    told = (
        "Training text that two rows which are compared share at one seed: "
        f"{_range([each.share for each in found])} of what the one that read less has read, "
        f"{_range([each.share_of_more for each in found])} of what the other has."
    )
    if known := [each.by_step for each in found if each.by_step]:
        same, near = map(_range, zip(*known, strict=True))
        told += f" Of it both first read {same} at the same step, and {near} within {NEAR} steps."
    if straddling := max(each.straddling for each in found):
        told += f" Contexts with text of two stretches of what is shuffled: up to {straddling:.1%}."
    return [told]


def _range(shares: Sequence[float]) -> str:
    low, high = f"{min(shares):.1%}", f"{max(shares):.1%}"
    return low if low == high else f"{low} to {high}"


def remedies(found: Sequence[CommonText]) -> list[str]:
    """Overrides that let the rows of `found` read the same text."""
    if not found:
        return []
    text = rounded_up_size(max(each.text_bytes for each in found))
    return list(dict.fromkeys(remedy for each in found if (remedy := _remedy(each, text))))


def _remedy(each: CommonText, text: str) -> str | None:
    """What would let both read the same `text` (its size); None where nothing is known."""
    if each.shuffled_contexts:
        return f"packing.shuffle={SHUFFLED_TEXT} lets all tokenizers read the same text"
    if each.other_stretches:
        return (
            "where contexts differ in length, so do the stretches of text that are shuffled: give all one "
            "packing.stretch_bytes"
        )
    if each.other_order:
        return _remedy_of_orders(each, text)
    if each.epochs >= 1:
        return None
    if each.best_fit:
        return "with best_fit a context holds documents of a whole window: packing=concatenate has more in common"
    return "the budget reads only a few contexts of each stretch of text: a larger one has more in common"


def _remedy_of_orders(each: CommonText, text: str) -> str | None:
    if each.repeats:
        return "ordering=nn repeats documents, and so reads fewer of them"
    if each.epochs >= 1 or each.sampled:
        return None
    return (
        f"a budget below an epoch takes other documents from each order: corpus.sample={text} chooses them before they "
        "are ordered"
    )
