"""A `.model` file of SentencePiece, read field by field: what its protocol buffer says, without a library for that."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from paribus.errors import DataError

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
"""Types of pieces."""
UNIGRAM, BPE = 1, 2
"""Types of models; the others cut into words or characters."""
_VARINT, _EIGHT_BYTES, _BYTES, _FOUR_BYTES = 0, 1, 2, 5

Value = int | bytes


@dataclass(frozen=True)
class Piece:
    """A token: its text with `▁` for spaces, its score (32 bits) and its type. Its id is its place."""

    text: str
    score: float
    kind: int


@dataclass(frozen=True)
class SentencePieceModel:
    """What encoding depends on."""

    pieces: tuple[Piece, ...]
    kind: int
    byte_fallback: bool
    whitespace_after: bool
    """Whether spaces end words (`treat_whitespace_as_suffix`) instead of beginning them."""
    dummy_prefix: bool
    """Whether a space is put before every text."""
    escaped: bool
    """Whether spaces are written `▁`."""
    end: int
    """Id of the token that ends a document, or -1."""
    rules: bytes
    """The same model with one of the pieces that are learned: all that normalization needs."""


def read_model(path: Path) -> SentencePieceModel:
    """Read a file. DataError where it is none."""
    try:
        return _model(path.read_bytes())
    except (OSError, ValueError, IndexError, struct.error) as error:
        raise DataError(f"{path}: no complete SentencePiece model ({error})") from error


def _model(data: bytes) -> SentencePieceModel:
    parts = list(_fields(data))
    raw = [value for number, value in parts if number == 1 and isinstance(value, bytes)]
    trainer = dict(_fields(_only(parts, 2)))
    normalizer = dict(_fields(_only(parts, 3)))
    byte_fallback = bool(_number(trainer, 35, 0))
    pieces = tuple(_piece(piece, byte_fallback=byte_fallback) for piece in raw)
    if not pieces:
        raise ValueError("it has no pieces")
    # The library loads no model without a piece that is learned.
    first = next((place for place, piece in enumerate(pieces) if piece.kind == NORMAL), -1)
    kept = [
        raw[place]
        for place, piece in enumerate(pieces)
        if place == first or piece.kind in (UNKNOWN, USER_DEFINED, BYTE)
    ]
    rules = b"".join(_field(number, value) for number, value in [
        *((1, piece) for piece in kept), (2, _only(parts, 2)), (3, _only(parts, 3)),
    ])  # fmt: skip
    return SentencePieceModel(
        pieces=pieces,
        kind=_number(trainer, 3, UNIGRAM),
        byte_fallback=byte_fallback,
        whitespace_after=bool(_number(trainer, 24, 0)),
        dummy_prefix=bool(_number(normalizer, 3, 1)),
        escaped=bool(_number(normalizer, 5, 1)),
        end=_end(trainer, pieces),
        rules=rules,
    )


def _piece(data: bytes, *, byte_fallback: bool) -> Piece:
    fields = dict(_fields(data))
    text, score = fields.get(1, b""), fields.get(2, bytes(4))
    if not isinstance(text, bytes) or not isinstance(score, bytes):
        raise ValueError("a piece has no text or score")
    # The library never finds a null character where it has the byte for it, as InternLM's model has.
    kind = CONTROL if text == b"\0" and byte_fallback else _number(fields, 3, NORMAL)
    return Piece(text.decode("utf-8"), float(struct.unpack("<f", score)[0]), kind)


def _end(trainer: dict[int, Value], pieces: tuple[Piece, ...]) -> int:
    """The end of a sentence, where it is there and a control piece, as it is in every model that the library makes."""
    identity = _number(trainer, 42, 2)
    return identity if 0 <= identity < len(pieces) and pieces[identity].kind == CONTROL else -1


def _number(fields: dict[int, Value], number: int, default: int) -> int:
    value = fields.get(number, default)
    if not isinstance(value, int):
        raise ValueError(f"field {number} is no number")
    return value - (1 << 64) if value >= 1 << 63 else value


def _only(parts: list[tuple[int, Value]], number: int) -> bytes:
    return b"".join(value for found, value in parts if found == number and isinstance(value, bytes))


def _fields(data: bytes) -> Iterator[tuple[int, Value]]:
    """(number, value) of each field: an integer, or bytes for everything that is none."""
    position = 0
    while position < len(data):
        key, position = _varint(data, position)
        if key & 7 == _VARINT:
            value, position = _varint(data, position)
            yield key >> 3, value
            continue
        length = {_EIGHT_BYTES: 8, _FOUR_BYTES: 4}.get(key & 7)
        if length is None:
            if key & 7 != _BYTES:
                raise ValueError(f"field of wire type {key & 7}")
            length, position = _varint(data, position)
        if position + length > len(data):
            raise ValueError("it ends early")
        yield key >> 3, data[position : position + length]
        position += length


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        value |= (byte & 0x7F) << shift
        position, shift = position + 1, shift + 7
        if byte < 0x80:
            return value, position


def _field(number: int, value: bytes) -> bytes:
    length, written = len(value), bytearray()
    while length >= 0x80:
        written.append(length & 0x7F | 0x80)
        length >>= 7
    return bytes([number << 3 | _BYTES, *written, length]) + value
