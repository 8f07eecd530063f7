"""Unicode classes of a UTF-8 text as bit masks, 64 bytes a word.

Bit i of word w stands for byte 64 w + i. Six masks lie one after another in `masks`, `stride` words each: letters,
numbers and spaces (all bytes of such a character), blanks (U+0020), apostrophes (U+0027), and tails (bytes that
continue a character of several bytes that is no letter). What is no UTF-8 counts as one other character a byte.
"""

import numpy as np

from paribus.native.compiler import (
    apostrophes,
    ascii_digits,
    ascii_letters,
    ascii_spaces,
    blanks,
    function,
    inline,
    lowest_bit,
    not_ascii,
)

LETTERS, NUMBERS, SPACES, BLANKS, APOSTROPHES, TAILS = range(6)
LETTER, NUMBER, SPACE = 1, 2, 4
"""Codes of the class table; 0 is everything else."""
ONE, ZERO, ALL = np.uint64(1), np.uint64(0), np.uint64(0xFFFFFFFFFFFFFFFF)


@inline
def continues(byte):
    """True if a byte continues a character of several bytes."""
    return (np.int64(byte) & 0xC0) == 0x80


@function
def decode(text, position, end):
    """Codepoint and length of the character at `position`; -1 and 1 where there is no valid UTF-8."""
    first = np.int64(text[position])
    if first < 0x80:
        return first, np.int64(1)
    length = np.int64(2) if first < 0xE0 else np.int64(3) if first < 0xF0 else np.int64(4)
    if first < 0xC2 or first > 0xF4 or position + length > end:
        return np.int64(-1), np.int64(1)
    codepoint = first & (0x7F >> length)
    for offset in range(1, length):
        byte = np.int64(text[position + offset])
        if byte & 0xC0 != 0x80:
            return np.int64(-1), np.int64(1)
        codepoint = codepoint << 6 | byte & 0x3F
    # Longer forms than needed and surrogates are no UTF-8.
    smallest = np.int64(0x80) if length == 2 else np.int64(0x800) if length == 3 else np.int64(0x10000)
    if codepoint < smallest or codepoint > 0x10FFFF or 0xD800 <= codepoint < 0xE000:
        return np.int64(-1), np.int64(1)
    return codepoint, length


@inline
def low_bits(count):
    """A word whose `count` lowest bits are one, 0 <= count <= 64."""
    return ALL if count >= 64 else (ONE << np.uint64(count)) - ONE


@function
def classify(text, size, table, masks, stride, scratch):
    """Fill the masks of a text of `size` bytes; `scratch` has 64 bytes."""
    words = (size + 63) >> 6
    carried_letters = carried_numbers = carried_spaces = carried_tails = taken = ZERO
    for word in range(words):
        base = word << 6
        source, index = text, base
        # 64 bytes are read at once, which must not be those after the text.
        if base + 64 > size:
            for byte in range(64):
                scratch[byte] = text[base + byte] if base + byte < size else np.uint8(0)
            source, index = scratch, np.int64(0)
        letters = ascii_letters(source, index) | carried_letters
        numbers = ascii_digits(source, index) | carried_numbers
        spaces = ascii_spaces(source, index) | carried_spaces
        tails = carried_tails
        carried_letters = carried_numbers = carried_spaces = carried_tails = ZERO
        # Bytes of a character that began in the word before are none that begin here.
        rest = not_ascii(source, index) & ~taken
        taken = ZERO
        while rest != ZERO:
            bit = lowest_bit(rest)
            codepoint, length = decode(text, base + bit, size)
            span = low_bits(length) << np.uint64(bit)
            spill = low_bits(bit + length - 64) if bit + length > 64 else ZERO
            rest &= ~span
            taken = spill
            kind = np.int64(table[codepoint]) if codepoint >= 0 else np.int64(0)
            if kind == LETTER:
                letters |= span
                carried_letters = spill
            else:
                first = ONE << np.uint64(bit)
                tails |= span & ~first
                carried_tails = spill
                if kind == NUMBER:
                    numbers |= span
                    carried_numbers = spill
                elif kind == SPACE:
                    spaces |= span
                    carried_spaces = spill
        masks[LETTERS * stride + word] = letters
        masks[NUMBERS * stride + word] = numbers
        masks[SPACES * stride + word] = spaces
        masks[BLANKS * stride + word] = blanks(source, index)
        masks[APOSTROPHES * stride + word] = apostrophes(source, index)
        masks[TAILS * stride + word] = tails
    return words
