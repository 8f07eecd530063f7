"""Tokens of a checkpoint beside those of the run: which row of its embedding each token of the run begins with."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from paribus.errors import ConfigurationError, DataError
from paribus.tokenization import Tokenizer
from paribus.tokenization.settings import EncoderName
from paribus.tokenization.vocabulary import ENTRY_KINDS, FALLBACK, SPECIAL, UNKNOWN

Key = tuple[str, bytes, bool]
"""Identity of a token whatever its id: its sort, its bytes, and whether it only continues a word."""
Rows = npt.NDArray[np.int64]


def token_problem(run: Tokenizer, checkpoint: Tokenizer, directory: Path, vocabulary: str) -> str | None:
    """Message on the run's tokens for the model of a checkpoint; their encoders do not matter.

    With `vocabulary` `same` both must have equal tokens at equal ids, with `added` none of the checkpoint's may be
    missing.
    """
    ours, theirs = keys(run), keys(checkpoint)
    return _differing(ours, theirs, directory) if vocabulary == "same" else _missing(ours, theirs, directory)


def _differing(ours: Sequence[Key], theirs: Sequence[Key], directory: Path) -> str | None:
    if ours == theirs:
        return None
    sizes = f"{len(ours)} tokens here, {len(theirs)} in {directory}"
    differing = next((i for i, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b), None)
    if differing is None:
        where = "; up to there they are equal"
    else:
        pair = f"{_shown(ours[differing])} here, {_shown(theirs[differing])} there"
        where = f"; the first that differs is id {differing}: {pair}"
    hint = "start.vocabulary=added takes a larger one" if len(ours) > len(theirs) else "use the checkpoint's vocabulary"
    return f"same, but the vocabularies differ: {sizes}{where}; {hint}"


def _missing(ours: Sequence[Key], theirs: Sequence[Key], directory: Path) -> str | None:
    known = set(ours)
    missing = [key for key in theirs if key not in known]
    if not missing:
        return None
    return (
        f"added, but {len(missing)} tokens of {directory} are not in the run's vocabulary, such "
        f"as {_shown(missing[0])} ({len(ours)} tokens here, {len(theirs)} there); an added vocabulary has them all"
    )


def same_tokens(run: Tokenizer, checkpoint: Tokenizer, directory: Path) -> None:
    """ConfigurationError unless both have equal tokens at equal ids; their encoders do not matter."""
    _refuse(token_problem(run, checkpoint, directory, "same"))


def origins(run: Tokenizer, checkpoint: Tokenizer, directory: Path) -> list[Rows]:
    """The rows of the checkpoint whose mean each token of `run` begins with: its own, else those of its pieces.

    The mean of the pieces' rows is what Koto et al. 2021 (IndoBERTweet, arXiv 2109.04607) found best for added tokens.
    The mean of all rows is for special tokens and bytes that the checkpoint's tokenizer refuses.
    ConfigurationError where a token of the checkpoint is missing.
    """
    _refuse(token_problem(run, checkpoint, directory, "added"))
    rows = {key: row for row, key in enumerate(keys(checkpoint))}
    settings, every = checkpoint.settings, np.arange(checkpoint.vocab_size)
    encoder: EncoderName = "merge_rank" if settings.encoder == "dropout" else settings.encoder
    plain = dataclasses.replace(settings, pretokenizer="none", encoder=encoder, dropout=0.0)
    cutter = Tokenizer(checkpoint.vocabulary, plain)

    def pieces(key: Key) -> Rows:
        sort, spelling, _ = key
        if sort in ("special", "unknown"):
            return every
        try:
            by_bytes = cutter.vocabulary.unit == "byte"
            ids = cutter.encode_bytes(spelling) if by_bytes else cutter.encode(spelling.decode("utf-8"))
        except (DataError, UnicodeDecodeError):
            return every
        return ids.astype(np.int64) if len(ids) else every

    return [np.array([rows[key]]) if key in rows else pieces(key) for key in keys(run)]


def _refuse(problem: str | None) -> None:
    if problem:
        raise ConfigurationError(f"start.vocabulary: {problem}")


def keys(tokenizer: Tokenizer) -> list[Key]:
    """Key of each token by id; no two are the same."""
    columns = tokenizer.vocabulary.columns
    # Units and merged tokens are one sort: a vocabulary made elsewhere may not tell them apart.
    sorts = [name if kind in (SPECIAL, UNKNOWN, FALLBACK) else "text" for kind, name in enumerate(ENTRY_KINDS)]
    return [
        (sorts[int(columns.kinds[rank])], columns.spellings[rank], bool(columns.continuations[rank]))
        for rank in tokenizer.vocabulary.rank_of_id.tolist()
    ]


def names(tokenizer: Tokenizer) -> list[bytes]:
    """The keys of tokens by id, each as bytes of its own."""
    return [f"{sort}:{int(continuation)}:".encode() + spelling for sort, spelling, continuation in keys(tokenizer)]


def _shown(key: Key) -> str:
    sort, spelling, continuation = key
    return f"{'' if sort == 'text' else sort + ' '}{spelling!r}{' inside a word' if continuation else ''}"
