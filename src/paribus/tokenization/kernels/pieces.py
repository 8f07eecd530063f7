"""One pre-token: its units, its tokens, and the ids that stand for them."""

import numpy as np

from paribus.native.intrinsics import f64_at, function, i32_at, i64_at
from paribus.tokenization.kernels.classes import decode
from paribus.tokenization.kernels.dropout import merge_with_dropout
from paribus.tokenization.kernels.layout import (
    BYTE_FALLBACK,
    BYTE_UNITS,
    CHARACTER_UNITS,
    CHILD_IDS,
    CHILD_OFFSETS,
    CONTINUATION,
    DROP_PROBABILITY,
    DROPOUT,
    ENCODER,
    FALLBACK_UNITS,
    LEFT_TO_RIGHT,
    LENGTHS,
    LONGEST_FIRST,
    MERGE_RANK,
    NODES,
    RESULT,
    SCORES,
    SENTENCEPIECE,
    SHORTER,
    UNITS,
    UNKNOWN_RULE,
    UNKNOWN_TOKEN,
    UNKNOWN_UNIT,
    VITERBI,
    WHOLE,
    WORK,
)
from paribus.tokenization.kernels.left_to_right import match_left_to_right
from paribus.tokenization.kernels.longest_first import place_longest_first
from paribus.tokenization.kernels.merge_rank import merge
from paribus.tokenization.kernels.trie import longest
from paribus.tokenization.kernels.viterbi import best_path, best_path_from_left


@function
def split_bytes(table, text, start, end, units):
    """Units of bytes; returns how many."""
    for index in range(start, end):
        units[index - start] = table[text[index]]
    return end - start


@function
def split_characters(model, text, start, end, units):
    """Units of characters; returns how many, or -1 where a character is refused."""
    table, fallback = i32_at(model[CHARACTER_UNITS]), i32_at(model[FALLBACK_UNITS])
    rule, unknown = model[UNKNOWN_RULE], np.int32(model[UNKNOWN_UNIT])
    count, position = np.int64(0), np.int64(start)
    while position < end:
        codepoint, length = decode(text, position, end)
        rank = table[codepoint] if codepoint >= 0 else np.int32(-1)
        if rank >= 0:
            units[count] = rank
            count += 1
        elif rule == BYTE_FALLBACK:
            for offset in range(length):
                units[count] = fallback[text[position + offset]]
                count += 1
        elif rule == UNKNOWN_TOKEN:
            units[count] = unknown
            count += 1
        else:
            return np.int64(-1)
        position += length
    return count


@function
def split(model, text, start, end, units):
    """Units of the pre-token; returns how many, or -1 where a character is refused."""
    if model[BYTE_UNITS] != 0:
        count = split_bytes(i32_at(model[BYTE_UNITS]), text, start, end, units)
    else:
        count = split_characters(model, text, start, end, units)
    shift, unknown = np.int32(model[CONTINUATION]), np.int32(model[UNKNOWN_UNIT])
    if shift != 0:
        # Inside a word a unit is another one (WordPiece's ##), `shift` ranks further on; the unknown one is the same.
        for index in range(1, count):
            if units[index] != unknown:
                units[index] += shift
    return count


@function
def is_token(model, units, count):
    """Whether the pre-token is taken whole, which merge-rank encoding does where it has a trie; writes the token."""
    # The trie is there where a setting asks for whole pre-tokens: then no merges need to lead to the token.
    if model[NODES] == 0:
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
    if model[BYTE_UNITS] == 0 and model[UNKNOWN_RULE] == UNKNOWN_TOKEN:
        units[0] = np.int32(model[UNKNOWN_UNIT])
        return np.int64(1)
    return count


@function
def matched(model, units, count, work):
    """Replace `units` by ranks as encoders that look for tokens wherever they are do; returns how many, or -1."""
    kind, lengths = model[ENCODER], i32_at(model[LENGTHS])
    if kind == LONGEST_FIRST:
        return place_longest_first(model, lengths, i32_at(model[SHORTER]), units, count, work)
    if kind == LEFT_TO_RIGHT:
        return match_left_to_right(model, units, count)
    if kind == VITERBI and model[SENTENCEPIECE] != 0:
        return best_path_from_left(model, lengths, f64_at(model[SCORES]), units, count, work)
    scored = np.int64(kind == VITERBI)
    return best_path(model, lengths, f64_at(model[SCORES]), scored, units, count, work)


@function
def tokens(model, units, count, work, stream):
    """Replace `units` by ranks of tokens; returns how many, or -1 where there is no way."""
    kind = model[ENCODER]
    if kind == MERGE_RANK:
        if is_token(model, units, count):
            return np.int64(1)
        return merge(model, units, count, work)
    if kind == DROPOUT:
        return merge_with_dropout(model, units, count, np.uint64(model[DROP_PROBABILITY]), stream, work)
    if kind == WHOLE:
        return whole(model, units, count)
    return matched(model, units, count, work)


@function
def is_unknown_word(model, units, count):
    """Whether longest match from the left gives up the whole pre-token: a unit of it is unknown."""
    if model[ENCODER] != LEFT_TO_RIGHT or model[BYTE_UNITS] != 0 or model[UNKNOWN_RULE] != UNKNOWN_TOKEN:
        return False
    found = False
    for index in range(count):
        found |= np.int64(units[index]) == model[UNKNOWN_UNIT]
    return found


@function
def fuse_unknown(model, units, count):
    """Make each run of unknown tokens one; returns how many tokens are left."""
    unknown, left = np.int32(model[UNKNOWN_UNIT]), np.int64(0)
    for index in range(count):
        if left == 0 or units[index] != unknown or units[left - 1] != unknown:
            units[left] = units[index]
            left += 1
    return left


@function
def write_ids(model, units, count, result):
    """Write the ids that stand for `count` ranks; returns how many."""
    children = i32_at(model[CHILD_IDS])
    if model[CHILD_IDS] == 0:
        for index in range(count):
            result[index] = units[index]
        return count
    if model[CHILD_OFFSETS] == 0:
        for index in range(count):
            result[index] = children[units[index]]
        return count
    offsets = i64_at(model[CHILD_OFFSETS])
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
    units = i32_at(memo[UNITS])
    count = split(model, text, start, end, units)
    if count < 0:
        return count
    if is_unknown_word(model, units, count):
        units[0] = np.int32(model[UNKNOWN_UNIT])
        count = np.int64(1)
    # One unit has nothing to be merged with; other encoders must still see whether it is a token.
    elif count > 1 or model[ENCODER] != MERGE_RANK:
        count = tokens(model, units, count, i64_at(memo[WORK]), stream)
        # Longest match found no token on its way: without units of its own a vocabulary may lack what stands inside.
        if count < 0 and model[UNKNOWN_RULE] == UNKNOWN_TOKEN:
            units[0] = np.int32(model[UNKNOWN_UNIT])
            count = np.int64(1)
    if model[SENTENCEPIECE] != 0:
        count = fuse_unknown(model, units, count)
    return write_ids(model, units, count, i32_at(memo[RESULT]))
