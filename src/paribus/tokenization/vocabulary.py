"""The vocabulary of a tokenizer: every token ever made, in order of creation, and the dense ids of those in use."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args, overload

import numpy as np
import numpy.typing as npt

from paribus.errors import DataError

EntryKind = Literal["unit", "fallback", "token", "special", "unknown"]
ENTRY_KINDS: tuple[EntryKind, ...] = get_args(EntryKind)
UNIT, FALLBACK, TOKEN, SPECIAL, UNKNOWN = range(5)
"""Positions in `ENTRY_KINDS`."""
FIXED = float(np.finfo(np.float32).max)
"""The score of a token that is found in text before anything is merged, and takes no part in merges."""
UnitKind = Literal["byte", "character"]
CONTINUATION_MARK = "## "
"""Before the name of a token inside a word. Only words between whitespace are looked up, so the space in the mark keeps
such names apart from text; with `##` alone, the word `##ing` would be taken for the inside of one."""
Unknown = Literal["byte_fallback", "token", "refuse"]
"""Treatment of a character outside a character alphabet: its bytes, one unknown token, or an error."""
UNKNOWN_TOKEN = "<unk>"
_PRINTABLE = (*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAC + 1), *range(0xAE, 0xFF + 1))
CODEPOINTS = 0x110000
Demolish = Literal["parents", "shortest"]


@dataclass(frozen=True, slots=True)
class Token:
    """One token of the expanded vocabulary."""

    rank: int
    """Position in the order of creation: units, then made tokens, then special tokens."""
    id: int | None
    """Dense id in 0..N-1, the row of the embedding table; None for a scaffold token."""
    bytes: bytes
    frequency: int
    """Occurrences in the training corpus when the token was made; 0 for special tokens."""
    parents: tuple[int, int] | None
    """Ranks of the two tokens it was merged from; None for units, special tokens and others that no merge made."""
    scaffold: bool
    kind: EntryKind
    continuation: bool = False
    """True if it stands only inside a word, after another token (`##` in WordPiece)."""
    score: float = 0.0
    """Log-probability (Unigram), or priority of its merge or `FIXED` (SentencePiece's BPE); else 0."""


@dataclass(frozen=True, eq=False)
class Columns:
    """The entries of a vocabulary as arrays of n elements, by rank."""

    ids: npt.NDArray[np.int32]
    """-1 for scaffolds."""
    spellings: tuple[bytes, ...]
    frequencies: npt.NDArray[np.int64]
    parents: npt.NDArray[np.int32]
    """Shape (n, 2); -1 where there are none."""
    kinds: npt.NDArray[np.uint8]
    """Positions in `ENTRY_KINDS`."""
    continuations: npt.NDArray[np.bool_]
    scores: npt.NDArray[np.float64]


class Vocabulary(Sequence[Token]):
    """All entries in order of creation and the merge rules (left, right, result) by rank, in training order.

    Raises DataError where ids are not exactly 0..N-1, tokens occur twice, or ranks, parents and bytes contradict.
    """

    def __init__(self, columns: Columns, merges: npt.NDArray[np.int32], unit: UnitKind) -> None:
        self.columns = columns
        self.merge_ranks = merges.reshape(-1, 3)
        """Merge rules, shape (m, 3), int32."""
        self.unit: UnitKind = unit
        order = np.argsort(columns.ids, kind="stable")
        self.rank_of_id = order[np.searchsorted(columns.ids[order], 0) :]
        """Rank of each id, shape (N,), int64."""
        if not np.array_equal(columns.ids[self.rank_of_id], np.arange(self.size)):
            raise DataError(f"vocabulary: the ids of {self.size} normal tokens are not 0 to {self.size - 1}")
        self._check_entries()
        self._check_merges()

    @classmethod
    def of(cls, entries: Iterable[Token], merges: Iterable[tuple[int, int, int]], unit: UnitKind) -> "Vocabulary":
        """The vocabulary of entries in order of rank."""
        listed = list(entries)
        for rank, entry in enumerate(listed):
            if entry.rank != rank or (entry.id is None) != entry.scaffold or entry.kind not in ENTRY_KINDS:
                raise DataError(f"vocabulary: entry {rank} has a wrong rank, kind, or an id although it is a scaffold")
        columns = Columns(
            ids=np.array([-1 if entry.id is None else entry.id for entry in listed], dtype=np.int32),
            spellings=tuple(entry.bytes for entry in listed),
            frequencies=np.array([entry.frequency for entry in listed], dtype=np.int64),
            parents=np.array([entry.parents or (-1, -1) for entry in listed], dtype=np.int32).reshape(-1, 2),
            kinds=np.array([ENTRY_KINDS.index(entry.kind) for entry in listed], dtype=np.uint8),
            continuations=np.array([entry.continuation for entry in listed], dtype=np.bool_),
            scores=np.array([entry.score for entry in listed], dtype=np.float64),
        )
        return cls(columns, np.array(list(merges), dtype=np.int32), unit)

    @overload
    def __getitem__(self, index: int) -> Token: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Token, ...]: ...
    def __getitem__(self, index: int | slice) -> Token | tuple[Token, ...]:
        if isinstance(index, slice):
            return tuple(map(self._entry, range(*index.indices(len(self)))))
        return self._entry(range(len(self))[index])

    def __len__(self) -> int:
        return len(self.columns.spellings)

    def __iter__(self) -> Iterator[Token]:
        return map(self._entry, range(len(self)))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Vocabulary)
            and self.unit == other.unit
            and self.merges == other.merges
            and list(self) == list(other)
        )

    __hash__ = None  # type: ignore[assignment]

    @property
    def size(self) -> int:
        """N: tokens with an id, units and special tokens included."""
        return len(self.rank_of_id)

    @property
    def merges(self) -> list[tuple[int, int, int]]:
        """Merge rules as tuples."""
        return [(left, right, result) for left, right, result in self.merge_ranks.tolist()]

    @cached_property
    def by_id(self) -> tuple[Token, ...]:
        """The entries with an id, by id."""
        return tuple(map(self._entry, self.rank_of_id.tolist()))

    def _entry(self, rank: int) -> Token:
        columns = self.columns
        token_id, (left, right) = int(columns.ids[rank]), columns.parents[rank].tolist()
        return Token(
            rank=rank,
            id=None if token_id < 0 else token_id,
            bytes=columns.spellings[rank],
            frequency=int(columns.frequencies[rank]),
            parents=None if left < 0 else (left, right),
            scaffold=token_id < 0,
            kind=ENTRY_KINDS[columns.kinds[rank]],
            continuation=bool(columns.continuations[rank]),
            score=float(columns.scores[rank]),
        )

    def _check_entries(self) -> None:
        columns = self.columns
        parents, ranks = columns.parents, np.arange(len(self))
        made = parents[:, 0] >= 0
        wrong = np.flatnonzero((made != (parents[:, 1] >= 0)) | (parents.max(axis=1, initial=-1) >= ranks))
        if len(wrong):
            raise DataError(
                f"vocabulary: entry {wrong[0]} is older than its parents {tuple(parents[wrong[0]].tolist())}"
            )
        orphans = np.flatnonzero((columns.ids < 0) & ~made)
        if len(orphans):
            raise DataError(f"vocabulary: entry {orphans[0]} is a scaffold without parents")
        self._check_distinct()
        self._check_spellings(self._parent_rules(), "entry", np.flatnonzero(made))

    def _parent_rules(self) -> npt.NDArray[np.int32]:
        """(left, right, result) of every entry with parents."""
        made = np.flatnonzero(self.columns.parents[:, 0] >= 0).astype(np.int32)
        return np.column_stack([self.columns.parents[made], made])

    def _check_distinct(self) -> None:
        columns = self.columns
        ranks = np.flatnonzero((columns.kinds == UNIT) | (columns.kinds == TOKEN)).tolist()
        marks = columns.continuations.tolist()
        if len({(columns.spellings[rank], marks[rank]) for rank in ranks}) == len(ranks):
            return
        seen: dict[tuple[bytes, bool], int] = {}
        for rank in ranks:
            first = seen.setdefault((columns.spellings[rank], marks[rank]), rank)
            if first != rank:
                spelling = columns.spellings[rank]
                raise DataError(f"vocabulary: entries {first} and {rank} are the same token {spelling!r}")

    def _check_merges(self) -> None:
        merges = self.merge_ranks
        if np.array_equal(merges, self._parent_rules()):
            return
        wrong = np.flatnonzero((merges < 0).any(axis=1) | (merges >= len(self)).any(axis=1))
        if len(wrong):
            names = tuple(merges[wrong[0]].tolist())
            raise DataError(f"vocabulary: merge {wrong[0]} names ranks {names}, but there are only {len(self)} entries")
        self._check_spellings(merges, "merge", np.arange(len(merges)))

    def _check_spellings(self, rules: npt.NDArray[np.integer], what: str, names: npt.NDArray[np.integer]) -> None:
        spellings = self.columns.spellings
        for name, (left, right, result) in zip(names.tolist(), rules.tolist(), strict=True):
            if spellings[left] + spellings[right] != spellings[result]:
                raise DataError(
                    f"vocabulary: {what} {name}: the bytes of {left} and {right} do not make those of {result}"
                )


