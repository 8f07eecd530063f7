"""Numbers that Python and the kernels agree on: codes, and the slots of the int64 arrays that describe a tokenizer.

A slot holds a number or the address of an array whose type stands beside it.
"""

PATTERNS = ("gpt2", "gpt2_digits", "gpt4", "whitespace", "stripped", "none", "punctuation")
GPT2, GPT2_DIGITS, GPT4, WHITESPACE, STRIPPED, NONE, PUNCTUATION = range(7)

ENCODERS = ("merge_rank", "longest_first", "left_to_right", "viterbi", "fewest", "dropout", "whole")
MERGE_RANK, LONGEST_FIRST, LEFT_TO_RIGHT, VITERBI, FEWEST, DROPOUT, WHOLE = range(7)

BYTE_FALLBACK, UNKNOWN_TOKEN, REFUSE = range(3)
"""Numbers of `Unknown`, the treatment of a character outside a character alphabet."""

# A tokenizer, read only.
(
    ENCODER,
    PATTERN,
    CLASSES,  # u8 (0x110000): class of each codepoint
    BYTE_UNITS,  # i32 (256): rank of each byte as a unit; 0 where units are characters
    CHARACTER_UNITS,  # i32 (0x110000): rank of each character as a unit, -1 outside the alphabet
    FALLBACK_UNITS,  # i32 (256): rank of each byte of a character outside the alphabet
    UNKNOWN_RULE,
    UNKNOWN_UNIT,  # rank
    CONTINUATION,  # added to the rank of a unit that does not begin its pre-token; 0 without continuation marks
    DIRECT,  # i32 (256, 256): place of the merge of two of the first ranks
    PAIRS,  # u64: places of all other merges, see `pairs`
    PAIRS_SHIFT,
    RESULTS,  # i32 (merges): rank of the token that each merge makes
    TURNS,  # i32 (merges): whose turn each merge is, where several share one; 0 where each has its own
    NODES,  # u64: the trie of tokens, see `trie`
    EDGES,  # u64: edges of its wide nodes
    EDGES_SHIFT,
    HEADS,  # i32 (257, 256): nodes after two units, by the first and the second; and after one
    LENGTHS,  # i32 (ranks): units of each token
    SHORTER,  # i32 (ranks): rank of the longest proper prefix that is a token, -1
    SCORES,  # f64 (ranks): log-probability of each token
    CHILD_OFFSETS,  # i64 (ranks + 1); 0 where a single id stands for every rank
    CHILD_IDS,  # i32: the ids that stand for each rank in the end; 0 where ranks are ids
    DROP_PROBABILITY,  # numerator of 2^32
    SEED,
    SENTENCEPIECE,  # 1 where ties, sums and unknown characters are those of that library
    MODEL_SLOTS,
) = range(27)

# What one thread remembers and works with.
(
    SHORT,  # u64 (size, 4): pre-tokens of up to 15 bytes
    SHORT_SHIFT,
    SHORT_FREE,  # entries that may still be added; -1 when the table has grown enough
    LONG,  # u64 (size, 4): pre-tokens of 16 to LONGEST_KEPT bytes
    LONG_SHIFT,
    LONG_FREE,
    BYTES,  # u8: the longer pre-tokens
    BYTES_USED,
    BYTES_SIZE,
    IDS,  # i32: ids of pre-tokens that do not fit into their entry
    IDS_USED,
    IDS_SIZE,
    NEXT,  # the document at hand
    WRITTEN,  # ids written
    OUTPUT_SIZE,  # ids that there is room for
    MASKS,  # u64 (6, STRIDE)
    STRIDE,
    STARTS,  # u64 (STRIDE)
    SCRATCH,  # u8 (64)
    TAIL,  # u8 (32), see `keys`
    POSITIONS,  # i64 (CHUNK + 130)
    KEYS,  # u64 (CHUNK + 130, 3): both words of a short pre-token's key, and its slot
    KEY_MASKS,  # u64 (17, 2), see `keys`
    UNITS,  # i32: units of the longest document
    WORK,  # i64: 8 for each unit of the longest document
    RESULT,  # i32: ids of the longest document
    MEMO_SLOTS,
) = range(27)

DIRECT_RANKS = 256
"""Pairs and paths of that many of the first ranks, the bytes, have tables of their own."""
RANK_BITS, PRIORITY_BITS = 21, 22
"""Limits of a pair table: ranks below 2^21, and almost 2^22 merges."""
NODE_BITS, UNIT_BITS = 22, 20
"""Limits of a trie: almost 2^22 nodes, and units of ranks below 2^20."""
WIDE = (1 << NODE_BITS) - 1
"""Value in the place of the first child of a node whose edges are in the hash table."""
CHUNK = 512
"""Pre-tokens looked up together."""
LONGEST_KEPT = 255
"""Bytes of the longest pre-token that is remembered."""
DONE, GROW_SHORT, GROW_LONG, GROW_BYTES, GROW_IDS, GROW_OUTPUT, REFUSED = range(7)
"""Statuses that an encoding kernel returns."""
