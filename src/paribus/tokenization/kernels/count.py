"""Count distinct pre-tokens of texts in open-addressing tables, and add tables up.

A kernel that needs a larger buffer says so and goes on when it is called again. A long text is cut for scanning where
every pattern cuts it: before a blank between two ASCII letters.
"""

import numpy as np

from paribus.native.compiler import function, i64_at, inline, load64, lowest_bit, prefetch, store64, u8_at, u64_at
from paribus.tokenization.kernels import counting_layout as at
from paribus.tokenization.kernels.classify import ONE, SPACES, ZERO
from paribus.tokenization.kernels.layout import NONE, STRIPPED
from paribus.tokenization.kernels.memo import (
    LENGTH_SHIFT,
    SHORTEST_LONG,
    hash_long,
    hash_words,
    keep_tail,
    same_bytes,
    short_key,
)
from paribus.tokenization.kernels.scan import has, scan


@inline
def slots(shift):
    """Size of a table."""
    return np.int64(1) << (64 - shift)


@inline
def add_short(state, table, slot, mask, low, high, count):
    """Add to the count of a short pre-token whose search begins at `slot`."""
    while table[4 * slot + 1] != high or table[4 * slot] != low:
        # The second word has the length, so that it is zero in empty slots alone.
        if table[4 * slot + 1] == ZERO:
            table[4 * slot], table[4 * slot + 1] = low, high
            state[at.SHORT_USED] += 1
            state[at.TOTAL_BYTES] += np.int64(high >> LENGTH_SHIFT)
            break
        slot = slot + 1 & mask
    table[4 * slot + 2] += count


@function
def add_long(state, text, size, count):
    """Add to the count of a longer pre-token."""
    table, kept = u64_at(state[at.LONG]), u8_at(state[at.BYTES])
    mask = slots(state[at.LONG_SHIFT]) - 1
    value = hash_long(text, np.int64(0), size)
    slot = np.int64(value >> np.uint64(state[at.LONG_SHIFT]))
    while table[4 * slot] != ZERO:
        place = np.int64(table[4 * slot + 1])
        like = table[4 * slot] == value and np.int64(table[4 * slot + 2]) == size
        if like and same_bytes(text, np.int64(0), kept, place, size):
            table[4 * slot + 3] += count
            return
        slot = slot + 1 & mask
    # Eight bytes at a time, the last eight once more where they overlap: longer pre-tokens have sixteen or more.
    place = state[at.BYTES_USED]
    for offset in range(0, size - 7, 8):
        store64(kept, place + offset, load64(text, offset))
    store64(kept, place + size - 8, load64(text, size - 8))
    table[4 * slot], table[4 * slot + 1] = value, np.uint64(place)
    table[4 * slot + 2], table[4 * slot + 3] = np.uint64(size), count
    state[at.BYTES_USED] = place + size
    state[at.LONG_USED] += 1
    state[at.TOTAL_BYTES] += size


@function
def lacking(state, short, long, size):
    """Array that must grow before so many pre-tokens, the longer of `size` bytes, can be added; DONE if nothing."""
    if 2 * (state[at.SHORT_USED] + short) > slots(state[at.SHORT_SHIFT]):
        return np.int64(at.GROW_SHORT)
    if 2 * (state[at.LONG_USED] + long) > slots(state[at.LONG_SHIFT]):
        return np.int64(at.GROW_LONG)
    if state[at.BYTES_USED] + size > state[at.BYTES_SIZE]:
        state[at.WANTED] = state[at.BYTES_USED] + size
        return np.int64(at.GROW_BYTES)
    return np.int64(at.DONE)


@function
def count_kept(state):
    """Count the pre-tokens that were kept for looking up together."""
    keys, longer = u64_at(state[at.SHORT_KEYS]), i64_at(state[at.LONG_KEYS])
    table, mask = u64_at(state[at.SHORT]), slots(state[at.SHORT_SHIFT]) - 1
    shift = np.uint64(state[at.SHORT_SHIFT])
    for index in range(state[at.SHORT_KEPT]):
        slot = np.int64(keys[3 * index + 2] >> shift)
        add_short(state, table, slot, mask, keys[3 * index], keys[3 * index + 1], ONE)
    for index in range(state[at.LONG_KEPT]):
        add_long(state, u8_at(longer[2 * index]), longer[2 * index + 1], ONE)
    state[at.SHORT_KEPT] = state[at.LONG_KEPT] = state[at.LONG_BYTES] = 0


