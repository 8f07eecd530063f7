"""The statistics of the LBPE and Scaffold-BPE papers on a corpus, ours beside theirs.

python benchmarks/paper_statistics.py --corpus FILE [--vocabulary 32000 64000 128000]

A corpus is a file that `corpus=files` reads. BPE and Scaffold-BPE are trained on all of it, with characters as units
and the pre-tokens of GPT-2 with single digits, and the same text is encoded: by merge rank and longest-first.

The papers' numbers are of the Pile, by thousands of tokens in the vocabulary. Scaffold-BPE: Lian et al., arXiv
2404.17808. LBPE: Lian et al., arXiv 2411.05504.
"""

import argparse
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from tables import table
from texts import documents

from paribus.reporting.data_tables import LENGTHS, counts_by_length
from paribus.tokenization import Tokenizer
from paribus.tokenization.settings import Algorithm, EncoderName
from paribus.tokenization.statistics import (
    CorpusStatistics,
    character_lengths,
    count_statistics,
    count_tokens,
    length_buckets,
    only_in,
    spellings,
)

LBPE_BYTES_PER_TOKEN = {32: (3.4318, 3.4381), 64: (3.5777, 3.5812), 128: (3.6817, 3.6824)}
"""BPE and LBPE (its Table VI)."""
BYTES_PER_TOKEN = {"Pile": (3.879, 3.889), "WMT En-De": (4.830, 4.861), "WMT En-Fr": (5.012, 5.042)}
"""BPE and Scaffold-BPE (its Table 6); the vocabulary is 32K on the Pile, and not stated for WMT."""
SCAFFOLD_SHARE = {32: 0.0607}
"""Of the tokens of the vocabulary of BPE, those that Scaffold-BPE marks (section 1)."""
FREQUENCY_RISE = {32: 0.7640, 64: 0.6858, 128: 0.5899}
"""Mean frequency of the tokens that replace scaffold tokens over that of the scaffold tokens, less one (Figure 5)."""
ENTROPY, REDUNDANCY = (11.2382, 11.2443), (0.2491, 0.2487)
"""BPE and Scaffold-BPE, in bits, at 32K (Table 8); both agree with each other for |V| = 32,000."""


@dataclass(frozen=True, eq=False)
class Encoded:
    """A text in the tokens of one tokenizer."""

    tokenizer: Tokenizer
    counts: npt.NDArray[np.int64]
    """Occurrences by id, shape (vocab_size,)."""
    statistics: CorpusStatistics

    @property
    def occurrences(self) -> list[int]:
        """Tokens in the text by `LENGTHS`."""
        return counts_by_length(self.statistics.token_lengths)


@dataclass(frozen=True, eq=False)
class Methods:
    """The same text under every method, at one vocabulary size."""

    bpe: Encoded
    lbpe: Encoded
    """The vocabulary of BPE, encoded longest-first."""
    scaffold: Encoded
    both: Encoded
    """The vocabulary of Scaffold-BPE, scaffolds out, encoded longest-first."""

    @property
    def size(self) -> str:
        """Tokens that BPE's vocabulary has; fewer than asked for where no pair was left."""
        return f"{self.bpe.tokenizer.vocab_size:,}"


def main(corpus: Path, sizes: Sequence[int]) -> None:
    """Print the tables."""
    texts = list(documents(corpus))
    measured = [methods(texts, size) for size in sizes]
    sections = [
        *((f"Token lengths in the text, {one.size} tokens (LBPE, Table II)", lengths(one)) for one in measured),
        ("Bytes per token (LBPE, Table VI; Scaffold-BPE, Table 6)", compression(measured)),
        ("Scaffold tokens and what replaced them (Scaffold-BPE, section 1 and Figure 5)", scaffolds(measured)),
        ("Entropy H and redundancy R (Scaffold-BPE, Table 8)", balance(measured)),
    ]
    size = sum(len(text.encode("utf-8")) for text in texts)
    sys.stdout.write(f"## {corpus.name.partition('.')[0]}: {len(texts):,} documents, {size:,} bytes\n\n")
    sys.stdout.write("\n".join(f"### {title}\n\n{shown}" for title, shown in sections))


def methods(texts: Sequence[str], size: int) -> Methods:
    """Train and encode as the papers do: characters, GPT-2's pre-tokens with single digits."""
    algorithms: tuple[Algorithm, ...] = ("bpe", "scaffold_bpe")
    encoders: tuple[EncoderName, ...] = ("merge_rank", "longest_first")
    found = []
    for algorithm in algorithms:
        trained = Tokenizer.train(
            texts, algorithm=algorithm, vocab_size=size, unit="character", pretokenizer="gpt2_digits"
        )
        for encoder in encoders:
            tokenizer = trained.with_encoder(encoder)
            counted = count_tokens(tokenizer, texts)
            found.append(Encoded(tokenizer, counted.ids, count_statistics(tokenizer, counted)))
    return Methods(*found)


