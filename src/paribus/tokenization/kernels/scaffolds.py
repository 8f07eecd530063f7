"""Scaffold-BPE's bookkeeping: marking, pushing back, readmitting."""

from paribus.native.intrinsics import function, i64_at, u8_at
from paribus.tokenization.kernels.pair_queue import pop, push
from paribus.tokenization.kernels.training_layout import (
    HEAP,
    HEAP_USED,
    LIVE,
    NORMAL,
    SCAFFOLD,
    THRESHOLD,
    TOKEN,
    UNITS,
)


@function
def mark(state, token):
    """Make a token a scaffold if it fell below the head of the queue, which is true, and push it back."""
    scaffold, live, heap = u8_at(state[SCAFFOLD]), i64_at(state[LIVE]), i64_at(state[HEAP])
    # A unit stays, however rare: without it some text could not be encoded.
    if token < state[UNITS] or scaffold[token] != 0 or live[token] >= heap[0]:
        return
    scaffold[token] = 1
    state[NORMAL] -= 1
    if live[token] >= state[THRESHOLD]:
        state[HEAP_USED] = push(heap, state[HEAP_USED], live[token], TOKEN + token)


@function
def readmit(state, token):
    """Make the scaffold token at the head of the queue normal again, at its old rank."""
    u8_at(state[SCAFFOLD])[token] = 0
    state[NORMAL] += 1
    state[HEAP_USED] = pop(i64_at(state[HEAP]), state[HEAP_USED])
