"""Begins of pre-tokens: the patterns of `pretokenizers`, by bit masks. Bit i of `starts` is byte i of the text."""

import numpy as np

from paribus.native.compiler import call_with_place, f64_at, function, i32_at, i64_at, inline, lowest_bit
from paribus.tokenization.kernels import layout as at
from paribus.tokenization.kernels.classify import (
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
    decode,
    low_bits,
)
from paribus.tokenization.kernels.match import (
    best_path,
    best_path_from_left,
    longest,
    match_left_to_right,
    place_longest_first,
)
from paribus.tokenization.kernels.merge import merge, merge_with_dropout


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
    if pattern == at.NONE:
        words = (size + 63) >> 6
        for word in range(words):
            starts[word] = ZERO
        starts[0] = ONE
        return words
    classify(text, size, table, masks, stride, scratch)
    if pattern == at.GPT2 or pattern == at.GPT2_DIGITS:
        return gpt2_starts(text, size, np.int64(pattern == at.GPT2_DIGITS), masks, stride, starts)
    if pattern == at.GPT4:
        return gpt4_starts(text, size, masks, stride, starts)
    if pattern == at.PUNCTUATION:
        return punctuation_starts(size, masks, stride, starts)
    return space_starts(size, np.int64(pattern == at.STRIPPED), masks, stride, starts)


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


@inline
def has(masks, offset, position):
    """True if the byte at `position` is in the mask that begins at word `offset`."""
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


@function
def split_bytes(table, text, start, end, units):
    """Units of bytes; returns how many."""
    for index in range(start, end):
        units[index - start] = table[text[index]]
    return end - start


@function
def split_characters(model, text, start, end, units):
    """Units of characters; returns how many, or -1 where a character is refused."""
    table, fallback = i32_at(model[at.CHARACTER_UNITS]), i32_at(model[at.FALLBACK_UNITS])
    rule, unknown = model[at.UNKNOWN_RULE], np.int32(model[at.UNKNOWN_UNIT])
    count, position = np.int64(0), np.int64(start)
    while position < end:
        codepoint, length = decode(text, position, end)
        rank = table[codepoint] if codepoint >= 0 else np.int32(-1)
        if rank >= 0:
            units[count] = rank
            count += 1
        elif rule == at.BYTE_FALLBACK:
            for offset in range(length):
                units[count] = fallback[text[position + offset]]
                count += 1
        elif rule == at.UNKNOWN_TOKEN:
            units[count] = unknown
            count += 1
        else:
            return np.int64(-1)
        position += length
    return count


@function
def split(model, text, start, end, units):
    """Units of the pre-token; returns how many, or -1 where a character is refused."""
    if model[at.BYTE_UNITS] != 0:
        count = split_bytes(i32_at(model[at.BYTE_UNITS]), text, start, end, units)
    else:
        count = split_characters(model, text, start, end, units)
    shift, unknown = np.int32(model[at.CONTINUATION]), np.int32(model[at.UNKNOWN_UNIT])
    if shift != 0:
        # Inside a word a unit is another one (WordPiece's ##), `shift` ranks further on; the unknown one is the same.
        for index in range(1, count):
            if units[index] != unknown:
                units[index] += shift
    return count


@function
def is_token(model, units, count):
    """True if the pre-token is taken whole, which merge-rank encoding does where it has a trie; writes the token."""
    # The trie is there where a setting asks for whole pre-tokens: then no merges need to lead to the token.
    if model[at.NODES] == 0:
        return False
    rank, length = longest(model, units, np.int64(0), count)
    if length != count:
        return False
    units[0] = np.int32(rank)
    return True


@function
def whole(model, units, count):
    """The pre-token as one token, else one unknown token, or its units where nothing may be lost."""
    rank, length = longest(model, units, np.int64(0), count)
    if length == count:
        units[0] = np.int32(rank)
        return np.int64(1)
    if model[at.BYTE_UNITS] == 0 and model[at.UNKNOWN_RULE] == at.UNKNOWN_TOKEN:
        units[0] = np.int32(model[at.UNKNOWN_UNIT])
        return np.int64(1)
    return count


