"""Whole documents to ids: pre-tokens are found, looked up in chunks, and encoded where they were never seen."""

import numpy as np

from paribus.native.compiler import (
    address_of,
    copy16,
    function,
    i32_at,
    i64_at,
    inline,
    lowest_bit,
    popcount,
    prefetch,
    u8_at,
    u64_at,
)
from paribus.tokenization.kernels import layout as at
from paribus.tokenization.kernels.classify import ONE, SPACES, ZERO
from paribus.tokenization.kernels.memo import (
    COUNT_SHIFT,
    KEY_BITS,
    LENGTH_SHIFT,
    MANY,
    add_long,
    add_short,
    find_long,
    hash_long,
    hash_words,
    keep_tail,
    short_key,
)
from paribus.tokenization.kernels.merge import mix
from paribus.tokenization.kernels.scan import encode_piece, has, scan

SKIPPED = ONE
"""Value in the place of a key without length: a pre-token that is dropped."""


@inline
def extract(starts, word, words, positions, count):
    """Append the positions of the set bits of the words from `word` on, up to a chunk; returns (count, next word).

    Eight are written at a time whatever their number, since a loop over single bits costs a wrong guess a word.
    """
    while word < words and count < at.CHUNK:
        rest = starts[word]
        found = popcount(rest)
        base = word << 6
        done = np.int64(0)
        while True:
            # Places after the last bit are written too, and written over by the next word: there is room for them.
            for index in range(8):
                positions[count + done + index] = base + lowest_bit(rest)
                rest &= rest - ONE
            done += 8
            if done >= found:
                break
        count += found
        word += 1
    return count, word


@inline
def look_ahead(memo, text, size, positions, count, keys):
    """Keys and slots of a chunk's pre-tokens, whose places in the memo are on their way when it is probed."""
    table, shift = memo[at.SHORT], np.uint64(memo[at.SHORT_SHIFT])
    masks, tail, begin = u64_at(memo[at.KEY_MASKS]), memo[at.TAIL], address_of(text)
    for index in range(count):
        start = positions[index]
        low, high = short_key(begin, tail, size, masks, start, positions[index + 1] - start)
        slot = hash_words(low, high) >> shift
        keys[3 * index], keys[3 * index + 1], keys[3 * index + 2] = low, high, slot
        # The memo is larger than the caches: so the misses of a whole chunk are waited for together, not one by one.
        prefetch(table + (np.int64(slot) << 5))


@function
def copy_ids(source, place, count, output, written):
    """Append ids from `place` on; returns the number written."""
    for index in range(count):
        output[written + index] = source[place + index]
    return written + count


@function
def encode_long(model, memo, text, start, end, output, written):
    """Append the ids of a pre-token of 16 bytes or more; returns (status, written)."""
    length = end - start
    # What is so long, as encoded data, hardly comes again, and would take the place of what does.
    if length > at.LONGEST_KEPT:
        count = encode_piece(model, memo, text, start, end, ZERO)
        if count < 0:
            return np.int64(at.REFUSED), written
        return np.int64(at.DONE), copy_ids(i32_at(memo[at.RESULT]), 0, count, output, written)
    value = hash_long(text, start, length)
    slot = find_long(memo, text, start, length, value)
    if slot >= 0:
        table = u64_at(memo[at.LONG])
        place, count = np.int64(table[4 * slot + 2]), np.int64(table[4 * slot + 3])
        return np.int64(at.DONE), copy_ids(i32_at(memo[at.IDS]), place, count, output, written)
    count = encode_piece(model, memo, text, start, end, ZERO)
    if count < 0:
        return np.int64(at.REFUSED), written
    status = add_long(memo, text, start, length, value, -1 - slot, count)
    return status, copy_ids(i32_at(memo[at.RESULT]), 0, count, output, written)


@function
def encode_short(model, memo, text, start, end, low, high, output, written):
    """Append the ids of a short pre-token that is not remembered; returns (status, written)."""
    count = encode_piece(model, memo, text, start, end, ZERO)
    if count < 0:
        return np.int64(at.REFUSED), written
    status = add_short(memo, low, high, count)
    return status, copy_ids(i32_at(memo[at.RESULT]), 0, count, output, written)


@function
def look_up(model, memo, text, positions, count, keys, output, written):
    """Append the ids of a chunk; returns (status, written)."""
    entries = memo[at.SHORT]
    table = u64_at(entries)
    mask = np.int64((ONE << np.uint64(64 - memo[at.SHORT_SHIFT])) - ONE)
    for index in range(count):
        low, high, slot = keys[3 * index], keys[3 * index + 1], np.int64(keys[3 * index + 2])
        # A short key has its length in the second word, so that is zero of long pre-tokens and dropped ones alone.
        if high == ZERO:
            if low == SKIPPED:
                continue
            status, written = encode_long(model, memo, text, positions[index], positions[index + 1], output, written)
            if status != at.DONE:
                return status, written
            continue
        while True:
            found = table[4 * slot + 1]
            # Both words in one test, without the number of ids above them: one guess of the processor a probe.
            if (table[4 * slot] ^ low) | ((found ^ high) & KEY_BITS) == ZERO:
                number = np.int64(found >> COUNT_SHIFT)
                if number != MANY:
                    # Always four ids: `written` says how many count. The output has room for those after the last.
                    copy16(address_of(output) + 4 * written, entries + (slot << 5) + 16)
                    written += number
                else:
                    place, number = np.int64(table[4 * slot + 2]), np.int64(table[4 * slot + 3])
                    written = copy_ids(i32_at(memo[at.IDS]), place, number, output, written)
                break
            if found == ZERO:
                status, written = encode_short(
                    model, memo, text, positions[index], positions[index + 1], low, high, output, written
                )
                if status != at.DONE:
                    return status, written
                break
            slot = slot + 1 & mask
    return np.int64(at.DONE), written


