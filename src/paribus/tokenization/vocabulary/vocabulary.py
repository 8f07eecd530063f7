"""The vocabulary of a tokenizer: every token ever made, in order of creation, and the dense ids of those in use."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args, overload

import numpy as np
import numpy.typing as npt

from paribus.errors import DataError
from paribus.tokenization.vocabulary.units import UnitKind

EntryKind = Literal["unit", "fallback", "token", "special", "unknown"]
ENTRY_KINDS: tuple[EntryKind, ...] = get_args(EntryKind)
UNIT, FALLBACK, TOKEN, SPECIAL, UNKNOWN = range(5)
"""Positions in `ENTRY_KINDS`."""
FIXED = float(np.finfo(np.float32).max)
"""The score of a token that is found in text before anything is merged, and takes no part in merges."""


@dataclass(frozen=True, slots=True)
class VocabularyEntry:
    """One token of the expanded vocabulary."""

    rank: int
    """Position in the order of creation: units, then made tokens, then special tokens."""
    id: int | None
    """Dense id in 0..N-1, the row of the embedding table; None for a scaffold token."""
    bytes: bytes
    frequency: int
    """Occurrences in the training corpus when the token was made; 0 for special tokens."""
    parents: tuple[int, int] | None
    """Ranks of the two tokens it was merged from; None for units, special tokens and what was not merged."""
    scaffold: bool
    kind: EntryKind
    continuation: bool = False
    """Whether it only stands inside a word, after another token (`##` in WordPiece)."""
    score: float = 0.0
    """Log-probability (Unigram); of SentencePiece's BPE by which score merges come first, or `FIXED`; else 0."""


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


class Vocabulary(Sequence[VocabularyEntry]):
    """All entries in order of creation and the merge rules (left, right, result) by rank, in training order.

    Raises DataError where ids are not exactly 0..N-1, tokens occur twice, or ranks, parents and bytes contradict.
    """

    def __init__(self, columns: Columns, merges: npt.NDArray[np.int32], unit: UnitKind) -> None:
        self.columns = columns
        self.merge_ranks = merges.reshape(-1, 3)
        """Merge rules, shape (m, 3), int32."""
        self.unit: UnitKind = unit
        self.rank_of_id = self._dense()
        """Rank of each id, shape (N,), int64."""
        self._check_entries()
        self._check_merges()

    @classmethod
    def of(
        cls, entries: Iterable[VocabularyEntry], merges: Iterable[tuple[int, int, int]], unit: UnitKind
    ) -> "Vocabulary":
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
    def __getitem__(self, index: int) -> VocabularyEntry: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[VocabularyEntry, ...]: ...
    def __getitem__(self, index: int | slice) -> VocabularyEntry | tuple[VocabularyEntry, ...]:
        if isinstance(index, slice):
            return tuple(map(self._entry, range(*index.indices(len(self)))))
        return self._entry(range(len(self))[index])

    def __len__(self) -> int:
        return len(self.columns.spellings)

    def __iter__(self) -> Iterator[VocabularyEntry]:
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
    def by_id(self) -> tuple[VocabularyEntry, ...]:
        """The entries with an id, by id."""
        return tuple(map(self._entry, self.rank_of_id.tolist()))

    def _entry(self, rank: int) -> VocabularyEntry:
        columns = self.columns
        identity, (left, right) = int(columns.ids[rank]), columns.parents[rank].tolist()
        return VocabularyEntry(
            rank=rank,
            id=None if identity < 0 else identity,
            bytes=columns.spellings[rank],
            frequency=int(columns.frequencies[rank]),
            parents=None if left < 0 else (left, right),
            scaffold=identity < 0,
            kind=ENTRY_KINDS[columns.kinds[rank]],
            continuation=bool(columns.continuations[rank]),
            score=float(columns.scores[rank]),
        )

    def _dense(self) -> npt.NDArray[np.int64]:
        ids = self.columns.ids
        order = np.argsort(ids, kind="stable")
        order = order[np.searchsorted(ids[order], 0) :]
        if not np.array_equal(ids[order], np.arange(len(order))):
            raise DataError(f"vocabulary: the ids of {len(order)} normal tokens are not 0 to {len(order) - 1}")
        return order

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
        self._check_spellings(self._made(), "entry", np.flatnonzero(made))

    def _made(self) -> npt.NDArray[np.int32]:
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
        if np.array_equal(merges, self._made()):
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
