"""Slots of the int64 array with which `count` and Python hand over: numbers, or addresses of arrays."""

(
    TEXTS,  # i64: address of each text
    SIZES,  # i64: bytes of each text
    TEXT_COUNT,
    PATTERN,
    CLASSES,  # u8 (0x110000)
    SCANNED,  # bytes scanned at a time, where the text can be cut
    MASKS,  # u64 (6, STRIDE)
    STRIDE,
    STARTS,  # u64 (STRIDE)
    SCRATCH,  # u8 (64)
    TAIL,  # u8 (32), see `keys`
    KEY_MASKS,  # u64 (17, 2), see `keys`
    TEXT,  # the text at hand
    BEGIN,  # the stretch of it that is scanned
    END,
    WORD,  # its next word of STARTS
    SPAN,  # the begin of its next pre-token
    SHORT_KEYS,  # u64 (3, KEPT): key and hash of pre-tokens of up to 15 bytes that are not counted yet
    SHORT_KEPT,
    LONG_KEYS,  # i64 (2, KEPT): address and size of the others
    LONG_KEPT,
    LONG_BYTES,
    SHORT,  # u64 (4, slots): key in two words, count, nothing
    SHORT_SHIFT,  # 64 - log2 of the slots
    SHORT_USED,
    LONG,  # u64 (4, slots): hash, place among the bytes, size, count
    LONG_SHIFT,
    LONG_USED,
    BYTES,  # u8: the longer pre-tokens
    BYTES_SIZE,
    BYTES_USED,
    TOTAL_BYTES,  # of all distinct pre-tokens
    NEXT_SLOT,  # of the table, or of the words, being added to another
    WANTED,  # what a buffer must hold before the kernel can go on
    COUNTING_SLOTS,
) = range(35)

KEPT = 256
"""Pre-tokens looked up together."""
DONE, GROW_MASKS, GROW_SHORT, GROW_LONG, GROW_BYTES = range(5)
"""Statuses that the kernels return."""
