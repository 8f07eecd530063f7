"""Slots of the int64 array with which the training kernels and Python hand over: numbers, or addresses of arrays."""

(
    SYMBOLS,  # i32 (SYMBOL_COUNT): words one after another with SEPARATOR around each; see `symbols`
    SYMBOL_COUNT,
    WEIGHTS,  # i64 (words): count of each word
    LENGTHS,  # i32 (TOKEN_ROOM): units of each token
    LEFT,  # i32 (TOKEN_ROOM): parents, -1 for units
    RIGHT,
    FREQUENCIES,  # i64 (TOKEN_ROOM): occurrences when the token was made
    LIVE,  # i64 (TOKEN_ROOM): occurrences now
    SCAFFOLD,  # u8 (TOKEN_ROOM)
    BEFORE,  # i64 (2, TOKEN_ROOM + 1): of each left neighbour of the merged pair, count and occurrences; 0 is none
    AFTER,  # the same of right neighbours
    NEIGHBOURS,  # i32 (2, TOKEN_ROOM + 1): left neighbours met, then right ones
    TOKENS,
    TOKEN_ROOM,
    UNITS,
    NORMAL,  # tokens that count towards the vocabulary size
    TARGET,  # how many of them are wanted
    STEPS,  # steps until Python hears of it
    SCAFFOLDING,  # 1 for Scaffold-BPE
    THRESHOLD,  # smallest count of a pair in the index
    MARKING,  # 1 between a merge and the marking of its parents
    MARKED_LEFT,
    MARKED_RIGHT,
    PAIRS,  # i64 (4, slots): pair + 1, count, first occurrence, occurrences
    PAIRS_SHIFT,  # 64 - log2 of the slots
    PAIRS_USED,
    OCCURRENCES,  # i64: word << POSITION_BITS | position
    OCCURRENCE_ROOM,
    OCCURRENCES_USED,
    MET,  # i64 (as many as a pair has occurrences): neighbours at each replacement
    MET_ROOM,
    HEAP,  # i64 (2, HEAP_ROOM): count and pair, or count and TOKEN + rank
    HEAP_ROOM,
    HEAP_USED,
    POSITION,  # where counting pairs goes on
    WORD,
    RECORDS,  # i64 (RECORD_ROOM, RECORD_WORDS): pairs of WordPiece, see below
    RECORD_ROOM,
    RECORDS_USED,
    CHAINS,  # i64 (2, TOKEN_ROOM): first record whose left token it is, and first whose right token, -1
    WANTED,  # what a buffer must hold before the kernel can go on
    TRAINING_SLOTS,
) = range(42)

(
    PAIR,  # left << 32 | right
    COUNT,
    FIRST,  # of its occurrences
    OCCURRING,  # how many there are
    NEXT_OF_LEFT,  # the next record with this left token, -1
    NEXT_OF_RIGHT,
    PLACE,  # in the heap, -1 outside
    SCORED_COUNT,  # the counts of the pair and its tokens that its place in the heap is for
    SCORED_LEFT,
    SCORED_RIGHT,
    RECORD_WORDS,
) = range(11)

SEPARATOR, GONE = -1, -2
"""Symbols that are no tokens: what lies between words, and a position where no token begins or ends any more."""
POSITION_BITS, WORD_BITS = 35, 28
TOKEN = 1 << 62
"""Above every pair, so that a pair goes before a token of equal count."""

(
    FULL,
    NO_PAIR_LEFT,
    STEPPED,
    LOWER_THRESHOLD,
    GROW_TOKENS,
    GROW_PAIRS,
    GROW_OCCURRENCES,
    GROW_MET,
    GROW_HEAP,
    GROW_RECORDS,
) = range(10)
"""Statuses that the kernels return."""
