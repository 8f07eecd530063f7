"""The papers' tables, ours beside theirs, in Markdown."""

import math
from collections.abc import Iterator, Sequence

from tables import table

from papers import published
from papers.measured import Measured, change
from paribus.reporting.data_tables import LENGTHS

ABSENT = ""


def lengths(measured: Measured) -> str:
    """LBPE, Table II: tokens by their length in characters, encoded by merge rank and longest-first."""
    before, after = measured.bpe.occurrences(), measured.lbpe.occurrences()
    head = ["characters", "tokens of the vocabulary", "merge rank", "longest-first", "points", "occurrences"]
    rows = []
    for name, size, old, new in zip(LENGTHS, measured.bpe.vocabulary(), before, after, strict=True):
        first, second = old / sum(before), new / sum(after)
        shares = [percent(first), percent(second), f"{100 * (second - first):+.3f}"]
        rows.append([name, f"{size:,}", *shares, rise(change(new, old))])
    all_tokens = ["all", f"{measured.size:,}", f"{sum(before):,}", f"{sum(after):,}", ABSENT]
    return table(head, [*rows, [*all_tokens, rise(change(sum(after), sum(before)))]])


def compression(measured: Sequence[Measured]) -> str:
    """LBPE, Table VI, and Scaffold-BPE, Table 6: bytes a token."""
    head = ["vocabulary", "BPE", "LBPE", "change", "Scaffold-BPE", "change", "Scaffold-BPE + LBPE", "change"]
    rows = []
    for one in measured:
        first, *others = (item.statistics.bytes_per_token for item in (one.bpe, one.lbpe, one.scaffold, one.both))
        changes = [cell for value in others for cell in (f"{value:.4f}", rise(change(value, first)))]
        rows.append([f"{one.size:,}", f"{first:.4f}", *changes])
    for size, (bpe, lbpe) in published.LBPE_BYTES_PER_TOKEN.items():
        paper = [f"{bpe:.4f}", f"{lbpe:.4f}", rise(change(lbpe, bpe))]
        rows.append([f"{size}K, Pile (LBPE)", *paper, *[ABSENT] * 4])
    for name, (bpe, scaffold) in published.BYTES_PER_TOKEN.items():
        paper = [f"{bpe:.3f}", ABSENT, ABSENT, f"{scaffold:.3f}", rise(change(scaffold, bpe))]
        rows.append([f"{name} (Scaffold-BPE)", *paper, ABSENT, ABSENT])
    return table(head, rows)


def scaffolds(measured: Sequence[Measured]) -> str:
    """Scaffold-BPE, section 1 and Figure 5: how many scaffold tokens there are, and how often they occur."""
    head = ["vocabulary", "scaffolds in BPE's", "share", "all scaffolds / N", "mean frequency", "that replaced", "rise"]
    rows = []
    for one in measured:
        old, new = one.replaced(), one.replacing()
        ever = one.scaffold.statistics.scaffold_share
        shares = [f"{old.tokens:,}", percent(old.share), percent(ever)]
        frequencies = [f"{old.mean_frequency:,.1f}", f"{new.mean_frequency:,.1f}"]
        rows.append([f"{one.size:,}", *shares, *frequencies, rise(change(new.mean_frequency, old.mean_frequency))])
    for size, risen in published.FREQUENCY_RISE.items():
        share = published.SCAFFOLD_SHARE.get(size)
        cells = [ABSENT, ABSENT if share is None else percent(share), ABSENT, ABSENT, ABSENT, rise(risen)]
        rows.append([f"{size}K, Pile (paper)", *cells])
    return table(head, rows)


def balance(measured: Sequence[Measured]) -> str:
    """Scaffold-BPE, Table 8 (equations 7 and 8): entropy H in bits, and redundancy R."""
    head = ["vocabulary", "H, BPE", "Scaffold-BPE", "change", "LBPE", "R, BPE", "Scaffold-BPE", "change", "LBPE"]
    rows = []
    for one in measured:
        entropies = [item.statistics.entropy for item in (one.bpe, one.scaffold, one.lbpe)]
        redundancies = [item.statistics.redundancy for item in (one.bpe, one.scaffold, one.lbpe)]
        rows.append([f"{one.size:,}", *_compared(entropies, 5), *_compared(redundancies, 5)])
    paper = [*_compared(published.ENTROPY, 4), ABSENT, *_compared(published.REDUNDANCY, 4), ABSENT]
    return table(head, [*rows, ["32K, Pile (paper)", *paper]])


def sections(measured: Sequence[Measured]) -> Iterator[tuple[str, str]]:
    """Titles and tables."""
    for one in measured:
        yield f"Token lengths in the text, {one.size:,} tokens (LBPE, Table II)", lengths(one)
    yield "Bytes per token (LBPE, Table VI; Scaffold-BPE, Table 6)", compression(measured)
    yield "Scaffold tokens and what replaced them (Scaffold-BPE, section 1 and Figure 5)", scaffolds(measured)
    yield "Entropy H and redundancy R (Scaffold-BPE, Table 8)", balance(measured)


def percent(share: float) -> str:
    """A share, with two digits after the point."""
    return f"{100 * share:.2f} %"


def rise(value: float) -> str:
    """A relative change with its sign; empty where there is none."""
    return ABSENT if math.isnan(value) else f"{100 * value:+.2f} %"


def _compared(values: Sequence[float], digits: int) -> list[str]:
    """The first two values and their difference, then the others."""
    first, second, *others = (f"{value:.{digits}f}" for value in values)
    return [first, second, f"{values[1] - values[0]:+.{digits}f}", *others]
