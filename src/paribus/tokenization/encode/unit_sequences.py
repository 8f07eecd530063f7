"""Each token as a sequence of units, the form in which encoders compare tokens with text.

A unit is named by its rank in the vocabulary, or, where characters alone are no tokens (words, BERT's pieces), by a
number after all ranks. Where words have continuation marks, a unit inside a word is another
one than the same unit at its start.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from paribus.errors import DataError
from paribus.tokenization.vocabulary.vocabulary import FALLBACK, SPECIAL, TOKEN, UNIT, UNKNOWN, Vocabulary

CODEPOINTS = 0x110000


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
    """What is added to the rank of a unit that does not begin its word; 0 without continuation marks."""


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
    return UnitTable(
        bytes=_byte_ranks(vocabulary, units) if vocabulary.unit == "byte" else None,
        characters=_character_ranks(vocabulary, units) if vocabulary.unit == "character" else None,
        fallback=fallback,
        unknown=int(unknown[0]) if len(unknown) else -1,
        continuation=continuation,
    )


def _without_units(vocabulary: Vocabulary) -> UnitTable:
    """Numbers after all ranks for the characters of all tokens, and as many more for those inside a word."""
    columns = vocabulary.columns
    tokens = np.flatnonzero(columns.kinds == TOKEN).tolist()
    found = sorted(set("".join([_text(columns.spellings[rank]) for rank in tokens])))
    characters = np.full(CODEPOINTS, -1, dtype=np.int32)
    characters[[ord(character) for character in found]] = len(vocabulary) + np.arange(len(found), dtype=np.int32)
    unknown = np.flatnonzero(columns.kinds == UNKNOWN).tolist()
    return UnitTable(
        bytes=None,
        characters=characters,
        fallback=np.full(256, -1, dtype=np.int32),
        unknown=unknown[0] if unknown else -1,
        continuation=len(found) if columns.continuations.any() else 0,
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


def _byte_ranks(vocabulary: Vocabulary, units: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
    table = np.full(256, -1, dtype=np.int32)
    for rank in units.tolist():
        table[vocabulary.columns.spellings[rank][0]] = rank
    if (table < 0).any():
        raise DataError(f"vocabulary: byte {int(np.argmin(table))} is no unit; a byte vocabulary has all 256")
    return table


def _character_ranks(vocabulary: Vocabulary, units: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
    table = np.full(CODEPOINTS, -1, dtype=np.int32)
    spelled = b"".join([vocabulary.columns.spellings[rank] for rank in units.tolist()])
    table[np.frombuffer(spelled.decode("utf-8").encode("utf-32-le"), dtype="<u4")] = units
    return table


def unit_sequences(
    vocabulary: Vocabulary, table: UnitTable, ranks: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """Flat unit ranks of the tokens `ranks` and their offsets (len(ranks) + 1). DataError for a unit not there."""
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