def token_names(vocabulary: Vocabulary) -> list[str]:
    """A string for each id: GPT-2's characters for bytes, `<0xE2>` for fallback bytes, else the text.

    Two ids may have the same name, such as a special token and a word spelled like it.
    """
    table = byte_characters() if vocabulary.unit == "byte" else None
    return [_name(entry, table) for entry in vocabulary.by_id]


def distinct_names(vocabulary: Vocabulary) -> list[str]:
    """`token_names`; an ordinary token that shares its name with another has U+FDD0 and its id appended."""
    names = token_names(vocabulary)
    count = Counter(names)
    return [
        name if count[name] == 1 or entry.kind in ("special", "unknown") else f"{name}\ufdd0{entry.id}"
        for name, entry in zip(names, vocabulary.by_id, strict=True)
    ]


def _name(entry: Token, table: list[str] | None) -> str:
    if entry.kind in ("special", "unknown"):
        return entry.bytes.decode("utf-8")
    mark = CONTINUATION_MARK if entry.continuation else ""
    if entry.kind == "fallback":
        return f"{mark}<0x{entry.bytes[0]:02X}>"
    if table is not None:
        return mark + "".join([table[value] for value in entry.bytes])
    return mark + entry.bytes.decode("utf-8")


def utf8(text: str) -> bytes:
    """UTF-8 of `text`; DataError where it holds a lone surrogate."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise DataError(
            f"the text has no UTF-8: character {error.start} is the lone surrogate U+{ord(text[error.start]):04X}"
        ) from error


def byte_characters() -> list[str]:
    """The character of each byte: itself where it is printable Latin-1, else U+0100 and up in byte order."""
    substitutes = iter(range(256, 512))
    printable = frozenset(_PRINTABLE)
    return [chr(byte if byte in printable else next(substitutes)) for byte in range(256)]


# Each token as a sequence of units, the form in which encoders compare tokens with text.
#
# The name of a unit is its rank in the vocabulary, or, where single characters are no tokens (words, BERT's pieces), a
# number after all ranks. With continuation marks, a unit inside a word differs from the same unit at its start.
@dataclass(frozen=True, eq=False)
class UnitTable:
    """Names of the units of a vocabulary."""

    bytes: npt.NDArray[np.int32] | None
    """Rank of each byte, shape (256,); None where units are characters."""
    characters: npt.NDArray[np.int32] | None
    """Rank of each character, shape (0x110000,), -1 outside the alphabet; None where units are bytes."""
    fallback: npt.NDArray[np.int32]
    """Rank of each byte of a character outside the alphabet, shape (256,), -1 without fallback."""
    unknown: int
    """Rank of the unknown unit, or -1."""
    continuation: int
    """Number to add to the rank of a unit inside a word; 0 without continuation marks."""


def unit_table(vocabulary: Vocabulary) -> UnitTable:
    """Find the units. DataError where a byte is missing or continuation units do not mirror the others."""
    columns = vocabulary.columns
    single = np.flatnonzero((columns.kinds != TOKEN) & (columns.kinds != SPECIAL))
    if vocabulary.unit == "character" and not (columns.kinds == UNIT).any():
        return _without_units(vocabulary)
    _check_single(vocabulary, single)
    first = single[~columns.continuations[single]]
    marked = single[columns.continuations[single]]
    continuation = int(marked[0] - first[0]) if len(marked) else 0
    known = first[columns.kinds[first] != UNKNOWN]
    if len(marked) and not np.array_equal(known + continuation, marked):
        raise DataError("vocabulary: the continuation units are not in the order of the other units")
    fallback = np.full(256, -1, dtype=np.int32)
    fallen = first[columns.kinds[first] == FALLBACK]
    fallback[[columns.spellings[rank][0] for rank in fallen.tolist()]] = fallen
    unknown = first[columns.kinds[first] == UNKNOWN]
    units = first[columns.kinds[first] == UNIT]
    spelled = b"".join([columns.spellings[rank] for rank in units.tolist()])
    byte_ranks = character_ranks = None
    if vocabulary.unit == "byte":
        byte_ranks = np.full(256, -1, dtype=np.int32)
        byte_ranks[list(spelled)] = units
        if (byte_ranks < 0).any():
            byte = int(np.argmin(byte_ranks))
            raise DataError(f"vocabulary: byte {byte} is no unit; a byte vocabulary has all 256")
    else:
        character_ranks = np.full(CODEPOINTS, -1, dtype=np.int32)
        character_ranks[np.frombuffer(spelled.decode("utf-8").encode("utf-32-le"), dtype="<u4")] = units
    return UnitTable(
        bytes=byte_ranks,
        characters=character_ranks,
        fallback=fallback,
        unknown=int(unknown[0]) if len(unknown) else -1,
        continuation=continuation,
    )


def _without_units(vocabulary: Vocabulary) -> UnitTable:
    """Numbers after all ranks for the characters of all tokens; with continuation marks, as many more."""
    columns = vocabulary.columns
    tokens = np.flatnonzero(columns.kinds == TOKEN).tolist()
    alphabet = sorted(set("".join([_text(columns.spellings[rank]) for rank in tokens])))
    characters = np.full(CODEPOINTS, -1, dtype=np.int32)
    characters[[ord(character) for character in alphabet]] = len(vocabulary) + np.arange(len(alphabet), dtype=np.int32)
    unknown = np.flatnonzero(columns.kinds == UNKNOWN).tolist()
    return UnitTable(
        bytes=None,
        characters=characters,
        fallback=np.full(256, -1, dtype=np.int32),
        unknown=unknown[0] if unknown else -1,
        continuation=len(alphabet) if columns.continuations.any() else 0,
    )


def _check_single(vocabulary: Vocabulary, ranks: npt.NDArray[np.int64]) -> None:
    columns = vocabulary.columns
    for rank in ranks.tolist():
        spelling, kind = columns.spellings[rank], columns.kinds[rank]
        if kind == UNIT and vocabulary.unit == "character":
            if not _is_character(spelling):
                raise DataError(f"vocabulary: entry {rank} is a unit, but {spelling!r} is not one character")
        elif kind != UNKNOWN and len(spelling) != 1:
            raise DataError(f"vocabulary: entry {rank} is a unit, but {spelling!r} is not one byte")


def _is_character(spelling: bytes) -> bool:
    try:
        return len(spelling.decode("utf-8")) == 1
    except UnicodeDecodeError:
        return False


def unit_sequences(
    vocabulary: Vocabulary, table: UnitTable, ranks: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """Flat units of the tokens `ranks` and their offsets (len(ranks) + 1). DataError for a unit that `table` lacks."""
    columns = vocabulary.columns
    kinds = columns.kinds[ranks]
    spelled = [columns.spellings[rank] for rank in ranks.tolist()]
    alone = (kinds == FALLBACK) | (kinds == UNKNOWN)
    if table.bytes is not None:
        lengths = np.fromiter(map(len, spelled), dtype=np.int64, count=len(spelled))
        flat = table.bytes[np.frombuffer(b"".join(spelled), dtype=np.uint8)]
    else:
        texts = [
            "?" if single else token.decode("utf-8") for token, single in zip(spelled, alone.tolist(), strict=True)
        ]
        lengths = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))
        assert table.characters is not None
        flat = table.characters[np.frombuffer("".join(texts).encode("utf-32-le"), dtype="<u4")]
    offsets = np.zeros(len(ranks) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    if table.continuation:
        shifted = np.full(len(flat), table.continuation, dtype=np.int32)
        begins = offsets[:-1][~columns.continuations[ranks] & (lengths > 0)]
        shifted[begins] = 0
        flat = flat + shifted
    flat[offsets[:-1][alone]] = ranks[alone]
    if len(flat) and flat.min() < 0:
        place = int(np.searchsorted(offsets, np.argmin(flat), side="right")) - 1
        raise DataError(f"vocabulary: token {spelled[place]!r} has a character that is no unit of the vocabulary")
    return flat.astype(np.int32, copy=False), offsets


def _text(token: bytes) -> str:
    try:
        return token.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"vocabulary: token {token!r} of a character vocabulary is no UTF-8") from error


# The ids that a token of the expanded vocabulary becomes: its own, or those of the normal tokens of a scaffold.
#
# Scaffold-BPE, equation 6: a scaffold token is replaced by its parents, recursively, down to the first normal tokens.
def replacements(vocabulary: Vocabulary, demolish: Demolish) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    """Offsets (n + 1) and flat dense ids of what stands for each rank.

    `parents` is equation 6, `shortest` the fewest normal tokens.
    """
    ids = vocabulary.columns.ids
    scaffolds = np.flatnonzero(ids < 0).tolist()
    if not scaffolds:
        return np.arange(len(ids) + 1, dtype=np.int64), ids
    replaced = _shortest(vocabulary, scaffolds) if demolish == "shortest" else _by_parents(vocabulary, scaffolds)
    lengths = np.ones(len(ids), dtype=np.int64)
    lengths[scaffolds] = [len(replaced[rank]) for rank in scaffolds]
    offsets = np.zeros(len(ids) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    flat = np.empty(offsets[-1], dtype=np.int32)
    flat[offsets[:-1][ids >= 0]] = ids[ids >= 0]
    for rank in scaffolds:
        flat[offsets[rank] : offsets[rank + 1]] = replaced[rank]
    return offsets, flat


def _by_parents(vocabulary: Vocabulary, scaffolds: list[int]) -> dict[int, tuple[int, ...]]:
    ids, parents = vocabulary.columns.ids, vocabulary.columns.parents
    replaced: dict[int, tuple[int, ...]] = {}
    for rank in scaffolds:
        left, right = parents[rank].tolist()
        replaced[rank] = sum((replaced.get(side) or (int(ids[side]),) for side in (left, right)), ())
    return replaced


def _shortest(vocabulary: Vocabulary, scaffolds: list[int]) -> dict[int, tuple[int, ...]]:
    columns = vocabulary.columns
    ranks = np.flatnonzero(columns.kinds != SPECIAL)
    flat, offsets = unit_sequences(vocabulary, unit_table(vocabulary), ranks)
    units = flat.tolist()
    spelled = {
        rank: tuple(units[begin:end])
        for rank, begin, end in zip(ranks.tolist(), offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)
    }
    normal = {spelled[rank]: int(columns.ids[rank]) for rank in ranks.tolist() if columns.ids[rank] >= 0}
    return {rank: fewest(spelled[rank], normal) for rank in scaffolds}


def fewest(units: tuple[int, ...], normal: dict[tuple[int, ...], int]) -> tuple[int, ...]:
    """Ids of the fewest tokens that make up `units`; among equally few, the longest first token, and so on."""
    best: list[tuple[int, ...]] = [()] * (len(units) + 1)
    for start in range(len(units) - 1, -1, -1):
        options = [
            (normal[units[start:end]], *best[end])
            for end in range(len(units), start, -1)
            if units[start:end] in normal and (best[end] or end == len(units))
        ]
        best[start] = min(options, key=len)
    return best[0]
