"""A byte-level vocabulary made elsewhere: entries in an order of creation, with the ids it came with.

Bytes come first, then tokens in the order in which merge rules name them, then the rest by id, then special tokens.
"""

from collections.abc import Iterable, Mapping

from paribus.errors import DataError
from paribus.tokenization.vocabulary.vocabulary import EntryKind, Vocabulary, VocabularyEntry


class ByteLevelImport:
    """`ids` of ordinary tokens by their bytes and of special tokens by their text; `source` is named in errors.

    Raises DataError where a byte has no token, ids are shared or leave holes, or a name is taken twice.
    """

    def __init__(self, ids: Mapping[bytes, int], special: Mapping[str, int], source: str) -> None:
        self._ids, self._special, self._source = ids, special, source
        self._ranks: dict[bytes, int] = {}
        self._entries: list[VocabularyEntry] = []
        missing = [byte for byte in range(256) if bytes([byte]) not in ids]
        if missing:
            raise DataError(
                f"{source}: {len(missing)} bytes are no tokens, such as 0x{missing[0]:02X}; "
                "a byte-level vocabulary has all 256"
            )
        self._check_ids()

    def vocabulary(self, merges: Iterable[tuple[bytes, bytes]]) -> Vocabulary:
        """The vocabulary with merge rules in order of rank. DataError for one of other tokens, or one given twice."""
        for byte in range(256):
            self._append(bytes([byte]), None, "unit")
        rules = [self._rule(left, right) for left, right in merges]
        if len(set(rules)) < len(rules):
            left, right, _ = next(rule for rule in rules if rules.count(rule) > 1)
            raise DataError(
                f"{self._source}: {self._entries[left].bytes!r} and {self._entries[right].bytes!r} are merged twice"
            )
        for spelling in sorted(self._ids.keys() - self._ranks.keys(), key=self._ids.__getitem__):
            self._append(spelling, None, "token")
        for name, identity in sorted(self._special.items(), key=lambda item: item[1]):
            self._entries.append(
                VocabularyEntry(len(self._entries), identity, name.encode("utf-8"), 0, None, False, "special")
            )
        return Vocabulary.of(self._entries, rules, "byte")

    def _check_ids(self) -> None:
        names: dict[int, bytes] = {}
        for name, identity in (*self._ids.items(), *((text.encode(), i) for text, i in self._special.items())):
            if type(identity) is not int or identity < 0:
                raise DataError(f"{self._source}: the id of {name!r} is {identity!r}, not an integer from 0")
            if identity in names:
                raise DataError(f"{self._source}: id {identity} is of both {names[identity]!r} and {name!r}")
            names[identity] = name
        holes = sorted(set(range(max(names, default=-1) + 1)) - names.keys())
        if holes:
            raise DataError(
                f"{self._source}: {len(holes)} ids up to {max(names)} are of no token: {_listed(holes)}; a vocabulary "
                "has no holes, so give names to them, such as '<|unused_0|>', as special tokens"
            )

    def _rule(self, left: bytes, right: bytes) -> tuple[int, int, int]:
        parents = self._rank(left), self._rank(right)
        result = left + right
        if result not in self._ranks:
            self._append(result, parents, "token")
        return *parents, self._ranks[result]

    def _rank(self, spelling: bytes) -> int:
        if spelling not in self._ranks:
            self._append(spelling, None, "token")
        return self._ranks[spelling]

    def _append(self, spelling: bytes, parents: tuple[int, int] | None, kind: EntryKind) -> None:
        if spelling not in self._ids:
            raise DataError(f"{self._source}: a merge names {spelling!r}, which is no token")
        self._ranks[spelling] = rank = len(self._entries)
        self._entries.append(VocabularyEntry(rank, self._ids[spelling], spelling, 0, parents, False, kind))


def _listed(numbers: list[int]) -> str:
    shown = ", ".join(map(str, numbers[:10]))
    return shown if len(numbers) <= 10 else f"{shown}, ..."
