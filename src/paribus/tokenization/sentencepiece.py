"""Models of SentencePiece (Llama 2, T5, XLNet), with their ids.

Ids are those of the library's `encode`: special tokens are not looked for in text. A merge of BPE is any two pieces
that make a piece, in the order of that piece's score, leftmost first among equals, and what a user defined is cut out
before; Unigram's sums, ties and runs of unknown characters are the library's (`kernels.match`, `kernels.scan`).
"""

import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from paribus.errors import ConfigurationError, DataError
from paribus.tokenization.pretokenize import SPACE, SentencePieceText
from paribus.tokenization.settings import Algorithm, EncoderName, Settings
from paribus.tokenization.vocabulary import FIXED, EntryKind, Token, Vocabulary

_UNKNOWN_PENALTY = np.float32(10)
_USER_DEFINED_BYTE = 0.1
"""Score of each byte of a user-defined piece after the first, as version 0.2.3 of the library counts."""


UNIGRAM, BPE = 1, 2
"""Types of models; the others cut into words or characters."""


_NATURAL: dict[int, tuple[Algorithm, EncoderName]] = {BPE: ("bpe", "merge_rank"), UNIGRAM: ("unigram", "viterbi")}
_BYTE_COUNT = 256
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
"""Types of pieces."""
_VARINT, _EIGHT_BYTES, _BYTES, _FOUR_BYTES = 0, 1, 2, 5
Value = int | bytes


def from_sentencepiece(path: Path) -> tuple[Vocabulary, Settings, SentencePieceText]:
    """Read a `.model` file; its end of sentence becomes the first special token.

    Raises DataError for a broken file, ConfigurationError with everything that would not be the same.
    """
    model = read_model(path)
    if problems := _problems(model):
        raise ConfigurationError(f"{path}: cannot be the same tokenizer here: {'; '.join(problems)}")
    entries = _entries(model)
    rules = _merges(model, entries) if model.kind == BPE else []
    try:
        vocabulary = Vocabulary.of(entries, rules, "character")
    except DataError as error:
        raise DataError(f"{path}: {error}") from error
    algorithm, encoder = _NATURAL[model.kind]
    controls = [place for place, piece in enumerate(model.pieces) if piece.kind == CONTROL]
    controls.sort(key=lambda place: (place != model.end, place))
    settings = Settings(
        algorithm=algorithm,
        unit="character",
        unknown="byte_fallback" if model.byte_fallback else "token",
        pretokenizer="sentencepiece",
        encoder=encoder,
        candidates="normal",
        demolish="parents",
        special_tokens=tuple(model.pieces[place].text for place in controls),
        stopped="vocab_size",
        string_equal_pairs=0,
    )
    fixed = [piece.text for piece in model.pieces if piece.kind == USER_DEFINED and model.kind == BPE]
    return vocabulary, settings, SentencePieceText(model.rules, prefix=model.dummy_prefix, fixed=fixed)


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


def _problems(model: SentencePieceModel) -> list[str]:
    kinds = Counter(piece.kind for piece in model.pieces)
    spelled = [piece.text for piece in model.pieces if piece.kind in (NORMAL, USER_DEFINED)]
    letters = {text for text in spelled if len(text) == 1}
    lacking = sorted(set("".join(spelled)) - letters)
    beyond = sum(not abs(piece.score) < FIXED for piece in model.pieces)
    found = {
        f"model_type {model.kind} (only BPE and Unigram)": model.kind not in _NATURAL,
        "whitespace after words (treat_whitespace_as_suffix)": model.whitespace_after,
        "spaces that are not written ▁ (escape_whitespaces=false)": not model.escaped,
        f"{kinds[UNUSED]} unused pieces": kinds[UNUSED] > 0,
        f"{kinds[UNKNOWN]} unknown pieces (only 1)": kinds[UNKNOWN] != 1,
        f"{kinds[BYTE]} pieces of bytes": kinds[BYTE] != _BYTE_COUNT * model.byte_fallback,
        f"{len(lacking)} characters of pieces that are no pieces, such as {next(iter(lacking), '')!r}": bool(lacking),
        "pieces with a space of their own": any(" " in text for text in spelled),
        "empty pieces": any(not piece.text for piece in model.pieces),
        f"{beyond} scores that are no finite number below {FIXED:.2g}": beyond > 0,
    }
    return [problem for problem, holds in found.items() if holds]


def _entries(model: SentencePieceModel) -> list[Token]:
    """Characters first, then fallback bytes, longer pieces, the unknown one and the special ones, each by id."""
    kinds: tuple[EntryKind, ...] = ("unit", "fallback", "token", "unknown", "special")
    listed = sorted(range(len(model.pieces)), key=lambda place: (kinds.index(_kind(model.pieces[place])), place))
    if model.kind == UNIGRAM:
        scores = _scores(model)
    else:  # by which BPE merges; what a user defined it never merges but takes whole
        scores = [FIXED if piece.kind == USER_DEFINED else piece.score for piece in model.pieces]
    return [
        Token(rank, place, _bytes(model.pieces[place]), 0, None, False, _kind(model.pieces[place]), score=scores[place])
        for rank, place in enumerate(listed)
    ]


def _kind(piece: Piece) -> EntryKind:
    if piece.kind in (NORMAL, USER_DEFINED):
        return "unit" if len(piece.text) == 1 else "token"
    return {UNKNOWN: "unknown", BYTE: "fallback"}.get(piece.kind, "special")  # type: ignore[return-value]


def _bytes(piece: Piece) -> bytes:
    if piece.kind == BYTE:
        return bytes([int(piece.text[1:-1], 16)])
    plain = piece.kind in (NORMAL, USER_DEFINED)
    return (piece.text.replace(SPACE, " ") if plain else piece.text).encode("utf-8")


def _scores(model: SentencePieceModel) -> list[float]:
    """As the library counts them: unknown characters and user-defined pieces have scores of their own."""
    normal = [np.float32(piece.score) for piece in model.pieces if piece.kind == NORMAL]
    least = float(min(normal, default=np.float32(0)) - _UNKNOWN_PENALTY)
    return [_score(piece, least) for piece in model.pieces]


def _score(piece: Piece, unknown: float) -> float:
    if piece.kind == USER_DEFINED:
        return float(np.float32((len(piece.text.encode("utf-8")) - 1) * _USER_DEFINED_BYTE))
    if piece.kind == UNKNOWN:
        return unknown
    if piece.kind == BYTE:
        # A character counts once, whatever its bytes: the first, so the rest of them add nothing.
        byte = int(piece.text[1:-1], 16)
        return 0.0 if byte & 0xC0 == 0x80 else unknown
    return piece.score if piece.kind == NORMAL else 0.0


def _merges(model: SentencePieceModel, entries: list[Token]) -> list[tuple[int, int, int]]:
    ranks = {
        model.pieces[entry.id].text: entry.rank
        for entry in entries
        if entry.id is not None and model.pieces[entry.id].kind == NORMAL
    }
    rules: list[tuple[int, int, int]] = []
    for piece in sorted((piece for piece in model.pieces if piece.kind == NORMAL), key=lambda piece: -piece.score):
        text = piece.text
        found = [(text[:cut], text[cut:]) for cut in range(1, len(text))]
        rules += [(ranks[left], ranks[right], ranks[text]) for left, right in found if left in ranks and right in ranks]
    return rules


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
