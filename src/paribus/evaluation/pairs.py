"""From text to what a model scores: pairs of context ids and continuation ids.

One rule for every tokenizer. Whitespace at the end of a context is moved to the continuation. If the ids of the whole
text begin with the ids of the context, the rest are the continuation's; otherwise a token would cross the boundary and
both parts are encoded on their own. A context without tokens is the end-of-document token. Where no token crosses,
this is lm-eval's own rule.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[Any]
"""A 1-D array of token ids."""


class Encoder(Protocol):
    """What scoring needs of a tokenizer."""

    @property
    def eod_id(self) -> int:
        """Id of the end-of-document token."""

    def encode(self, text: str) -> Ids:
        """1-D array of token ids."""


@dataclass(frozen=True)
class Pair:
    """Score `continuation` after `context` (1-D arrays of ids, the context not empty)."""

    context: Ids
    continuation: Ids


def encode_pair(encode: Callable[[str], Ids], eod_id: int, context: str, continuation: str) -> Pair:
    """The ids of a context and a continuation, by the rule above."""
    stripped = context.rstrip()
    continuation = context[len(stripped) :] + continuation
    before = encode(stripped)
    if not len(before):
        return Pair(np.array([eod_id]), encode(continuation))
    whole = encode(stripped + continuation)
    if np.array_equal(whole[: len(before)], before):
        return Pair(before, whole[len(before) :])
    return Pair(before, encode(continuation))


def fit(pair: Pair, context_length: int) -> list[Pair]:
    """The pair cut to a model's context length, in tokens; a context that is too long loses its beginning.

    It is then cut to whole eighths of the context length, so that choices of nearly the same length are given the same
    context. A continuation longer than the context length is scored in windows (`windows`): no token of it is lost.
    """
    if len(pair.continuation) > context_length:
        return windows(pair.continuation, int(pair.context[-1]), context_length)
    room = context_length + 1 - len(pair.continuation)
    if len(pair.context) > room:
        block = max(1, context_length // 8)
        room = room // block * block or room
    return [Pair(pair.context[-room:], pair.continuation)]


def windows(ids: Ids, first: int, context_length: int) -> list[Pair]:
    """Pairs that score each of `ids` once, the token `first` standing before them.

    The first window scores up to `context_length` tokens; each further one moves on by half of that, so a token is
    scored with at least half a context of tokens before it.
    """
    stream = np.concatenate([np.array([first]), ids])
    pairs = [Pair(stream[:1], stream[1 : context_length + 1])]
    done, step = context_length + 1, max(1, context_length // 2)
    while done < len(stream):
        end = min(done + step, len(stream))
        pairs.append(Pair(stream[end - 1 - context_length : done], stream[done:end]))
        done = end
    return pairs
