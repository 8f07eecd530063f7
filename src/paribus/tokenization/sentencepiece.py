"""Models of SentencePiece (Llama 2, T5, XLNet), with their ids.

Ids are those of the library's `encode`: special tokens are not looked for in text. BPE cuts user-defined pieces out,
then merges any two pieces that make a piece, in the order of that piece's score, leftmost first among equals. Unigram's
sums, ties and runs of unknown characters are the library's (`kernels.match`, `kernels.scan`).
"""

import itertools
from collections import Counter
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
"""Types of models that can be read; others cut into words or characters."""
_NATURAL: dict[int, tuple[Algorithm, EncoderName]] = {BPE: ("bpe", "merge_rank"), UNIGRAM: ("unigram", "viterbi")}
_BYTE_COUNT = 256
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
"""Types of pieces."""


def from_sentencepiece(path: Path) -> tuple[Vocabulary, Settings, SentencePieceText]:
    """Read a `.model` file; its end of sentence becomes the first special token.

    Raises DataError for a broken file, ConfigurationError that lists everything that would differ here.
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
        special_tokens=tuple(model.pieces[place].text for place in controls),
    )
    fixed = [piece.text for piece in model.pieces if piece.kind == USER_DEFINED and model.kind == BPE]
    return vocabulary, settings, SentencePieceText(model.rules, prefix=model.dummy_prefix, fixed=fixed)


@dataclass(frozen=True)
class Piece:
    """A token: its text with `▁` for spaces, its score (32 bits) and its type. Its id is its index."""

    text: str
    score: float
    kind: int


@dataclass(frozen=True)
class SentencePieceModel:
    """The parts of a model that encoding depends on."""

    pieces: tuple[Piece, ...]
    kind: int
    byte_fallback: bool
    whitespace_after: bool
    """True if spaces end words (`treat_whitespace_as_suffix`) instead of beginning them."""
    dummy_prefix: bool
    """True if a space is put before every text."""
    escaped: bool
    """True if spaces are written `▁`."""
    end: int
    """Id of the token that ends a document, or -1."""
    rules: bytes
    """The model file with one learned piece: all that normalization needs."""


def _problems(model: SentencePieceModel) -> list[str]:
    kinds = Counter(piece.kind for piece in model.pieces)
    spelled = [piece.text for piece in model.pieces if piece.kind in (NORMAL, USER_DEFINED)]
    letters = {text for text in spelled if len(text) == 1}
    lacking = sorted(set("".join(spelled)) - letters)
    beyond = sum(not abs(piece.score) < FIXED for piece in model.pieces)
    problems = {
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
    return [problem for problem, holds in problems.items() if holds]


def _entries(model: SentencePieceModel) -> list[Token]:
    """Characters first, then fallback bytes, longer pieces, the unknown one and the special ones, each by id."""
    kinds: tuple[EntryKind, ...] = ("unit", "fallback", "token", "unknown", "special")
    places = sorted(range(len(model.pieces)), key=lambda place: (kinds.index(_kind(model.pieces[place])), place))
    if model.kind == UNIGRAM:
        scores = _scores(model)
    else:  # BPE merges by score; user-defined pieces are taken whole and never merged
        scores = [FIXED if piece.kind == USER_DEFINED else piece.score for piece in model.pieces]
    return [
        Token(rank, place, _bytes(model.pieces[place]), 0, None, False, _kind(model.pieces[place]), score=scores[place])
        for rank, place in enumerate(places)
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
    """Scores as the library counts them: unknown characters and user-defined pieces have scores of their own."""
    normal = [np.float32(piece.score) for piece in model.pieces if piece.kind == NORMAL]
    least = float(min(normal, default=np.float32(0)) - _UNKNOWN_PENALTY)
    return [_score(piece, least) for piece in model.pieces]


def _score(piece: Piece, unknown: float) -> float:
    if piece.kind == USER_DEFINED:
        return float(np.float32((len(piece.text.encode("utf-8")) - 1) * _USER_DEFINED_BYTE))
    if piece.kind == UNKNOWN:
        return unknown
    if piece.kind == BYTE:
        # An unknown character counts once: its first byte does, and the others add nothing.
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
        cuts = [(text[:cut], text[cut:]) for cut in range(1, len(text))]
        rules += [(ranks[left], ranks[right], ranks[text]) for left, right in cuts if left in ranks and right in ranks]
    return rules


def read_model(path: Path) -> SentencePieceModel:
    """Read a model file. DataError for a file that is none."""
    from google.protobuf.message import DecodeError
    from sentencepiece.sentencepiece_model_pb2 import ModelProto

    proto = ModelProto()
    try:
        proto.ParseFromString(path.read_bytes())
        texts = [piece.piece for piece in proto.pieces]
    except (OSError, DecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: no complete SentencePiece model ({error})") from error
    trainer, normalizer = proto.trainer_spec, proto.normalizer_spec
    # The library never finds a null character where it has the byte for it, as InternLM's model has.
    pieces = tuple(
        Piece(text, piece.score, CONTROL if text == "\0" and trainer.byte_fallback else piece.type)
        for text, piece in zip(texts, proto.pieces, strict=True)
    )
    if not pieces:
        raise DataError(f"{path}: no complete SentencePiece model (it has no pieces)")
    # The library loads no model without a piece that is learned.
    first = next((place for place, piece in enumerate(pieces) if piece.kind == NORMAL), -1)
    needed = (place == first or piece.kind in (UNKNOWN, USER_DEFINED, BYTE) for place, piece in enumerate(pieces))
    rules = ModelProto(
        pieces=itertools.compress(proto.pieces, needed), trainer_spec=trainer, normalizer_spec=normalizer
    )
    # The end of a sentence ends documents if it is a control piece, as in every model that the library makes.
    has_end = 0 <= trainer.eos_id < len(pieces) and pieces[trainer.eos_id].kind == CONTROL
    return SentencePieceModel(
        pieces=pieces,
        kind=trainer.model_type,
        byte_fallback=trainer.byte_fallback,
        whitespace_after=trainer.treat_whitespace_as_suffix,
        dummy_prefix=normalizer.add_dummy_prefix,
        escaped=normalizer.escape_whitespaces,
        end=trainer.eos_id if has_end else -1,
        rules=rules.SerializeToString(),
    )
