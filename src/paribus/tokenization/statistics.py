"""Intrinsic statistics of a tokenizer on texts.

All of them follow from how often each id occurs, so an encoded corpus need not be encoded again. Words are separated by
ASCII whitespace, which is exact on bytes whatever the script.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice

import numpy as np
import numpy.typing as npt

from paribus.tokenization.arguments import stream_of_texts
from paribus.tokenization.encoded_corpus import EncodedCorpus
from paribus.tokenization.tokenizer import Tokenizer
from paribus.tokenization.vocabulary import FALLBACK, SPECIAL, UNKNOWN

RENYI_ORDER = 2.5
"""Order at which efficiency goes best with translation quality (Zouhar et al. 2023, *Tokenization and the Noiseless
Channel*)."""
BUCKET = 3
"""Characters a bucket of the papers' length tables: 1-3, 4-6, ..."""
_BATCH = 1024
_CHUNK = 1 << 22
"""Ids of a corpus that are counted at once."""
_CURVE_POINTS = 64
_INSIDE_CHARACTER = bytes(range(0x80, 0xC0))
"""Bytes of UTF-8 that do not begin a character."""

Counts = npt.NDArray[np.int64]
Spellings = dict[tuple[bytes, bool], tuple[int, ...]]
"""Ids of a vocabulary's tokens in use by spelling: their bytes, and True if they continue a word.

A vocabulary with fallback bytes may spell an ASCII character twice: as a unit, and as a byte.
"""


@dataclass(frozen=True)
class TokenCounts:
    """How often a tokenizer gave each id on a set of texts."""

    ids: Counts
    """Occurrences by id, shape (vocab_size,)."""
    texts: int
    bytes: int
    """UTF-8 bytes of the texts."""
    words: int


@dataclass(frozen=True)
class CorpusStatistics:
    """Numbers of a tokenizer on a set of texts, without special tokens."""

    texts: int
    tokens: int
    bytes: int
    """UTF-8 bytes of the texts."""
    words: int
    """Pieces of text between ASCII whitespace."""
    bytes_per_token: float
    tokens_per_word: float
    entropy: float
    """H = -sum p log2 p over the tokens' relative frequencies, in bits (Scaffold-BPE, equation 7)."""
    redundancy: float
    """1 - H / log2 |V| (Scaffold-BPE, equation 8); |V| counts every token that a model has, special ones too."""
    renyi_efficiency: float
    """H_2.5 / log2 |V|, where H_a = log2(sum p^a) / (1 - a) (Zouhar et al. 2023)."""
    mean_token_length: float
    """Characters a token in the texts; a token that is a part of a character has length 1."""
    token_lengths: dict[str, int]
    """Tokens in the texts by length in characters, in the papers' buckets: `1-3`, `4-6`, ..."""
    frequency_by_rank: tuple[tuple[int, int], ...]
    """(rank from 1, occurrences) of tokens by falling frequency, at up to 127 ranks."""
    used_tokens: int
    """Distinct tokens that occur."""
    unused_tokens: int
    """Tokens of the vocabulary, special ones out, that never occur."""
    scaffold_share: float
    """Scaffold tokens for each token of the vocabulary; 0 for other algorithms than Scaffold-BPE."""

    def as_json(self) -> str:
        """JSON with a line for each statistic."""
        lines = (f"  {json.dumps(name)}: {json.dumps(value)}" for name, value in asdict(self).items())
        return "{\n" + ",\n".join(lines) + "\n}"


def corpus_statistics(tok: Tokenizer, texts: Iterable[str]) -> CorpusStatistics:
    """Encode `texts`, which may be a stream, and count."""
    return count_statistics(tok, count_tokens(tok, texts))


def count_tokens(tok: Tokenizer, texts: Iterable[str]) -> TokenCounts:
    """Encode `texts` and count their ids."""
    ids = np.zeros(tok.vocab_size, dtype=np.int64)
    number = size = words = 0
    stream = stream_of_texts(texts, "corpus_statistics")
    while batch := list(islice(stream, _BATCH)):
        ids += np.bincount(tok.encode_batch(batch)[0], minlength=tok.vocab_size)
        encoded = [text.encode("utf-8") for text in batch]
        number += len(batch)
        size += sum(map(len, encoded))
        words += sum(len(text.split()) for text in encoded)
    return TokenCounts(ids, number, size, words)


