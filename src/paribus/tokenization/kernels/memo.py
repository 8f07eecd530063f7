"""A thread's memory of pre-tokens, in two tables of open addressing with four words per entry.

An entry of a short pre-token (up to 15 bytes, 997 of 1,000 in English) holds eight of its bytes; the other seven, its
length in bits 56 to 59 and the number of its ids in bits 60 to 63; and up to four ids, or their place and number
(`MANY`). One layout for all of them costs memory, but the processor never has to guess which one comes next: that
decides the speed. An entry of a longer one holds its hash, its place among the kept bytes, the place of its ids, and
their number.
"""

import numpy as np

from paribus.native.compiler import function, i32_at, inline, load64, multiply_high, u8_at, u64_at
from paribus.tokenization.kernels import layout as at
from paribus.tokenization.kernels.classify import ONE, ZERO

KEY_BITS = np.uint64(0x0FFFFFFFFFFFFFFF)
COUNT_SHIFT = np.uint64(60)
MANY = np.int64(15)
BITS = np.uint64(32)
SHORTEST_LONG = 16
LENGTH_SHIFT = np.uint64(56)
FIRST = np.uint64(0x9E3779B97F4A7C15)
SECOND = np.uint64(0xC2B2AE3D27D4EB4F)


@function
def keep_ids(memo, count):
    """Copy the result to the kept ids; returns their place, or -1 where there is no room."""
    used = memo[at.IDS_USED]
    if used + count > memo[at.IDS_SIZE]:
        return np.int64(-1)
    ids, result = i32_at(memo[at.IDS]), i32_at(memo[at.RESULT])
    for index in range(count):
        ids[used + index] = result[index]
    memo[at.IDS_USED] = used + count
    return used


@function
def add_short(memo, low, high, count):
    """Remember the result for a new short key; returns what must grow, or DONE."""
    free = memo[at.SHORT_FREE]
    # Below zero the table may not grow any more: other pre-tokens are encoded each time.
    if free <= 0:
        return np.int64(at.GROW_SHORT if free == 0 else at.DONE)
    result = i32_at(memo[at.RESULT])
    ids = kept = ZERO
    size = count
    if count <= 4:
        for index in range(min(count, 2)):
            ids |= np.uint64(result[index]) << np.uint64(32 * index)
        for index in range(2, count):
            kept |= np.uint64(result[index]) << np.uint64(32 * (index - 2))
    else:
        place = keep_ids(memo, count)
        if place < 0:
            return np.int64(at.GROW_IDS)
        ids, kept, size = np.uint64(place), np.uint64(count), MANY
    table, shift = u64_at(memo[at.SHORT]), np.uint64(memo[at.SHORT_SHIFT])
    mask = np.int64((ONE << (np.uint64(64) - shift)) - ONE)
    slot = np.int64(hash_words(low, high) >> shift)
    while table[4 * slot + 1] != ZERO:
        slot = slot + 1 & mask
    table[4 * slot], table[4 * slot + 1] = low, high | np.uint64(size) << COUNT_SHIFT
    table[4 * slot + 2], table[4 * slot + 3] = ids, kept
    memo[at.SHORT_FREE] -= 1
    return np.int64(at.DONE)


@function
def hash_long(text, start, length):
    """Hash of a longer pre-token, never zero."""
    value = np.uint64(length) * SECOND
    for offset in range(0, length - 7, 8):
        value = (value ^ load64(text, start + offset)) * FIRST
        value ^= value >> BITS
    # The last eight bytes are read at once, some of them for the second time, instead of the rest byte by byte.
    value = (value ^ load64(text, start + length - 8)) * FIRST
    value ^= value >> np.uint64(29)
    # Zero stands for an empty slot.
    return value * SECOND | ONE


@function
def same_bytes(left, left_start, right, right_start, length):
    """True if two stretches of at least eight bytes are equal."""
    for offset in range(0, length - 7, 8):
        if load64(left, left_start + offset) != load64(right, right_start + offset):
            return False
    last = length - 8
    return load64(left, left_start + last) == load64(right, right_start + last)