@function
def drop_spaces(memo, positions, count, keys):
    """Have the pre-tokens of a chunk that begin with a space passed over."""
    masks, offset = u64_at(memo[at.MASKS]), SPACES * memo[at.STRIDE]
    for index in range(count):
        if has(masks, offset, positions[index]):
            keys[3 * index], keys[3 * index + 1] = SKIPPED, ZERO


@function
def encode_remembering(model, memo, text, size, words, output, written):
    """Append the ids of a scanned document by way of the memo; returns (status, written)."""
    starts, positions, keys = u64_at(memo[at.STARTS]), i64_at(memo[at.POSITIONS]), u64_at(memo[at.KEYS])
    keep_tail(text, size, u8_at(memo[at.TAIL]))
    count = word = np.int64(0)
    while word < words:
        count, word = extract(starts, word, words, positions, count)
        pieces = count - 1
        if word == words:
            positions[count] = size
            pieces = count
        look_ahead(memo, text, size, positions, pieces, keys)
        if model[at.PATTERN] == at.STRIPPED:
            drop_spaces(memo, positions, pieces, keys)
        status, written = look_up(model, memo, text, positions, pieces, keys, output, written)
        if status != at.DONE:
            return status, written
        # The last start has no end yet: it is the first of the next chunk.
        positions[0] = positions[count - 1]
        count = np.int64(1)
    return np.int64(at.DONE), written


@function
def document_hash(text, size):
    """64 bits of a document's text."""
    if size >= 8:
        return hash_long(text, 0, size)
    word = ZERO
    for offset in range(size):
        word |= np.uint64(text[offset]) << np.uint64(offset << 3)
    return hash_words(word, np.uint64(size) << LENGTH_SHIFT)


@function
def encode_drawing(model, memo, text, size, words, output, written):
    """Append the ids of a scanned document whose every pre-token has random numbers of its own."""
    starts = u64_at(memo[at.STARTS])
    masks, spaces = u64_at(memo[at.MASKS]), SPACES * memo[at.STRIDE]
    seed = mix(np.uint64(model[at.SEED]) ^ document_hash(text, size))
    start, piece = np.int64(0), ZERO
    for word in range(words + 1):
        # After the last word comes one whose only bit is the end of the text.
        rest = starts[word] if word < words else ONE
        while rest != ZERO:
            end = (word << 6) + lowest_bit(rest) if word < words else size
            rest &= rest - ONE
            if end == start:
                continue
            if model[at.PATTERN] != at.STRIPPED or not has(masks, spaces, start):
                # Drawn by the place in the document, whatever was encoded before it and by whom.
                count = encode_piece(model, memo, text, start, end, mix(seed + piece))
                if count < 0:
                    return np.int64(at.REFUSED), written
                written = copy_ids(i32_at(memo[at.RESULT]), 0, count, output, written)
            piece += ONE
            start = end
    return np.int64(at.DONE), written


def encode_documents(addresses, lengths, count, model, memo, output, ends):
    """Append the ids of documents memo[NEXT] to `count`; `ends` is where each ends in the output.

    Returns DONE, or why it stopped before the document memo[NEXT]: what must grow, or REFUSED.
    """
    written = memo[at.WRITTEN]
    for document in range(memo[at.NEXT], count):
        size = lengths[document]
        # Noted before the document begins: when something must grow in its middle, it is encoded again from its start.
        memo[at.NEXT], memo[at.WRITTEN] = document, written
        # No text has more ids than bytes, and what copies four ids may write three after the last.
        if written + size + 16 > memo[at.OUTPUT_SIZE]:
            return at.GROW_OUTPUT
        if size > 0:
            text = u8_at(addresses[document])
            words = scan(
                text,
                size,
                model[at.PATTERN],
                u8_at(model[at.CLASSES]),
                u64_at(memo[at.MASKS]),
                memo[at.STRIDE],
                u64_at(memo[at.STARTS]),
                u8_at(memo[at.SCRATCH]),
            )
            if model[at.ENCODER] == at.DROPOUT:
                status, written = encode_drawing(model, memo, text, size, words, output, written)
            else:
                status, written = encode_remembering(model, memo, text, size, words, output, written)
            if status != at.DONE:
                return status
        ends[document] = written
    memo[at.NEXT], memo[at.WRITTEN] = count, written
    return at.DONE
