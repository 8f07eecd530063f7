"""Spans of characters that belong together, as pre-tokens.

*Entropy-Driven Pre-Tokenization for Byte-Pair Encoding*, arXiv 2506.15889: candidate n-grams are scored by pointwise
mutual information and branching entropy; a text is cut from the left, and at each place the best candidate that begins
there is the piece.
"""

import dataclasses
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import regex

from paribus.config.groups.tokenization import SpansPretokenizer
from paribus.errors import ConfigurationError, DataError
from paribus.tokenization.arguments import stream_of_texts
from paribus.tokenization.pretokenize import check_state

KIND, FORMAT = "spans", 1
Reals = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Codes = npt.NDArray[np.uint32]
CODE_BITS = 21
"""Bits that hold every code."""
_MASK = (1 << CODE_BITS) - 1
_DECIMALS = 9
"""Scores are rounded so that the last bits of a logarithm, which differ between processors, decide nothing."""
_WINDOW = 2**20
LINE_END = 0x110000
"""Code of every line end and of the ends of a text; no codepoint."""
OTHER, IDEOGRAPH, LETTER, DIGIT = range(4)
LINE_BREAKS = "\n\v\f\r\x1c\x1d\x1e\x85\u2028\u2029"
"""Characters at which `str.splitlines` breaks."""
_LINE_BREAK_CODES = np.array([ord(character) for character in LINE_BREAKS], dtype=np.uint32)
_CLASSES = (
    (IDEOGRAPH, regex.compile(r"[\p{Han}&&[\p{L}\p{N}]]", flags=regex.V1)),
    (DIGIT, regex.compile(r"\p{N}")),
    (LETTER, regex.compile(r"[\p{L}\p{M}]")),
)
_IN_MEMORY = 256 * 2**20
"""Bytes of codes, four per character, beyond which they go to a file."""
_BATCH = 256
"""Texts that are encoded at once."""


# Candidate spans of a corpus: n-grams with their counts, mutual information and branching entropies.
#
# *Entropy-Driven Pre-Tokenization for Byte-Pair Encoding*, arXiv 2506.15889. Counts are exact, overlapping occurrences
# included. `min_count=2` is the smallest that says anything: an n-gram seen once has no entropy on either side, and the
# largest pointwise mutual information of all. A longer n-gram is counted only where both (n - 1)-grams in it are
# frequent, so that memory follows the frequent n-grams and never the length of the corpus.
@dataclass(frozen=True)
class Ngrams:
    """The candidates of one length, in the order of their keys; arrays of shape (n,)."""

    length: int
    keys: Integers
    """Index of the candidate without its last character (for pairs, the first character's code), then the last
    character's code in the low `CODE_BITS`; ascending."""
    codes: Codes
    """Codepoints of the candidates, shape (n, length)."""
    counts: Integers
    information: Reals
    """The smallest pointwise mutual information (bits) of two adjacent characters."""
    left_entropy: Reals
    right_entropy: Reals
    """Shannon entropy (bits) of the characters before and after; a line end is a symbol like any other."""

    def scores(self, settings: SpansPretokenizer) -> Reals:
        """min PMI + lambda * min(H_left, H_right), or the second term without lambda."""
        scores: Reals = np.minimum(self.left_entropy, self.right_entropy)
        if not settings.entropy_only:
            scores = self.information + settings.entropy_weight * scores
        return np.round(scores, _DECIMALS)


