"""Models of SentencePiece (Llama 2, T5, XLNet), with their ids.

Ids are those of the library's `encode`: special tokens are not looked for in text. A merge of BPE is any two pieces
that make a piece, in the order of that piece's score, leftmost first among equals, and what a user defined is cut out
before; Unigram's sums, ties and runs of unknown characters are the library's (`kernels.viterbi`, `kernels.pieces`).
"""

from collections import Counter
from pathlib import Path

import numpy as np

from paribus.errors import ConfigurationError, DataError
from paribus.tokenization.interchange.sentencepiece_file import (
    BPE,
    BYTE,
    CONTROL,
    NORMAL,
    UNIGRAM,
    UNKNOWN,
    UNUSED,
    USER_DEFINED,
    Piece,
    SentencePieceModel,
    read_model,
)
from paribus.tokenization.pretokenize.sentencepiece_text import SPACE, SentencePieceText
from paribus.tokenization.settings import Algorithm, EncoderName, Settings
from paribus.tokenization.vocabulary.vocabulary import FIXED, EntryKind, Vocabulary, VocabularyEntry

_UNKNOWN_PENALTY = np.float32(10)
_USER_DEFINED_BYTE = 0.1
"""Score of each byte of a user-defined piece after the first, as version 0.2.3 of the library counts."""
_NATURAL: dict[int, tuple[Algorithm, EncoderName]] = {BPE: ("bpe", "merge_rank"), UNIGRAM: ("unigram", "viterbi")}
_BYTES = 256


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
    settings = Settings(
        algorithm=algorithm,
        unit="character",
        unknown="byte_fallback" if model.byte_fallback else "token",
        pretokenizer="sentencepiece",
        encoder=encoder,
        candidates="normal",
        demolish="parents",
        special_tokens=_special(model),
        stopped="vocab_size",
        string_equal_pairs=0,
    )
    fixed = [piece.text for piece in model.pieces if piece.kind == USER_DEFINED and model.kind == BPE]
    return vocabulary, settings, SentencePieceText(model.rules, prefix=model.dummy_prefix, fixed=fixed)


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
        f"{kinds[BYTE]} pieces of bytes": kinds[BYTE] != _BYTES * model.byte_fallback,
        f"{len(lacking)} characters of pieces that are no pieces, such as {next(iter(lacking), '')!r}": bool(lacking),
        "pieces with a space of their own": any(" " in text for text in spelled),
        "empty pieces": any(not piece.text for piece in model.pieces),
        f"{beyond} scores that are no finite number below {FIXED:.2g}": beyond > 0,
    }
    return [problem for problem, holds in found.items() if holds]


def _entries(model: SentencePieceModel) -> list[VocabularyEntry]:
    """Characters first, then fallback bytes, longer pieces, the unknown one and the special ones, each by id."""
    kinds: tuple[EntryKind, ...] = ("unit", "fallback", "token", "unknown", "special")
    listed = sorted(range(len(model.pieces)), key=lambda place: (kinds.index(_kind(model.pieces[place])), place))
    scores = _scores(model) if model.kind == UNIGRAM else _merging_scores(model)
    return [
        VocabularyEntry(
            rank, place, _bytes(model.pieces[place]), 0, None, False, _kind(model.pieces[place]), score=scores[place]
        )
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


def _merging_scores(model: SentencePieceModel) -> list[float]:
    """The scores by which BPE merges; what a user defined it never merges but takes whole."""
    return [FIXED if piece.kind == USER_DEFINED else piece.score for piece in model.pieces]


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


def _merges(model: SentencePieceModel, entries: list[VocabularyEntry]) -> list[tuple[int, int, int]]:
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


def _special(model: SentencePieceModel) -> tuple[str, ...]:
    places = [place for place, piece in enumerate(model.pieces) if piece.kind == CONTROL]
    return tuple(model.pieces[place].text for place in sorted(places, key=lambda place: (place != model.end, place)))
