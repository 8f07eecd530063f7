"""Several continuations of one context in one sequence, so that the context is computed once.

A sequence is a context followed by its branches: the continuations without their last tokens, which predict nothing.
A token of a branch attends to the context and to its own branch, at the positions it would have alone; so each
continuation gets the same score as in a sequence of its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from paribus.evaluation.prompts.pairs import Ids, Pair

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
        """All that decides its scores."""
        return [self.context, *self.continuations]

    def accepts(self, continuation: Ids) -> bool:
        """Whether another branch keeps the sequence short enough."""
        branches = self.length - len(self.context) + len(continuation) - 1
        return not self.members or branches <= BRANCHING * len(self.context)

    def add(self, member: int, continuation: Ids) -> None:
        """Append a branch."""
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
        """Whether a sequence has more than one branch; without that, causal attention is enough."""
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