@function
def keep_long(state, address, length):
    """Keep a pre-token of more than fifteen bytes."""
    longer, kept = i64_at(state[at.LONG_KEYS]), state[at.LONG_KEPT]
    longer[2 * kept], longer[2 * kept + 1] = address, length
    state[at.LONG_KEPT] = kept + 1
    state[at.LONG_BYTES] += length


@function
def keep_word(state):
    """Keep the pre-tokens that end in one word of the start masks, and the last one at the end of the stretch."""
    address, size = i64_at(state[at.TEXTS])[state[at.TEXT]], i64_at(state[at.SIZES])[state[at.TEXT]]
    keys, kept = u64_at(state[at.SHORT_KEYS]), state[at.SHORT_KEPT]
    key_masks, tail = u64_at(state[at.KEY_MASKS]), state[at.TAIL]
    table, shift = state[at.SHORT], np.uint64(state[at.SHORT_SHIFT])
    masks, spaces, stripped = u64_at(state[at.MASKS]), SPACES * state[at.STRIDE], state[at.PATTERN] == STRIPPED
    word, span, begin, end = state[at.WORD], state[at.SPAN], state[at.BEGIN], state[at.END]
    rest, last = u64_at(state[at.STARTS])[word], ((word + 1) << 6) >= end - begin
    while rest != ZERO or last:
        position = begin + (word << 6) + lowest_bit(rest)
        # Behind the last begin of a stretch its end closes the last pre-token.
        if rest == ZERO:
            position, last = end, False
        rest &= rest - ONE
        start, length = span, position - span
        span = position
        if length == 0 or (stripped and has(masks, spaces, start - begin)):
            continue
        if length < SHORTEST_LONG:
            low, high = short_key(address, tail, size, key_masks, start, length)
            value = hash_words(low, high)
            keys[3 * kept], keys[3 * kept + 1], keys[3 * kept + 2] = low, high, value
            prefetch(table + 32 * np.int64(value >> shift))
            kept += 1
        else:
            keep_long(state, address + start, length)
    state[at.WORD], state[at.SPAN], state[at.SHORT_KEPT] = word + 1, span, kept


@inline
def is_letter(byte):
    """ASCII letters."""
    return np.uint8((byte | np.uint8(0x20)) - np.uint8(0x61)) < np.uint8(26)


@function
def stretch_end(text, begin, size, wanted):
    """Place to cut a text so that about `wanted` bytes from `begin` on are scanned on their own."""
    if size - begin <= wanted:
        return size
    for step in (np.int64(-1), np.int64(1)):
        position = begin + wanted
        while begin + 1 < position < size - 1:
            if text[position] == 0x20 and is_letter(text[position - 1]) and is_letter(text[position + 1]):
                return position
            position += step
    return size


@function
def next_stretch(state):
    """Scan the next stretch; returns DONE, GROW_MASKS, or -1 where the texts are at their end."""
    size = i64_at(state[at.SIZES])
    while state[at.END] >= size[state[at.TEXT]]:
        state[at.TEXT] += 1
        state[at.END] = 0
        if state[at.TEXT] >= state[at.TEXT_COUNT]:
            return np.int64(-1)
    address = i64_at(state[at.TEXTS])[state[at.TEXT]]
    text, begin, end = u8_at(address), state[at.END], size[state[at.TEXT]]
    if begin == 0:
        keep_tail(text, end, u8_at(state[at.TAIL]))
    if state[at.PATTERN] != NONE:
        end = stretch_end(text, begin, end, state[at.SCANNED])
    words = (end - begin + 63) >> 6
    if words > state[at.STRIDE]:
        state[at.WANTED] = words
        return np.int64(at.GROW_MASKS)
    masks, starts, scratch = u64_at(state[at.MASKS]), u64_at(state[at.STARTS]), u8_at(state[at.SCRATCH])
    pattern, classes = state[at.PATTERN], u8_at(state[at.CLASSES])
    scan(u8_at(address + begin), end - begin, pattern, classes, masks, state[at.STRIDE], starts, scratch)
    state[at.BEGIN] = state[at.SPAN] = begin
    state[at.END], state[at.WORD] = end, 0
    return np.int64(at.DONE)