def count_ids(corpus: EncodedCorpus, vocab_size: int, limit: int) -> Counts:
    """Occurrences by id among the first `limit` ids of an encoded corpus, shape (vocab_size,)."""
    counts = np.zeros(vocab_size, dtype=np.int64)
    end = min(limit, corpus.tokens)
    for start in range(0, end, _CHUNK):
        chunk = np.asarray(corpus.ids[start : min(start + _CHUNK, end)], dtype=np.int64)
        counts += np.bincount(chunk, minlength=vocab_size)
    return counts


def count_statistics(tok: Tokenizer, counted: TokenCounts) -> CorpusStatistics:
    """The statistics that counts of ids give."""
    columns, ranks = tok.vocabulary.columns, tok.vocabulary.rank_of_id
    ordinary = ordinary_tokens(tok)
    counts = np.where(columns.kinds[ranks] == SPECIAL, 0, counted.ids)
    lengths = character_lengths([columns.spellings[rank] for rank in ranks.tolist()])
    tokens = int(counts.sum())
    spelled = np.where(ordinary, counts, 0)
    widest = float(np.log2(max(tok.vocab_size, 2)))
    entropy = renyi_entropy(counts, 1.0)
    return CorpusStatistics(
        texts=counted.texts,
        tokens=tokens,
        bytes=counted.bytes,
        words=counted.words,
        bytes_per_token=counted.bytes / tokens if tokens else 0.0,
        tokens_per_word=tokens / counted.words if counted.words else 0.0,
        entropy=entropy,
        redundancy=1 - entropy / widest,
        renyi_efficiency=renyi_entropy(counts, RENYI_ORDER) / widest,
        mean_token_length=float(spelled @ lengths) / float(max(spelled.sum(), 1)),
        token_lengths=length_buckets(lengths, spelled),
        frequency_by_rank=rank_curve(counts),
        used_tokens=int(np.count_nonzero(counts)),
        unused_tokens=int(np.count_nonzero(ordinary & (counts == 0))),
        scaffold_share=int(np.count_nonzero(columns.ids < 0)) / tok.vocab_size,
    )


def ordinary_tokens(tok: Tokenizer) -> npt.NDArray[np.bool_]:
    """Mask by id, shape (vocab_size,), of tokens of text, neither special nor the unknown one."""
    columns = tok.vocabulary.columns
    ordinary: npt.NDArray[np.bool_] = ~np.isin(columns.kinds[tok.vocabulary.rank_of_id], (SPECIAL, UNKNOWN))
    return ordinary


def renyi_entropy(counts: Counts, order: float) -> float:
    """Entropy of relative frequencies in bits: Shannon's at order 1, else Renyi's log2(sum p^a) / (1 - a)."""
    present = counts[counts > 0]
    if not len(present):
        return 0.0
    shares = present / present.sum()
    if order == 1:
        return max(0.0, float(-(shares * np.log2(shares)).sum()))
    return max(0.0, float(np.log2((shares**order).sum()) / (1 - order)))


def character_lengths(spellings: list[bytes]) -> Counts:
    """Characters that begin in each spelling, at least 1, shape (n,)."""
    lengths = (len(spelling.translate(None, _INSIDE_CHARACTER)) for spelling in spellings)
    return np.maximum(np.fromiter(lengths, dtype=np.int64, count=len(spellings)), 1)


def length_buckets(lengths: Counts, counts: Counts) -> dict[str, int]:
    """Sums of `counts` by length in the papers' buckets, up to the longest that occurs."""
    sums: dict[int, int] = {}
    for length in np.unique(lengths[counts > 0]).tolist():
        bucket = (length - 1) // BUCKET
        sums[bucket] = sums.get(bucket, 0) + int(counts[lengths == length].sum())
    return {f"{n * BUCKET + 1}-{(n + 1) * BUCKET}": sums.get(n, 0) for n in range(max(sums, default=-1) + 1)}


def rank_curve(counts: Counts) -> tuple[tuple[int, int], ...]:
    """(rank, count) of counts by falling size at up to 127 ranks: half evenly spaced, half so on a log scale."""
    ordered = np.sort(counts[counts > 0])[::-1]
    if not len(ordered):
        return ()
    spaced = [space(1, len(ordered), _CURVE_POINTS) for space in (np.geomspace, np.linspace)]
    ranks = np.unique(np.round(np.concatenate(spaced)).astype(np.int64))
    return tuple(zip(ranks.tolist(), ordered[ranks - 1].tolist(), strict=True))