class SpanPretokenizer:
    """Cuts text into `spans` and single characters. Made by `train`, `from_ngrams` or `from_state`; never changes.

    `spans` are the candidates above `settings.least_score` that no candidate at their beginning outscores. As every
    beginning of a candidate is a candidate, the best candidate at a place is therefore the longest of these spans there
    (of equal scores, the longest is taken). Raises ConfigurationError for settings out of range, and for a span that is
    too short or too long.
    """

    def __init__(self, settings: SpansPretokenizer, spans: Iterable[str]) -> None:
        from paribus.config.validate import build_group  # takes 30 ms, and encoding has no spans

        build_group(SpansPretokenizer, dataclasses.asdict(settings), "pretokenizer.")
        if settings.max_length < 2:
            raise ConfigurationError(f"pretokenizer.max_length: {settings.max_length}, and a span has 2 characters")
        self.settings = settings
        self.spans = frozenset(spans)
        """The spans that can be pieces, of 2 to `settings.max_length` characters."""
        self._lengths = _lengths(self.spans)
        wrong = next((span for span in self.spans if not 2 <= len(span) <= settings.max_length), None)
        if wrong is not None:
            raise ConfigurationError(f"span {wrong!r} has {len(wrong)} characters, not 2 to {settings.max_length}")

    @classmethod
    def train(cls, texts: Iterable[str], settings: SpansPretokenizer | None = None) -> "SpanPretokenizer":
        """Find the spans of `texts`, which are read once; a text's ends and line breaks in it are line ends."""
        settings = settings or SpansPretokenizer()  # type: ignore[call-arg]  # all fields have defaults
        stream = stream_of_texts(texts, "SpanPretokenizer.train")
        return cls.from_ngrams(candidate_ngrams(stream, settings), settings)

    @classmethod
    def from_ngrams(cls, ngrams: Sequence[Ngrams], settings: SpansPretokenizer) -> "SpanPretokenizer":
        """Choose the spans among candidates counted with these settings; scores of several lambdas share the counts."""
        spans: list[str] = []
        best: Reals | None = None
        least = -np.inf if settings.least_score is None else settings.least_score
        for level in ngrams:
            scores = level.scores(settings)
            prefix = np.full(len(scores), -np.inf) if best is None else best[level.keys >> CODE_BITS]
            spans += decode(level.codes[np.flatnonzero((scores >= prefix) & (scores > least))])
            best = np.maximum(scores, prefix)
        return cls(settings, spans)

    def pieces(self, text: str) -> list[str]:
        """The pre-tokens of `text` in order; their concatenation is `text`, whatever it holds."""
        pieces: list[str] = []
        append, spans, lengths = pieces.append, self.spans, self._lengths
        start, end = 0, len(text)
        while start < end:
            for length in lengths.get(text[start], ()):
                piece = text[start : start + length]
                if piece in spans:
                    break
            else:
                piece = text[start]
            append(piece)
            start += len(piece)
        return pieces

    def to_state(self) -> dict[str, Any]:
        """State as JSON values, the same for equal spans and settings."""
        least = self.settings.least_score
        settings = dataclasses.asdict(self.settings) | {"least_score": None if least is None else float(least)}
        del settings["kind"]
        settings["entropy_weight"] = float(self.settings.entropy_weight)
        return {"kind": KIND, "format": FORMAT, "settings": settings, "spans": sorted(self.spans)}

    @classmethod
    def from_state(cls, state: Any) -> "SpanPretokenizer":
        """Read what `to_state` gave; DataError says what is wrong with another state."""
        check_state(state, KIND, FORMAT)
        spans = state.get("spans")
        if not isinstance(spans, list) or not all(isinstance(span, str) for span in spans):
            raise DataError(f"the state of pre-tokenizer {KIND!r} has no list of spans that are text")
        if any(a >= b for a, b in pairwise(spans)):
            raise DataError(f"the spans of pre-tokenizer {KIND!r} are not in order, or one is there twice")
        try:
            return cls(SpansPretokenizer(**state["settings"]), spans)
        except (KeyError, TypeError, ConfigurationError) as error:
            raise DataError(f"the state of pre-tokenizer {KIND!r} is malformed: {error}") from error


def _lengths(spans: Iterable[str]) -> dict[str, tuple[int, ...]]:
    """First character -> lengths of the spans that begin with it, the longest first."""
    by_first: defaultdict[str, set[int]] = defaultdict(set)
    for span in spans:
        by_first[span[:1]].add(len(span))
    return {first: tuple(sorted(lengths, reverse=True)) for first, lengths in by_first.items()}


def candidate_ngrams(texts: Iterable[str], settings: SpansPretokenizer) -> list[Ngrams]:
    """The candidates of `texts`, which are read once, of each length from 2 to `settings.max_length`.

    PMI(x, y) = log2(p(xy) / (p(x) p(y))), with p(x) over all characters and p(xy) over all adjacent positions inside
    lines; with `information=counts`, counts take the place of the shares p.
    """
    with CodeSpool(texts) as spool:
        return _Search(spool, settings).ngrams()