@function
def matched(model, units, count, work):
    """Replace `units` by ranks as encoders that look for tokens wherever they are do; returns how many, or -1."""
    kind, lengths = model[at.ENCODER], i32_at(model[at.LENGTHS])
    if kind == at.LONGEST_FIRST:
        return place_longest_first(model, lengths, i32_at(model[at.SHORTER]), units, count, work)
    if kind == at.LEFT_TO_RIGHT:
        return match_left_to_right(model, units, count)
    if kind == at.VITERBI and model[at.SENTENCEPIECE] != 0:
        return best_path_from_left(model, lengths, f64_at(model[at.SCORES]), units, count, work)
    if kind == at.VITERBI or kind == at.FEWEST:
        return best_path(model, lengths, f64_at(model[at.SCORES]), np.int64(kind == at.VITERBI), units, count, work)
    return np.int64(-1)


@function
def tokens(model, units, count, work, stream):
    """Replace `units` by ranks of tokens; returns how many, or -1 where there is no way."""
    kind = model[at.ENCODER]
    if kind == at.MERGE_RANK:
        if is_token(model, units, count):
            return np.int64(1)
        return merge(model, units, count, work)
    if kind == at.DROPOUT:
        return merge_with_dropout(model, units, count, np.uint64(model[at.DROP_PROBABILITY]), stream, work)
    if kind == at.WHOLE:
        return whole(model, units, count)
    return matched(model, units, count, work)


@function
def is_unknown_word(model, units, count):
    """True if longest match from the left gives up the whole pre-token: a unit of it is unknown."""
    if model[at.ENCODER] != at.LEFT_TO_RIGHT or model[at.BYTE_UNITS] != 0 or model[at.UNKNOWN_RULE] != at.UNKNOWN_TOKEN:
        return False
    found = False
    for index in range(count):
        found |= np.int64(units[index]) == model[at.UNKNOWN_UNIT]
    return found


@function
def fuse_unknown(model, units, count):
    """Make each run of unknown tokens one; returns how many tokens are left."""
    unknown, left = np.int32(model[at.UNKNOWN_UNIT]), np.int64(0)
    for index in range(count):
        if left == 0 or units[index] != unknown or units[left - 1] != unknown:
            units[left] = units[index]
            left += 1
    return left


@function
def write_ids(model, units, count, result):
    """Write the ids that stand for `count` ranks; returns how many."""
    children = i32_at(model[at.CHILD_IDS])
    if model[at.CHILD_IDS] == 0:
        for index in range(count):
            result[index] = units[index]
        return count
    if model[at.CHILD_OFFSETS] == 0:
        for index in range(count):
            result[index] = children[units[index]]
        return count
    offsets = i64_at(model[at.CHILD_OFFSETS])
    written = np.int64(0)
    for index in range(count):
        rank = units[index]
        for child in range(offsets[rank], offsets[rank + 1]):
            result[written] = children[child]
            written += 1
    return written


@function
def encode_piece(model, memo, text, start, end, stream):
    """Write the ids of text[start:end] to the result; returns how many, or -1 where a character is refused."""
    units = i32_at(memo[at.UNITS])
    count = split(model, text, start, end, units)
    if count < 0:
        return count
    if is_unknown_word(model, units, count):
        units[0] = np.int32(model[at.UNKNOWN_UNIT])
        count = np.int64(1)
    # One unit has nothing to be merged with; other encoders must still see whether it is a token.
    elif count > 1 or model[at.ENCODER] != at.MERGE_RANK:
        count = tokens(model, units, count, i64_at(memo[at.WORK]), stream)
        # Longest match found no token on its way: without units of its own a vocabulary may lack what stands inside.
        if count < 0 and model[at.UNKNOWN_RULE] == at.UNKNOWN_TOKEN:
            units[0] = np.int32(model[at.UNKNOWN_UNIT])
            count = np.int64(1)
    if model[at.SENTENCEPIECE] != 0:
        count = fuse_unknown(model, units, count)
    return write_ids(model, units, count, i32_at(memo[at.RESULT]))


def find_texts(strings, count, as_utf8, addresses, sizes):
    """Address and size of the UTF-8 of each string; returns how many there are, or the first that has none.

    `strings` holds the addresses of Python objects and `as_utf8` is that of PyUnicode_AsUTF8AndSize.
    """
    for index in range(count):
        address = call_with_place(as_utf8, strings[index], sizes, index)
        if address == 0:
            return np.int64(index)
        addresses[index] = address
    return np.int64(count)