def count_texts(state):
    """Count the pre-tokens of the texts; TEXT, BEGIN and END are 0 at first. Returns DONE or what must grow."""
    while True:
        ended = False
        # One word of the masks ends at most 64 pre-tokens, and the end of its stretch one more.
        while state[at.SHORT_KEPT] + state[at.LONG_KEPT] < at.KEPT - 65:
            if state[at.TEXT] >= state[at.TEXT_COUNT]:
                ended = True
                break
            if (state[at.WORD] << 6) < state[at.END] - state[at.BEGIN]:
                keep_word(state)
                continue
            status = next_stretch(state)
            if status > 0:
                return status
        status = lacking(state, state[at.SHORT_KEPT], state[at.LONG_KEPT], state[at.LONG_BYTES])
        if status != at.DONE:
            return status
        count_kept(state)
        if ended:
            return np.int64(at.DONE)


def add_counts(state, other):
    """Add the counts of another table, from its NEXT_SLOT on; returns DONE or what must grow in `state`."""
    table, longer, kept = u64_at(other[at.SHORT]), u64_at(other[at.LONG]), other[at.BYTES]
    short_slots = slots(other[at.SHORT_SHIFT])
    while other[at.NEXT_SLOT] < short_slots:
        slot = 4 * other[at.NEXT_SLOT]
        if table[slot + 1] != ZERO:
            status = lacking(state, np.int64(1), np.int64(0), np.int64(0))
            if status != at.DONE:
                return status
            first = np.int64(hash_words(table[slot], table[slot + 1]) >> np.uint64(state[at.SHORT_SHIFT]))
            mask = slots(state[at.SHORT_SHIFT]) - 1
            add_short(state, u64_at(state[at.SHORT]), first, mask, table[slot], table[slot + 1], table[slot + 2])
        other[at.NEXT_SLOT] += 1
    while other[at.NEXT_SLOT] < short_slots + slots(other[at.LONG_SHIFT]):
        slot = 4 * (other[at.NEXT_SLOT] - short_slots)
        if longer[slot] != ZERO:
            size = np.int64(longer[slot + 2])
            status = lacking(state, np.int64(0), np.int64(1), size)
            if status != at.DONE:
                return status
            add_long(state, u8_at(kept + np.int64(longer[slot + 1])), size, longer[slot + 3])
        other[at.NEXT_SLOT] += 1
    return np.int64(at.DONE)


def add_words(state, address, offsets, words, counts):
    """Add counts of words that lie one after another at `address`, from word NEXT_SLOT on; returns as `add_counts`."""
    spellings = u8_at(address)
    while state[at.NEXT_SLOT] < words:
        word = state[at.NEXT_SLOT]
        start, size, count = offsets[word], offsets[word + 1] - offsets[word], np.uint64(counts[word])
        short = size < SHORTEST_LONG
        status = lacking(state, np.int64(short), np.int64(not short), np.int64(0) if short else size)
        if status != at.DONE:
            return status
        if short:
            low, high = ZERO, np.uint64(size) << LENGTH_SHIFT
            for offset in range(size):
                byte = np.uint64(spellings[start + offset]) << np.uint64((offset & 7) << 3)
                if offset < 8:
                    low |= byte
                else:
                    high |= byte
            first = np.int64(hash_words(low, high) >> np.uint64(state[at.SHORT_SHIFT]))
            add_short(state, u64_at(state[at.SHORT]), first, slots(state[at.SHORT_SHIFT]) - 1, low, high, count)
        else:
            add_long(state, u8_at(address + start), size, count)
        state[at.NEXT_SLOT] += 1
    return np.int64(at.DONE)


def list_words(state, spellings, offsets, counts):
    """Write the bytes, offsets (n + 1) and counts of all distinct pre-tokens, in no order; returns how many."""
    number, place = np.int64(0), np.int64(0)
    table, longer, kept = u64_at(state[at.SHORT]), u64_at(state[at.LONG]), u8_at(state[at.BYTES])
    offsets[0] = 0
    for slot in range(slots(state[at.SHORT_SHIFT])):
        high = table[4 * slot + 1]
        if high == ZERO:
            continue
        size = np.int64(high >> LENGTH_SHIFT)
        for offset in range(size):
            word = table[4 * slot] if offset < 8 else high
            spellings[place + offset] = np.uint8(word >> np.uint64((offset & 7) << 3) & np.uint64(0xFF))
        place += size
        counts[number] = np.int64(table[4 * slot + 2])
        number += 1
        offsets[number] = place
    for slot in range(slots(state[at.LONG_SHIFT])):
        if longer[4 * slot] == ZERO:
            continue
        start, size = np.int64(longer[4 * slot + 1]), np.int64(longer[4 * slot + 2])
        for offset in range(size):
            spellings[place + offset] = kept[start + offset]
        place += size
        counts[number] = np.int64(longer[4 * slot + 3])
        number += 1
        offsets[number] = place
    return number
