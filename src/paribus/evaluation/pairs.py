"""Pairs of context ids and continuation ids that a model scores, and several continuations in a sequence.

One rule for every tokenizer. Whitespace at the end of a context is moved to the continuation. The ids of the whole text
are split where the ids of the context end; a context without tokens is the end-of-document token. That is lm-eval's own
rule. Where the ids of the whole do not begin with those of the context, because a token crosses the boundary, they are
split where the two last agree, and `paribus.evaluation.prompts` says what is to be subtracted.

A sequence is a context, which is computed once, followed by its branches: the continuations without their last tokens,
which predict nothing. A token of a branch attends to the context and to its own branch, at the positions it would have
alone; so each continuation gets the same score as in a sequence of its own.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[Any]
"""A 1-D array of token ids."""


@dataclass(frozen=True)
class Pair:
    """Score `continuation` after `context` (1-D arrays of ids, the context not empty)."""

    context: Ids
    continuation: Ids


class PairScores(NamedTuple):
    """Scores of each pair, or request of several, in the caller's order."""

    log_probability: NDArray[np.float64]
    """(n,) natural logarithm of the continuation's probability; 0 for an empty one."""
    greedy: NDArray[np.bool_]
    """(n,) whether each token scored is the most probable one."""
    omitted: float = 0.0
    """Largest share left out of a sum at a boundary (`paribus.evaluation.prompts`)."""


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
    shared = [_shared_length(before, whole) for whole in wholes]
    split = min(shared, default=len(before))
    return Choices(
        before[:split] if split else np.array([eos_id]),
        [whole[split:] for whole in wholes],
        before[split:],
        sum(number < len(before) for number in shared),
    )


def _shared_length(first: Ids, second: Ids) -> int:
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


BRANCHING = 2
"""A sequence's branches may have this many times its context's tokens together."""


@dataclass
class Group:
    """Pairs that share a context; `members` are their places in the caller's list."""

    context: Ids
    members: list[int] = field(default_factory=list)
    continuations: list[Ids] = field(default_factory=list)
    length: int = 0
    """Tokens of the sequence."""

    def ids(self) -> list[Ids]:
        return [self.context, *self.continuations]

    def accepts(self, continuation: Ids) -> bool:
        """True if another branch keeps the sequence short enough."""
        branches = self.length - len(self.context) + len(continuation) - 1
        return not self.members or branches <= BRANCHING * len(self.context)

    def add(self, member: int, continuation: Ids) -> None:
        self.length = (self.length or len(self.context)) + len(continuation) - 1
        self.members.append(member)
        self.continuations.append(continuation)


def group_pairs(pairs: Sequence[Pair]) -> list[Group]:
    """Pairs with continuations that are not empty, by context, longest sequence first."""
    groups: list[Group] = []
    last: dict[bytes, Group] = {}
    for member, pair in enumerate(pairs):
        key = np.asarray(pair.context, np.int64).tobytes()
        group = last.get(key)
        if group is None or not group.accepts(pair.continuation):
            group = last[key] = Group(pair.context)
            groups.append(group)
        group.add(member, pair.continuation)
    return sorted(groups, key=lambda group: -group.length)


@dataclass(frozen=True)
class BranchBatch:
    """Padded sequences of some groups, and where each scored token is predicted."""

    ids: NDArray[np.int64]
    """(sequences, length), padded with 0."""
    positions: NDArray[np.int64]
    """(sequences, length), the position of each token in its own context and continuation."""
    branch: NDArray[np.int64]
    """(sequences, length): 0 in the context, 1, 2, ... in the branches, -1 in the padding."""
    rows: NDArray[np.int64]
    """(scored tokens,) sequence whose output predicts the token."""
    columns: NDArray[np.int64]
    """(scored tokens,) place of that output in the sequence."""
    targets: NDArray[np.int64]
    """(scored tokens,) the token."""
    members: NDArray[np.int64]
    """(scored tokens,) place of the pair in the caller's list."""

    @property
    def branched(self) -> bool:
        """True if a sequence has more than one branch; without that, causal attention is enough."""
        return bool(self.branch.max() > 1)


def make_batch(groups: Sequence[Group]) -> BranchBatch:
    """Lay out the sequences of `groups`."""
    shape = (len(groups), max(group.length for group in groups))
    ids, positions = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    branch = np.full(shape, -1, np.int64)
    scored: list[NDArray[np.int64]] = []
    for row, group in enumerate(groups):
        end = len(group.context)
        ids[row, :end], positions[row, :end], branch[row, :end] = group.context, np.arange(end), 0
        for number, (member, continuation) in enumerate(zip(group.members, group.continuations, strict=True), 1):
            start, size = end, len(continuation)
            end = start + size - 1
            ids[row, start:end], branch[row, start:end] = continuation[:-1], number
            positions[row, start:end] = len(group.context) + np.arange(size - 1)
            columns = np.concatenate([[len(group.context) - 1], np.arange(start, end)])
            scored.append(np.stack([np.full(size, row), columns, continuation, np.full(size, member)]))
    rows, columns, targets, members = np.concatenate(scored, axis=1).astype(np.int64)
    return BranchBatch(ids, positions, branch, rows, columns, targets, members)


Progress = Callable[[int], None]
"""Told the number of requests that were just finished."""


def progress_counter(listener: Callable[[int, int], None], requests: int, units: int | None = None) -> Progress:
    """Adds up the finished of `requests` and tells their share of `units`; None counts the requests themselves."""
    total, finished = requests if units is None else units, 0

    def report(count: int) -> None:
        nonlocal finished
        finished += count
        listener(total * finished // requests, total)

    return report
