"""The cl100k pattern of GPT-4, one pre-token after another, by runs of the class masks."""

import numpy as np

from paribus.native.intrinsics import function, inline, lowest_bit
from paribus.tokenization.kernels.classes import LETTERS, NUMBERS, ONE, SPACES, ZERO, continues, decode


@inline
def has(masks, offset, position):
    """Whether the byte at `position` is in the mask that begins at word `offset`."""
    return (masks[offset + (position >> 6)] >> np.uint64(position & 63)) & ONE != ZERO


@function
def run_end(masks, offset, position, size):
    """First byte from `position` on that is not in the mask."""
    word = position >> 6
    # Bits before the position are cleared: no run that begins here ends there.
    absent = ~masks[offset + word] >> np.uint64(position & 63) << np.uint64(position & 63)
    words = (size + 63) >> 6
    while absent == ZERO:
        word += 1
        if word >= words:
            return size
        absent = ~masks[offset + word]
    return min((word << 6) + lowest_bit(absent), size)


@function
def any_case_contraction(text, position, size):
    """Bytes of a contraction in any case at an apostrophe (the long s counts as s); 0 where there is none."""
    if position + 1 >= size:
        return np.int64(0)
    # This bit tells small letters from capitals, so either gives the small one.
    first = np.int64(text[position + 1]) | 0x20
    if first == 0x73 or first == 0x74 or first == 0x6D or first == 0x64:
        return np.int64(2)
    if position + 2 >= size:
        return np.int64(0)
    if text[position + 1] == 0xC5 and text[position + 2] == 0xBF:
        return np.int64(3)
    second = np.int64(text[position + 2]) | 0x20
    if (second == 0x65 and (first == 0x72 or first == 0x76)) or (first == 0x6C and second == 0x6C):
        return np.int64(3)
    return np.int64(0)


@inline
def is_line_end(byte):
    """Carriage return or line feed."""
    return byte == 0x0A or byte == 0x0D


@function
def spaces_end(text, position, masks, stride, size):
    """End of a pre-token of spaces: after the last line end, else before the last space that something follows."""
    end = run_end(masks, SPACES * stride, position, size)
    last = end
    while last > position and not is_line_end(text[last - 1]):
        last -= 1
    if last > position:
        return last
    if end == size:
        return end
    # A space of several bytes goes to what follows as a whole.
    before = end - 1
    while continues(text[before]):
        before -= 1
    # \s+(?!\S), but a single space before something else is \s+.
    return before if before > position else end


@function
def others_end(text, position, masks, stride, size):
    """End of a run of characters that are no letters, numbers or spaces."""
    end = position
    while end < size:
        word = end >> 6
        known = masks[LETTERS * stride + word] | masks[NUMBERS * stride + word] | masks[SPACES * stride + word]
        known = known >> np.uint64(end & 63)
        if known != ZERO:
            return min(end + lowest_bit(known), size)
        end = (word + 1) << 6
    return size


@function
def piece_end(text, position, size, masks, stride):
    """End of the pre-token that begins at `position`."""
    byte = text[position]
    # Alternatives of the pattern in its order; the comment before each says which: '(?i:[sdmt]|ll|ve|re)
    if byte == 0x27:
        length = any_case_contraction(text, position, size)
        if length > 0:
            return position + length
    # [^\r\n\p{L}\p{N}]?\p{L}+ where it begins with a letter; no later alternative does.
    if has(masks, LETTERS * stride, position):
        return run_end(masks, LETTERS * stride, position, size)
    # \p{N}{1,3}: characters, which may have several bytes.
    if has(masks, NUMBERS * stride, position):
        end = position
        for _ in range(3):
            if end < size and has(masks, NUMBERS * stride, end):
                end += decode(text, end, size)[1]
        return end
    # [^\r\n\p{L}\p{N}]\p{L}+: one character of any other kind before letters.
    if not is_line_end(byte):
        after = position + decode(text, position, size)[1]
        if after < size and has(masks, LETTERS * stride, after):
            return run_end(masks, LETTERS * stride, after, size)
    # Blank or not: [^\s\p{L}\p{N}]+[\r\n]*
    after = position + 1 if byte == 0x20 else position
    end = others_end(text, after, masks, stride, size)
    if end > after:
        while end < size and is_line_end(text[end]):
            end += 1
        return end
    return spaces_end(text, position, masks, stride, size)


@function
def gpt4_starts(text, size, masks, stride, starts):
    """Mark the pre-tokens of the whole text."""
    words = (size + 63) >> 6
    for word in range(words):
        starts[word] = ZERO
    position = np.int64(0)
    while position < size:
        starts[position >> 6] |= ONE << np.uint64(position & 63)
        position = piece_end(text, position, size, masks, stride)
    return words