def lengths(one: Methods) -> str:
    """LBPE, Table II: tokens by their length in characters, encoded by merge rank and longest-first."""
    vocabulary = one.bpe.tokenizer.vocabulary
    spelled = character_lengths([vocabulary.columns.spellings[rank] for rank in vocabulary.rank_of_id.tolist()])
    tokens = counts_by_length(length_buckets(spelled, np.ones_like(spelled)))
    before, after = one.bpe.occurrences, one.lbpe.occurrences
    rows = []
    for name, size, old, new in zip(LENGTHS, tokens, before, after, strict=True):
        first, second = old / sum(before), new / sum(after)
        rows.append(
            [name, f"{size:,}", percent(first), percent(second), f"{100 * (second - first):+.3f}", rise(new, old)]
        )
    whole = ["all", one.size, f"{sum(before):,}", f"{sum(after):,}", "", rise(sum(after), sum(before))]
    head = ["characters", "tokens of the vocabulary", "merge rank", "longest-first", "points", "occurrences"]
    return table(head, [*rows, whole])


def compression(measured: Sequence[Methods]) -> str:
    """LBPE, Table VI, and Scaffold-BPE, Table 6: bytes a token."""
    rows = []
    for one in measured:
        first, *others = (item.statistics.bytes_per_token for item in (one.bpe, one.lbpe, one.scaffold, one.both))
        changes = [cell for value in others for cell in (f"{value:.4f}", rise(value, first))]
        rows.append([one.size, f"{first:.4f}", *changes])
    for size, (bpe, lbpe) in LBPE_BYTES_PER_TOKEN.items():
        rows.append([f"{size}K, Pile (LBPE)", f"{bpe:.4f}", f"{lbpe:.4f}", rise(lbpe, bpe), *[""] * 4])
    for name, (bpe, scaffold) in BYTES_PER_TOKEN.items():
        rows.append([f"{name} (Scaffold-BPE)", f"{bpe:.3f}", "", "", f"{scaffold:.3f}", rise(scaffold, bpe), "", ""])
    head = ["vocabulary", "BPE", "LBPE", "change", "Scaffold-BPE", "change", "Scaffold-BPE + LBPE", "change"]
    return table(head, rows)


def scaffolds(measured: Sequence[Methods]) -> str:
    """Scaffold-BPE, section 1 and Figure 5: how many scaffold tokens there are, and how often they occur."""
    rows = []
    for one in measured:
        bpe, scaffold = spellings(one.bpe.tokenizer), spellings(one.scaffold.tokenizer)
        old, new = only_in(bpe, scaffold, one.bpe.counts), only_in(scaffold, bpe, one.scaffold.counts)
        shares = [f"{old.tokens:,}", percent(old.share), percent(one.scaffold.statistics.scaffold_share)]
        frequencies = [f"{old.mean_frequency:,.1f}", f"{new.mean_frequency:,.1f}"]
        rows.append([one.size, *shares, *frequencies, rise(new.mean_frequency, old.mean_frequency)])
    for size, risen in FREQUENCY_RISE.items():
        share = percent(SCAFFOLD_SHARE[size]) if size in SCAFFOLD_SHARE else ""
        rows.append([f"{size}K, Pile (paper)", "", share, "", "", "", rise(1 + risen, 1)])
    head = ["vocabulary", "scaffolds in BPE's", "share", "all scaffolds / N", "mean frequency", "that replaced", "rise"]
    return table(head, rows)


def balance(measured: Sequence[Methods]) -> str:
    """Scaffold-BPE, Table 8 (equations 7 and 8): entropy H in bits, and redundancy R."""
    rows = []
    for one in measured:
        statistics = [item.statistics for item in (one.bpe, one.scaffold, one.lbpe)]
        entropies, redundancies = [each.entropy for each in statistics], [each.redundancy for each in statistics]
        rows.append([one.size, *compared(entropies, 5), *compared(redundancies, 5)])
    rows.append(["32K, Pile (paper)", *compared(ENTROPY, 4), "", *compared(REDUNDANCY, 4), ""])
    head = ["vocabulary", "H, BPE", "Scaffold-BPE", "change", "LBPE", "R, BPE", "Scaffold-BPE", "change", "LBPE"]
    return table(head, rows)


def compared(values: Sequence[float], digits: int) -> list[str]:
    """The first two values and their difference, then the others."""
    first, second, *others = (f"{value:.{digits}f}" for value in values)
    return [first, second, f"{values[1] - values[0]:+.{digits}f}", *others]


def percent(share: float) -> str:
    """A share, with two digits after the point."""
    return f"{100 * share:.2f} %"


def rise(after: float, before: float) -> str:
    """A relative change with its sign; empty where there is none."""
    change = after / before - 1 if before else math.nan
    return "" if math.isnan(change) else f"{100 * change:+.2f} %"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--vocabulary", type=int, nargs="+", default=[32_000], help="tokens; may be several sizes")
    given = parser.parse_args()
    main(given.corpus, given.vocabulary)
