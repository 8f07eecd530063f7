"""What the papers claim, and whether it holds on the text that was measured."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tables import table

from papers import published
from papers.measured import Measured, change
from papers.tables import percent, rise

LONG = 3
"""Where the lengths of ten and more characters begin in `LENGTHS`."""
SIGNS = {1: "+", -1: "-"}


@dataclass(frozen=True)
class Claim:
    """A quantity whose sign a paper states, and what it is here."""

    what: str
    source: str
    sign: int
    """1 where the paper says that it rises, -1 where it falls."""
    theirs: str
    """The paper's size; empty where it is not known."""
    ours: float
    shown: str

    @property
    def verdict(self) -> str:
        """Whether ours has the sign of theirs; empty where ours is nothing."""
        if math.isnan(self.ours):
            return ""
        return "holds" if self.ours * self.sign > 0 else "**does not hold**"


def claims(one: Measured) -> Iterator[Claim]:
    """The claims at one vocabulary size, always in the same order."""
    yield from _longest_first(one)
    yield from _replacement(one)
    yield from _balance(one)


def claims_table(measured: Sequence[Measured]) -> str:
    """Every claim, with a column for each size."""
    head = ["claim", "source", "sign", "size in the paper", *(f"here, {one.size:,}" for one in measured)]
    rows = []
    for same in zip(*map(claims, measured), strict=True):
        first = same[0]
        here = [", ".join(filter(None, [claim.shown, claim.verdict])) for claim in same]
        rows.append([first.what, first.source, SIGNS[first.sign], first.theirs, *here])
    return table(head, rows)


def short_over_long(occurrences: Sequence[int], tokens: Sequence[int]) -> float:
    """Occurrences a token among those of 1-3 characters over the same among those of 10 and more; else NaN."""
    if not tokens[0] or not sum(occurrences[LONG:]):
        return math.nan
    return (occurrences[0] / tokens[0]) / (sum(occurrences[LONG:]) / sum(tokens[LONG:]))


def _longest_first(one: Measured) -> Iterator[Claim]:
    before, after = one.bpe.statistics, one.lbpe.statistics
    risen = change(after.mean_token_length, before.mean_token_length)
    yield Claim("longest-first: characters a token", "LBPE, abstract", 1, "", risen, rise(risen))
    gaps = [short_over_long(item.occurrences(), item.vocabulary()) for item in (one.bpe, one.lbpe)]
    what = "longest-first: mean frequency of tokens of 1-3 characters over that of 10 and more"
    shown = f"{gaps[0]:,.2f} to {gaps[1]:,.2f}"
    yield Claim(what, "LBPE, abstract", -1, "", change(gaps[1], gaps[0]), shown)
    counts = zip(published.LENGTH_CHANGE.items(), one.bpe.occurrences(), one.lbpe.occurrences(), strict=False)
    for (length, changed), old, new in counts:
        what, ours = f"longest-first: tokens of {length} characters in the text", change(new, old)
        sign, printed = (1 if changed > 0 else -1), _by_size({32: rise(changed)})
        yield Claim(what, "LBPE, Table II", sign, printed, ours, rise(ours))
    packed = change(after.bytes_per_token, before.bytes_per_token)
    theirs = _by_size({size: rise(change(lbpe, bpe)) for size, (bpe, lbpe) in published.LBPE_BYTES_PER_TOKEN.items()})
    yield Claim("longest-first: bytes per token", "LBPE, Table VI", 1, theirs, packed, rise(packed))


def _replacement(one: Measured) -> Iterator[Claim]:
    old, new = one.replaced(), one.replacing()
    theirs = _by_size({size: percent(share) for size, share in published.SCAFFOLD_SHARE.items()})
    what = "scaffold tokens in the vocabulary of BPE"
    yield Claim(what, "Scaffold-BPE, section 1", 1, theirs, old.share, percent(old.share))
    theirs = _by_size({size: rise(risen) for size, risen in published.FREQUENCY_RISE.items()})
    risen = change(new.mean_frequency, old.mean_frequency)
    what = "mean frequency of what replaces them over theirs"
    yield Claim(what, "Scaffold-BPE, Figure 5", 1, theirs, risen, rise(risen))


def _balance(one: Measured) -> Iterator[Claim]:
    before, after = one.bpe.statistics, one.scaffold.statistics
    packed = change(after.bytes_per_token, before.bytes_per_token)
    bpe, scaffold = published.BYTES_PER_TOKEN["Pile"]
    theirs = _by_size({32: rise(change(scaffold, bpe))})
    yield Claim("Scaffold-BPE: bytes per token", "Scaffold-BPE, Table 6", 1, theirs, packed, rise(packed))
    balances = [
        ("entropy, bits", 1, published.ENTROPY, after.entropy - before.entropy),
        ("redundancy", -1, published.REDUNDANCY, after.redundancy - before.redundancy),
    ]
    for name, sign, (bpe, scaffold), ours in balances:
        theirs = _by_size({32: f"{scaffold - bpe:+.4f}"})
        yield Claim(f"Scaffold-BPE: {name}", "Scaffold-BPE, Table 8", sign, theirs, ours, f"{ours:+.5f}")


def _by_size(values: dict[int, str]) -> str:
    return ", ".join(f"{value} ({size}K)" for size, value in values.items())