# Tokens that two vocabularies share, and how often the tokens are used that only one of them has.
#
# BPE has scaffold tokens; Scaffold-BPE of the same size has other tokens in their place (Scaffold-BPE, section 1 and
# Figure 5).
@dataclass(frozen=True)
class TokenGroup:
    """Some tokens of a vocabulary."""

    tokens: int
    share: float
    """Share of the vocabulary's tokens."""
    mean_frequency: float
    """Occurrences a token in the texts that were counted; NaN for an empty group."""


def overlap_shares(spelled: Sequence[Spellings]) -> list[list[float]]:
    """Share of the tokens of vocabulary i that vocabulary j has too, at [i][j]."""
    return [
        [
            sum(len(ids) for spelling, ids in first.items() if spelling in second) / max(tokens_of(first), 1)
            for second in spelled
        ]
        for first in spelled
    ]


def tokens_of(spelled: Spellings) -> int:
    """Number of tokens."""
    return sum(map(len, spelled.values()))


def only_in(mine: Spellings, theirs: Spellings, counts: npt.NDArray[np.int64]) -> TokenGroup:
    """The tokens of one vocabulary that another lacks, with their `counts` by id in texts that the first encoded."""
    ids = [token_id for spelling, same in mine.items() if spelling not in theirs for token_id in same]
    return TokenGroup(
        tokens=len(ids),
        share=len(ids) / max(tokens_of(mine), 1),
        mean_frequency=float(counts[ids].mean()) if ids else float("nan"),
    )


def spellings(tok: Tokenizer) -> Spellings:
    """Ids by spelling, ascending; without special tokens and the unknown token."""
    columns, ranks = tok.vocabulary.columns, tok.vocabulary.rank_of_id.tolist()
    by_spelling: Spellings = {}
    for token_id, rank in enumerate(ranks):
        if columns.kinds[rank] not in (SPECIAL, UNKNOWN):
            spelling = (columns.spellings[rank], bool(columns.continuations[rank]))
            by_spelling[spelling] = (*by_spelling.get(spelling, ()), token_id)
    return by_spelling


# Tokens inside longer tokens: how often a token's text is a token by itself (Scaffold-BPE, Figure 1).
#
# A token whose text mostly occurs inside longer ones, as `zona` in `Arizona`, is a scaffold token in that paper.
@dataclass(frozen=True)
class Containing:
    """A token that contains another, or is that token."""

    token: bytes
    occurrences: int
    share: float
    """Share of the occurrences of all tokens that contain it."""


def own_shares(tok: Tokenizer, counts: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Occurrences of a token over those of all tokens that contain it, itself included, by id, shape (vocab_size,).

    `counts` are occurrences by id, shape (vocab_size,). NaN where none of them occurs, and for special tokens. A token
    counts once for each of its parts, however often it has that part. A fallback byte is part of no other token.
    """
    fallback = tok.vocabulary.columns.kinds[tok.vocabulary.rank_of_id] == FALLBACK
    spelled: dict[bytes, list[int]] = {}
    for (spelling, _), same in spellings(tok).items():
        if ids := [token_id for token_id in same if not fallback[token_id]]:
            spelled.setdefault(spelling, []).extend(ids)
    shares = np.where(fallback & (counts > 0), 1.0, np.nan)
    totals = dict.fromkeys(spelled, 0)
    for spelling, ids in spelled.items():
        occurrences = int(counts[ids].sum())
        for part in _parts(spelling) if occurrences else ():
            if part in totals:
                totals[part] += occurrences
    for spelling, ids in spelled.items():
        if totals[spelling]:
            shares[ids] = int(counts[ids].sum()) / totals[spelling]
    return shares


def containing(tok: Tokenizer, counts: npt.NDArray[np.int64], part: bytes) -> list[Containing]:
    """The tokens in use that contain `part`, the most frequent first; `counts` as in `own_shares`."""
    occurrences: dict[bytes, int] = {}
    for (spelling, _), ids in spellings(tok).items():
        if part in spelling:
            occurrences[spelling] = occurrences.get(spelling, 0) + int(counts[list(ids)].sum())
    total = max(sum(occurrences.values()), 1)
    ordered: Sequence[tuple[bytes, int]] = sorted(occurrences.items(), key=lambda item: (-item[1], item[0]))
    return [Containing(spelling, count, count / total) for spelling, count in ordered]


def _parts(spelling: bytes) -> Iterator[bytes]:
    """Every distinct run of bytes of a token."""
    yield from {spelling[start:end] for start in range(len(spelling)) for end in range(start + 1, len(spelling) + 1)}
