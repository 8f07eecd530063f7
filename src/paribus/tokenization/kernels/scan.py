"""Where pre-tokens begin: the patterns of `pretokenizers`, by bit masks. Bit i of `starts` is byte i of the text."""

import numpy as np

from paribus.native.intrinsics import function, inline, lowest_bit
from paribus.tokenization.kernels.classes import (
    APOSTROPHES,
    BLANKS,
    LETTERS,
    NUMBERS,
    ONE,
    SPACES,
    TAILS,
    ZERO,
    classify,
    continues,
    low_bits,
)
from paribus.tokenization.kernels.gpt4 import gpt4_starts
from paribus.tokenization.kernels.layout import GPT2, GPT2_DIGITS, GPT4, NONE, PUNCTUATION, STRIPPED


@function
def contraction(text, position, size):
    """Bytes of 's, 't, 'm, 'd, 're, 've or 'll at an apostrophe; 0 where there is none."""
    if position + 1 >= size:
        return np.int64(0)
    first = text[position + 1]
    if first == 0x73 or first == 0x74 or first == 0x6D or first == 0x64:
        return np.int64(2)
    if position + 2 >= size:
        return np.int64(0)
    second = text[position + 2]
    if (second == 0x65 and (first == 0x72 or first == 0x76)) or (first == 0x6C and second == 0x6C):
        return np.int64(3)
    return np.int64(0)


@inline
def last_spaces(text, word, spaces, following, tails, starts):
    """First bytes of the last space of each run; one that began in the word before is marked there."""
    ends = spaces & ~following
    inside = ends & tails
    ends &= ~tails
    while inside != ZERO:
        position = (word << 6) + lowest_bit(inside)
        inside &= inside - ONE
        while continues(text[position]):
            position -= 1
        if position >> 6 == word:
            ends |= ONE << np.uint64(position & 63)
        else:
            starts[position >> 6] |= ONE << np.uint64(position & 63)
    return ends


@function
def gpt2_starts(text, size, single_digits, masks, stride, starts):
    """GPT-2's pattern; with `single_digits` every number is a pre-token and takes no blank before it."""
    words = (size + 63) >> 6
    top = np.uint64(63)
    before_letters = before_numbers = before_spaces = before_others = before_blanks = ZERO
    forced = cleared = ZERO
    for word in range(words):
        valid = low_bits(size - (word << 6))
        letters, numbers = masks[LETTERS * stride + word], masks[NUMBERS * stride + word]
        spaces, blank = masks[SPACES * stride + word], masks[BLANKS * stride + word]
        others = ~(letters | numbers | spaces) & valid
        # A run begins where its class was not the byte before, in the word before if need be. A blank in front of it
        # belongs to it: then the blank, which the last of a run of spaces always marks, begins the pre-token instead.
        free = ~(blank << ONE | before_blanks)
        found = letters & ~(letters << ONE | before_letters) & free
        found |= others & ~(others << ONE | before_others) & free
        found |= spaces & ~(spaces << ONE | before_spaces)
        tails = masks[TAILS * stride + word]
        if single_digits != 0:
            found |= numbers & ~tails
        else:
            found |= numbers & ~(numbers << ONE | before_numbers) & free
        following = spaces >> ONE
        if word + 1 < words:
            following |= masks[SPACES * stride + word + 1] << top
        else:
            # Nothing follows the spaces at the end of the text, so all of them are one pre-token: \s+(?!\S) and \s+.
            following |= ~(valid >> ONE)
        found |= last_spaces(text, word, spaces, following, tails, starts)
        # What a contraction in the last bytes of the word before decided for the first of this one.
        found = found & ~cleared | forced
        cleared = forced = ZERO
        quotes = masks[APOSTROPHES * stride + word] & found
        while quotes != ZERO:
            bit = lowest_bit(quotes)
            quotes &= quotes - ONE
            length = contraction(text, (word << 6) + bit, size)
            if length == 0:
                continue
            # The letters belong to the apostrophe before them, and whatever comes after them begins anew.
            if bit + 1 < 64:
                found &= ~(ONE << np.uint64(bit + 1))
            else:
                cleared |= ONE
            if (word << 6) + bit + length < size:
                if bit + length < 64:
                    found |= ONE << np.uint64(bit + length)
                else:
                    forced |= ONE << np.uint64(bit + length - 64)
        starts[word] = found
        before_letters, before_numbers, before_spaces = letters >> top, numbers >> top, spaces >> top
        before_others, before_blanks = others >> top, blank >> top
    return words


@function
def space_starts(size, stripped, masks, stride, starts):
    """A pre-token at every space and at the text's begin; with `stripped`, where spaces begin and where they end."""
    words = (size + 63) >> 6
    before = ZERO
    for word in range(words):
        spaces = masks[SPACES * stride + word]
        if stripped != 0:
            found = spaces ^ (spaces << ONE | before)
        else:
            found = spaces & ~masks[TAILS * stride + word]
        starts[word] = found & low_bits(size - (word << 6))
        before = spaces >> np.uint64(63)
    starts[0] |= ONE
    return words


@function
def punctuation_starts(size, masks, stride, starts):
    """A pre-token at every character that is no letter, mark or number, and at the text's begin."""
    words = (size + 63) >> 6
    for word in range(words):
        kept = masks[LETTERS * stride + word] | masks[NUMBERS * stride + word] | masks[TAILS * stride + word]
        starts[word] = ~kept & low_bits(size - (word << 6))
    starts[0] |= ONE
    return words


@function
def scan(text, size, pattern, table, masks, stride, starts, scratch):
    """Mark the first byte of every pre-token of a text that is not empty; returns the number of words written."""
    if pattern == NONE:
        words = (size + 63) >> 6
        for word in range(words):
            starts[word] = ZERO
        starts[0] = ONE
        return words
    classify(text, size, table, masks, stride, scratch)
    if pattern == GPT2 or pattern == GPT2_DIGITS:
        return gpt2_starts(text, size, np.int64(pattern == GPT2_DIGITS), masks, stride, starts)
    if pattern == GPT4:
        return gpt4_starts(text, size, masks, stride, starts)
    if pattern == PUNCTUATION:
        return punctuation_starts(size, masks, stride, starts)
    return space_starts(size, np.int64(pattern == STRIPPED), masks, stride, starts)


def pretoken_starts(text, size, pattern, table, masks, stride, starts, scratch, positions):
    """Write the byte position of every pre-token to `positions`; returns how many there are."""
    count = np.int64(0)
    if size == 0:
        return count
    for word in range(scan(text, size, pattern, table, masks, stride, starts, scratch)):
        rest = starts[word]
        while rest != ZERO:
            positions[count] = (word << 6) + lowest_bit(rest)
            rest &= rest - ONE
            count += 1
    return count