@function
def find_long(memo, text, start, length, value):
    """Slot of a longer pre-token with hash `value`, or -1 - the empty slot where it belongs."""
    table, shift = u64_at(memo[at.LONG]), np.uint64(memo[at.LONG_SHIFT])
    kept = u8_at(memo[at.BYTES])
    mask = np.int64((ONE << (np.uint64(64) - shift)) - ONE)
    slot = np.int64(value >> shift)
    while table[4 * slot] != ZERO:
        # Other bytes may have the same hash, so the bytes are compared.
        if table[4 * slot] == value:
            place = table[4 * slot + 1]
            begin = np.int64(place >> np.uint64(8))
            if np.int64(place & np.uint64(0xFF)) == length and same_bytes(text, start, kept, begin, length):
                return slot
        slot = slot + 1 & mask
    return -1 - slot


@function
def add_long(memo, text, start, length, value, slot, count):
    """Remember the result for a longer pre-token in its empty slot; returns what must grow, or DONE."""
    free = memo[at.LONG_FREE]
    if length > at.LONGEST_KEPT:
        return np.int64(at.DONE)
    if free <= 0:
        return np.int64(at.GROW_LONG if free == 0 else at.DONE)
    used = memo[at.BYTES_USED]
    if used + length > memo[at.BYTES_SIZE]:
        return np.int64(at.GROW_BYTES)
    place = keep_ids(memo, count)
    if place < 0:
        return np.int64(at.GROW_IDS)
    kept, table = u8_at(memo[at.BYTES]), u64_at(memo[at.LONG])
    for offset in range(length):
        kept[used + offset] = text[start + offset]
    memo[at.BYTES_USED] = used + length
    table[4 * slot], table[4 * slot + 1] = value, np.uint64(used) << np.uint64(8) | np.uint64(length)
    table[4 * slot + 2], table[4 * slot + 3] = np.uint64(place), np.uint64(count)
    memo[at.LONG_FREE] -= 1
    return np.int64(at.DONE)


def grow_table(old, size, table, shift, longer):
    """Put the entries of an old table of `size` slots into an empty larger one; returns their number.

    A slot is taken where the second word of an entry is not zero, or, of `longer` pre-tokens, the first.
    """
    moved, taken = np.int64(0), np.int64(0 if longer != 0 else 1)
    mask = np.int64((ONE << np.uint64(64 - shift)) - ONE)
    for index in range(size):
        if old[4 * index + taken] == ZERO:
            continue
        low, high = old[4 * index], old[4 * index + 1]
        value = low if longer != 0 else hash_words(low, high & KEY_BITS)
        slot = np.int64(value >> np.uint64(shift))
        while table[4 * slot + taken] != ZERO:
            slot = slot + 1 & mask
        for part in range(4):
            table[4 * slot + part] = old[4 * index + part]
        moved += 1
    return moved


@inline
def hash_words(low, high):
    """64 well-mixed bits of a key of two words: both halves of a product of 128 bits, folded."""
    left, right = low ^ FIRST, high ^ SECOND
    return multiply_high(left, right) ^ (left * right)


@function
def keep_tail(text, size, tail):
    """Copy the last sixteen bytes of a text and sixteen zeros to `tail`, so that all bytes of a key can be read."""
    begin = tail_begin(size)
    for offset in range(16):
        tail[offset] = text[begin + offset] if begin + offset < size else np.uint8(0)
        tail[16 + offset] = np.uint8(0)


@inline
def tail_begin(size):
    """Begin of the tail of a text."""
    return max(size - 16, np.int64(0))


@inline
def short_key(text, tail, size, masks, start, length):
    """Both words of the pre-token at `start`, zeros where it is longer; `text` and `tail` are addresses."""
    # Sixteen bytes are read whatever the length: near the end of the text from a copy that has zeros after it.
    source = u8_at(text if start + 16 <= size else tail - tail_begin(size))
    kept = min(length, np.int64(SHORTEST_LONG))
    low = load64(source, start) & masks[2 * kept]
    high = load64(source, start + 8) & masks[2 * kept + 1]
    return low, high | np.uint64(kept & (SHORTEST_LONG - 1)) << LENGTH_SHIFT
