"""From text to what a model scores: pairs of context ids and continuation ids.

One rule for every tokenizer. Whitespace at the end of a context is moved to the continuation. The ids of the whole text
are split where the ids of the context end; a context without tokens is the end-of-document token. That is lm-eval's own
rule. Where the ids of the whole do not begin with those of the context, because a token crosses the boundary, they are
split where the two last agree, and `paribus.evaluation.prompts.boundary` says what is to be subtracted.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[Any]
"""A 1-D array of token ids."""


class PromptEncoder(Protocol):
    """What scoring needs of a tokenizer."""

    @property
    def eos_id(self) -> int:
        """Id of the end-of-document token."""

    def encode(self, text: str) -> Ids:
        """1-D array of token ids."""

    def token_bytes(self) -> list[bytes]:
        """What each id stands for in text; nothing for special tokens. Asked for where a token crosses a boundary."""


@dataclass(frozen=True)
class Pair:
    """Score `continuation` after `context` (1-D arrays of ids, the context not empty)."""

    context: Ids
    continuation: Ids


@dataclass(frozen=True)
class Choices:
    """Continuations of one context, conditioned on the same ids."""

    context: Ids
    """Not empty: the context's ids as far as all the whole texts have them, or the end-of-document token."""
    continuations: list[Ids]
    """The other ids of each whole text."""
    rest: Ids
    """The context's ids after `context`; its bytes begin each continuation. Empty where no token crosses."""
    crossing: int
    """Choices of which a token crosses the boundary."""


def encode_choices(encode: Callable[[str], Ids], eos_id: int, context: str, continuations: Sequence[str]) -> Choices:
    """The ids of a context and its continuations, by the rule above.

    Where a token of one choice crosses, all of them are split at the same place, so that they stay comparable.
    """
    stripped = context.rstrip()
    space, before = context[len(stripped) :], encode(stripped)
    wholes = [encode(stripped + space + continuation) for continuation in continuations]
    shared = [_shared(before, whole) for whole in wholes]
    split = min(shared, default=len(before))
    return Choices(
        before[:split] if split else np.array([eos_id]),
        [whole[split:] for whole in wholes],
        before[split:],
        sum(number < len(before) for number in shared),
    )


def _shared(first: Ids, second: Ids) -> int:
    """Number of ids that both begin with."""
    size = min(len(first), len(second))
    differ = first[:size] != second[:size]
    return int(differ.argmax()) if differ.any() else size


def fit_context(context: Ids, longest: int, context_length: int) -> Ids:
    """The end of a context that leaves room for `longest` ids of a continuation.

    What is too long is cut to whole eighths of the context length, so that choices of nearly the same length are given
    the same context. Beside a continuation that has no room itself, one id is left.
    """
    room = max(1, context_length + 1 - longest)
    if len(context) <= room:
        return context
    block = max(1, context_length // 8)
    return context[-(room // block * block or room) :]


def fit_pair(pair: Pair, context_length: int) -> list[Pair]:
    """The pair cut to a model's context length, in tokens; a context that is too long loses its beginning.

    A continuation longer than the context length is scored in windows (`windows`): no token of it is lost.
    """
    if len(pair.continuation) > context_length:
        return windows(pair.continuation, int(pair.context[-1]), context_length)
    return [Pair(fit_context(pair.context, len(pair.continuation), context_length), pair.continuation)]


def windows(ids: Ids, first: int, context_length: int) -> list[Pair]:
    """Pairs that score each of `ids` once, the token `first` standing before them.

    The first window scores up to `context_length` tokens; each further one moves on by half of that, the last by
    what is left, so a token is scored with at least half a context of tokens before it.
    """
    stream = np.concatenate([np.array([first]), ids])
    pairs = [Pair(stream[:1], stream[1 : context_length + 1])]
    done, step = context_length + 1, max(1, context_length // 2)
    while done < len(stream):
        end = min(done + step, len(stream))
        pairs.append(Pair(stream[end - 1 - context_length : done], stream[done:end]))
        done = end
    return pairs
