"""Scores where a token crosses the boundary between context and continuation.

Let the tokens of context + continuation agree with those of the context alone up to byte p of the context; u are these
tokens, v the other tokens of the whole text, and r are the context's bytes from p on. With P over sequences of tokens,
the score is

    log P(continuation | context) = log P(v | u) - log P(r | u),

where P(r | u) is the probability that the text goes on with the bytes r after u, in whatever tokens: the sum over all
shortest sequences of tokens whose bytes begin with r. These sequences, the covering of r, exclude each other, so the
sum is a probability (Vieira et al. 2024, arXiv 2412.03719; Phan et al. 2024, arXiv 2410.09303):

    P(r | u) = sum over tokens t that begin with r of P(t | u)
             + sum over tokens t that r begins with, r = t r', of P(t | u) P(r' | u t).

As everywhere, a text's own probability P(v | u) is that of the tokens that the tokenizer gives it, not of all others
with the same bytes; a model that has learnt its tokenizer gives those next to nothing. The score is therefore that of
the continuation in its own tokens, given the context's text after u: never above 0, and log P(v | u) as ever where r is
empty. All choices of an item have the same u and r, so the second term is the same for all of them: it moves measures
that divide by a length, and leaves the order of the choices and their shares to the first.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from paribus.errors import NumericalError
from paribus.evaluation.prompts.pairs import Ids, Pair

if TYPE_CHECKING:
    from paribus.evaluation.models.scoring import Scorer

WIDTH = 64
"""Sequences of tokens followed up of those that end at the same byte; all there can be of up to eight bytes."""
SHARE = 1e-7
"""A sequence with a smaller share of the probability of those that end at the same byte is not followed up."""


class Spellings:
    """The tokens of a vocabulary in the order of their bytes; those without bytes are in no sum."""

    def __init__(self, token_bytes: Sequence[bytes]) -> None:
        listed = sorted((spelling, identity) for identity, spelling in enumerate(token_bytes) if spelling)
        self._of_id = token_bytes
        self._sorted = [spelling for spelling, _ in listed]
        self._ids = np.array([identity for _, identity in listed], np.int64)
        self._longest = max(map(len, self._sorted), default=0)

    def text(self, ids: Ids) -> bytes:
        """The bytes of tokens."""
        return b"".join([self._of_id[identity] for identity in ids.tolist()])

    def beginning_with(self, text: bytes) -> NDArray[np.int64]:
        """Ids of the tokens whose bytes begin with `text`."""
        start = bisect_left(self._sorted, text)
        return self._ids[start : bisect_right(self._sorted, text, lo=start, key=lambda spelling: spelling[: len(text)])]

    def within(self, text: bytes) -> list[tuple[int, int]]:
        """Id and length of the tokens that `text` begins with and goes on after."""
        found = []
        for length in range(1, min(len(text), self._longest + 1)):
            start = bisect_left(self._sorted, text[:length])
            end = bisect_right(self._sorted, text[:length], lo=start)
            found += [(int(identity), length) for identity in self._ids[start:end]]
        return found


@dataclass
class _Sum:
    """The sum for one text: tokens so far and their log-probability, by the byte where they end."""

    context: Ids
    text: bytes
    open: dict[int, list[tuple[float, tuple[int, ...]]]] = field(default_factory=lambda: defaultdict(list))
    covered: list[float] = field(default_factory=list)
    omitted: float = 0.0

    def take(self, place: int) -> list[tuple[float, tuple[int, ...]]]:
        """The sequences that end at byte `place` and are followed up, the most probable first."""
        found = sorted(self.open.pop(place, ()), reverse=True)
        if not found:
            return []
        weights = np.exp(np.array([weight for weight, _ in found]) - found[0][0])
        weights /= weights.sum()
        kept = max(1, min(WIDTH, int((weights >= SHARE).sum())))
        self.omitted += float(weights[kept:].sum())
        return found[:kept]


def text_log_probabilities(
    scorer: "Scorer", spellings: Spellings, questions: Sequence[tuple[Ids, bytes]]
) -> tuple[NDArray[np.float64], float]:
    """log P(r | u) of each question (u, r), and the largest share that was left out of a sum.

    The share is as if what was left out went on with r as often as what was kept. r is not empty; u need not leave room
    for it in the model's context: tokens that have none lose their beginning. Raises NumericalError for a probability
    of 0.
    """
    sums = [_Sum(context, text, defaultdict(list, {0: [(0.0, ())]})) for context, text in questions]
    for place in range(max((len(text) for _, text in questions), default=0)):
        steps = [(one, weight, ids) for one in sums for weight, ids in one.take(place)]
        pairs = [_next(one.context, ids, scorer.context_length) for one, _, ids in steps]
        for number, predicted in scorer.predictions(pairs):
            one, weight, ids = steps[number]
            rest = one.text[place:]
            covering = predicted[spellings.beginning_with(rest)]
            if len(covering):
                one.covered.append(weight + float(np.logaddexp.reduce(covering)))
            for identity, length in spellings.within(rest):
                one.open[place + length].append((weight + float(predicted[identity]), (*ids, identity)))
    logs = np.array([np.logaddexp.reduce(one.covered) for one in sums], np.float64)
    if not np.isfinite(logs).all():
        text = sums[int(np.isfinite(logs).argmin())].text
        raise NumericalError(f"the model gives the end of a context, {text!r}, no probability in any of its tokens")
    return logs, max((one.omitted for one in sums), default=0.0)


def _next(context: Ids, ids: tuple[int, ...], context_length: int) -> Pair:
    """A pair whose last token is predicted after the context and `ids`; what that token is does not matter."""
    ids = (*ids, 0)
    if len(context) + len(ids) - 1 <= context_length:
        return Pair(context, np.array(ids, np.int64))
    whole = np.concatenate([context, np.array(ids, np.int64)])[-context_length - 1 :]
    return Pair(whole[:-1], whole[-1:])