class CodeSpool:
    """The codes of `texts`, which are read once: a line end, then each text and the line end after it."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._file = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115 (closed by __exit__)
        self.size = 0
        """Number of codes."""
        self._append(np.array([LINE_END], dtype=np.uint32))
        stream = iter(texts)
        while batch := list(islice(stream, _BATCH)):
            self._append(encode(batch))

    def __enter__(self) -> "CodeSpool":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def windows(self, after: int, size: int = _WINDOW) -> Iterator[Codes]:
        """Overlapping windows in which every code but the first of all stands once at a place from 1 to n.

        A window has n + 1 + `after` codes: one before those places and `after` behind them, line ends where there
        are none.
        """
        for start in range(1, self.size, size):
            places = min(size, self.size - start)
            self._file.seek(4 * (start - 1))
            codes = np.frombuffer(self._file.read(4 * (1 + places + after)), dtype=np.uint32)
            yield np.pad(codes, (0, 1 + places + after - len(codes)), constant_values=LINE_END)

    def _append(self, codes: Codes) -> None:
        self._file.write(codes.tobytes())
        self.size += len(codes)


class _Search:
    """Passes over a spool: one for the characters, one for each length, one for the characters on either side."""

    def __init__(self, spool: CodeSpool, settings: SpansPretokenizer) -> None:
        self._spool, self._max_length, self._min_count = spool, settings.max_length, settings.min_count
        self._totals = settings.information == "shares"
        self._characters = np.zeros(1 << CODE_BITS, dtype=np.int64)
        self._pairs = 0
        for window in self._spool.windows(self._max_length):
            self._characters += np.bincount(window[1 : -self._max_length], minlength=1 << CODE_BITS)
            inside = window[: -self._max_length] != LINE_END
            self._pairs += int(np.count_nonzero(inside[1:] & inside[:-1]))
        self._characters[LINE_END] = 0
        self._classes = code_classes(np.flatnonzero(self._characters), alike=settings.classes == "any")
        self._keys: list[Integers] = []
        self._counts: list[Integers] = []
        for length in range(2, settings.max_length + 1):
            self._count(length)

    def ngrams(self) -> list[Ngrams]:
        sides = self._branching()
        levels: list[Ngrams] = []
        for level, (keys, counts) in enumerate(zip(self._keys, self._counts, strict=True)):
            if level == 0:
                codes = np.stack([keys >> CODE_BITS, keys & _MASK], axis=1).astype(np.uint32)
                information = pair_information = self._pair_information()
            else:
                prefix, last = keys >> CODE_BITS, (keys & _MASK).astype(np.uint32)
                codes = np.concatenate([levels[-1].codes[prefix], last[:, None]], axis=1)
                pairs = codes[:, -2].astype(np.int64) << CODE_BITS | codes[:, -1]
                suffix = pair_information[np.searchsorted(self._keys[0], pairs)]
                information = np.minimum(levels[-1].information[prefix], suffix)
            levels.append(Ngrams(level + 2, keys, codes, counts, information, *sides[level]))
        return levels

    def _count(self, length: int) -> None:
        tally = Tally()
        for window in self._spool.windows(self._max_length):
            ids, uniform = self._levels(window, length - 1)[-1]
            suffix = np.append(ids[1:] >= 0, True)
            places = np.flatnonzero((ids >= 0) & suffix & self._same_class(window, uniform, length))
            tally.add(_ngram_keys(ids, window, places, length))
        keys, counts = tally.counts()
        frequent = counts >= self._min_count
        self._keys.append(keys[frequent])
        self._counts.append(counts[frequent])

    def _branching(self) -> list[tuple[Reals, Reals]]:
        tallies = [(Tally(), Tally()) for _ in self._keys]
        for window in self._spool.windows(self._max_length):
            for level, (ids, _) in enumerate(self._levels(window, self._max_length)[1:]):
                places = np.flatnonzero(ids >= 0)
                left, right = tallies[level]
                left.add(ids[places] << CODE_BITS | window[places])
                right.add(_ngram_keys(ids, window, places, level + 3))
        return [
            (entropies(*left.counts(), groups=len(keys)), entropies(*right.counts(), groups=len(keys)))
            for keys, (left, right) in zip(self._keys, tallies, strict=True)
        ]

    def _pair_information(self) -> Reals:
        keys, counts = self._keys[0], self._counts[0]
        total = int(self._characters.sum())
        scale = total * total / max(self._pairs, 1) if self._totals else 1.0
        single = self._characters[keys >> CODE_BITS] * self._characters[keys & _MASK].astype(np.float64)
        information: Reals = np.log2(counts / single * scale)
        return information

    def _levels(self, window: Codes, length: int) -> list[tuple[Integers, npt.NDArray[np.bool_]]]:
        """(candidate at each place or -1, True where the span has one class) for each length from 1 to `length`.

        A candidate of length 1 is any character, by its code.
        """
        count = len(window) - 1 - self._max_length
        ids = window[1 : 1 + count].astype(np.int64)
        uniform = self._classes[ids] != OTHER
        levels = [(ids, uniform)]
        for level in range(2, length + 1):
            uniform = self._same_class(window, uniform, level)
            places = np.flatnonzero((ids >= 0) & uniform)
            indices = _indices(self._keys[level - 2], _ngram_keys(ids, window, places, level))
            ids = np.full(count, -1, dtype=np.int64)
            ids[places] = indices
            levels.append((ids, uniform))
        return levels

    def _same_class(self, window: Codes, uniform: npt.NDArray[np.bool_], length: int) -> npt.NDArray[np.bool_]:
        """True where the span of `length` at a place has one class; `uniform` says so of the span one shorter."""
        classes = self._classes[window[length - 1 : length + 1 + len(uniform) - 1]]
        joined: npt.NDArray[np.bool_] = uniform & (classes[1:] == classes[:-1])
        return joined


def _ngram_keys(ids: Integers, window: Codes, places: Integers, length: int) -> Integers:
    """Keys of the n-grams of `length` that begin at `places` with the candidates `ids`."""
    keys: Integers = ids[places] << CODE_BITS | window[places + length]
    return keys


def _indices(table: Integers, keys: Integers) -> Integers:
    """Index of each key in the ascending table, or -1."""
    if not len(table):
        return np.full(len(keys), -1, dtype=np.int64)
    indices = np.minimum(np.searchsorted(table, keys), len(table) - 1)
    return np.where(table[indices] == keys, indices, -1)


class Tally:
    """Counts of keys that come in arrays. Memory is proportional to the distinct keys."""

    def __init__(self) -> None:
        empty = np.zeros(0, dtype=np.int64)
        self._parts: list[tuple[Integers, Integers]] = [(empty, empty)]
        self._pending = 0

    def add(self, keys: Integers) -> None:
        """Count every element of `keys`."""
        distinct, counts = np.unique(keys, return_counts=True)
        self._parts.append((distinct, counts.astype(np.int64)))
        self._pending += len(distinct)
        if self._pending > len(self._parts[0][0]):
            self.counts()

    def counts(self) -> tuple[Integers, Integers]:
        """The distinct keys, ascending, and how often each was counted."""
        if self._pending:
            keys = np.concatenate([part[0] for part in self._parts])
            order = np.argsort(keys, kind="stable")
            keys = keys[order]
            starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
            counts = np.concatenate([part[1] for part in self._parts])[order]
            self._parts = [(keys[starts], np.add.reduceat(counts, starts))]
            self._pending = 0
        return self._parts[0]


def entropies(keys: Integers, counts: Integers, groups: int) -> Reals:
    """Shannon entropy in bits of the counts of each group, shape (groups,); the group of a key is `key >> CODE_BITS`.

    Every group must have a key.
    """
    group = keys >> CODE_BITS
    total = np.bincount(group, weights=counts, minlength=groups)
    spread = np.bincount(group, weights=counts * np.log2(counts), minlength=groups)
    return np.log2(total) - spread / total


# Characters as integers: codepoints, with one code for every line end, and the class of each.
#
# A span never holds characters of two classes, nor any of the class `OTHER`: punctuation, symbols, whitespace,
# controls.
def encode(texts: Iterable[str]) -> Codes:
    """Codes of texts one after another, a line end after each."""
    joined = "\n".join([*texts, ""])
    codes = np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), dtype="<u4").astype(np.uint32)
    codes[np.isin(codes, _LINE_BREAK_CODES)] = LINE_END
    return codes


def decode(codes: Codes) -> list[str]:
    """The strings of rows of codepoints, shape (n, length)."""
    rows, length = codes.shape
    joined = codes.astype("<u4").tobytes().decode("utf-32-le", "surrogatepass")
    return [joined[i : i + length] for i in range(0, rows * length, length)]


def class_of(character: str) -> int:
    """Class of one character; combining marks go with the letters, the ideographic zero with the ideographs."""
    return next((number for number, pattern in _CLASSES if pattern.match(character)), OTHER)


def code_classes(observed: npt.NDArray[np.int64], *, alike: bool = False) -> npt.NDArray[np.uint8]:
    """Class by code, shape (2 ** CODE_BITS,), of the observed codes; `OTHER` for the rest and for line ends.

    With `alike`, all of them have one class that is not `OTHER`.
    """
    table = np.full(1 << CODE_BITS, OTHER, dtype=np.uint8)
    for code in observed.tolist():
        if code != LINE_END:
            table[code] = LETTER if alike else class_of(chr(code))
    return table
