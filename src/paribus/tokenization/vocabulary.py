"""The vocabulary of a tokenizer: every token ever made, in order of creation, and the dense ids of those in use."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args, overload

from paribus.errors import DataError
from paribus.tokenization.units import FALLBACK_ALPHABET, UNKNOWN_UNIT, UnitKind

EntryKind = Literal["unit", "fallback", "token", "special", "unknown"]
ENTRY_KINDS: tuple[EntryKind, ...] = get_args(EntryKind)


@dataclass(frozen=True, slots=True)
class Entry:
    """One token of the expanded vocabulary."""

    rank: int
    """Position in the order of creation: units, then merged tokens, then special tokens."""
    id: int | None
    """Dense id in 0..N-1, the row of the embedding table; None for a scaffold token."""
    bytes: bytes
    frequency: int
    """Occurrences in the training corpus when the token was made; 0 for special tokens."""
    parents: tuple[int, int] | None
    """Ranks of the two tokens it was merged from; None for units and special tokens."""
    scaffold: bool
    kind: EntryKind


class Vocabulary(Sequence[Entry]):
    """All entries in order of creation and the merge rules (left, right, result) by rank, in training order.

    Raises DataError where ids are not exactly 0..N-1 or ranks, parents and bytes contradict each other.
    """

    def __init__(self, entries: Iterable[Entry], merges: Iterable[tuple[int, int, int]], unit: UnitKind) -> None:
        self._entries = tuple(entries)
        self.merges = tuple(merges)
        self.unit: UnitKind = unit
        self.by_id: tuple[Entry, ...] = self._dense()
        self._check()

    @overload
    def __getitem__(self, index: int) -> Entry: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Entry, ...]: ...
    def __getitem__(self, index: int | slice) -> Entry | tuple[Entry, ...]:
        return self._entries[index]

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries)

    @property
    def size(self) -> int:
        """N: tokens with an id, units and special tokens included."""
        return len(self.by_id)

    @cached_property
    def strings(self) -> tuple[str | None, ...]:
        """Unit string of each entry by rank, None for special tokens; see `paribus.tokenization.units`."""
        return tuple(map(self._string, self._entries))

    @cached_property
    def unit_ranks(self) -> dict[str, int]:
        """Rank of each unit."""
        return {
            string: entry.rank
            for entry, string in zip(self._entries, self.strings, strict=True)
            if string is not None and entry.kind != "token"
        }

    def _string(self, entry: Entry) -> str | None:
        if entry.kind == "special":
            return None
        if entry.kind == "fallback":
            return FALLBACK_ALPHABET[entry.bytes[0]]
        if entry.kind == "unknown":
            return UNKNOWN_UNIT
        return entry.bytes.decode("latin-1" if self.unit == "byte" else "utf-8")

    def _dense(self) -> tuple[Entry, ...]:
        normal = sorted((entry.id, entry.rank) for entry in self._entries if entry.id is not None)
        if [identity for identity, _ in normal] != list(range(len(normal))):
            raise DataError(f"vocabulary: the ids of {len(normal)} normal tokens are not 0 to {len(normal) - 1}")
        return tuple(self._entries[rank] for _, rank in normal)

    def _check(self) -> None:
        for rank, entry in enumerate(self._entries):
            if entry.rank != rank or (entry.id is None) != entry.scaffold or entry.kind not in ENTRY_KINDS:
                raise DataError(f"vocabulary: entry {rank} has a wrong rank, kind, or an id although it is a scaffold")
            if entry.parents is not None:
                if max(entry.parents) >= rank:
                    raise DataError(f"vocabulary: entry {rank} is older than its parents {entry.parents}")
                self._check_merge((*entry.parents, rank), f"entry {rank}")
            elif entry.scaffold:
                raise DataError(f"vocabulary: entry {rank} is a scaffold without parents")
        for position, merge in enumerate(self.merges):
            self._check_merge(merge, f"merge {position}")

    def _check_merge(self, merge: tuple[int, int, int], where: str) -> None:
        left, right, result = merge
        if min(merge) < 0 or max(merge) >= len(self):
            raise DataError(f"vocabulary: {where} names ranks {merge}, but there are only {len(self)} entries")
        if self[left].bytes + self[right].bytes != self[result].bytes:
            raise DataError(f"vocabulary: {where}: the bytes of {left} and {right} do not make those of {result}")
