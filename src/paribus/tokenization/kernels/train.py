"""Byte-pair encoding and Scaffold-BPE on `symbols`, a number of steps at a time.

A pair's occurrences lie together and in order of position. A merge passes over those of its pair, leaves out what
other merges took, and adds up what is lost and made for each distinct neighbour, so that each costs one look-up. No
count of a pair rises once its younger token is made, hence pairs rarer than a threshold need no entry until Python
lowers it and has the corpus indexed anew.
"""

import numpy as np

from paribus.native.compiler import function, i32_at, i64_at, inline, prefetch, separate, u8_at
from paribus.tokenization.kernels import training_layout as at
from paribus.tokenization.kernels.classify import decode
from paribus.tokenization.kernels.merge import GOLDEN

LOW = (1 << 32) - 1
AHEAD = 12
"""Occurrences between asking for a position and reading it."""
POSITIONS = (1 << at.POSITION_BITS) - 1


@function
def find_head(state):
    """Correct the heap until its head is true; returns whether there is one at or above the threshold."""
    heap, pairs, shift = i64_at(state[at.HEAP]), i64_at(state[at.PAIRS]), state[at.PAIRS_SHIFT]
    scaffold, live, smallest = u8_at(state[at.SCAFFOLD]), i64_at(state[at.LIVE]), state[at.THRESHOLD]
    used = state[at.HEAP_USED]
    while used > 0:
        # No count rises after it was pushed, so what the heap believes is an upper bound: a head that is true is the
        # largest of all, and any other goes to where it belongs now.
        count, key = heap[0], heap[1]
        if key >= at.TOKEN:
            true = live[key - at.TOKEN] if scaffold[key - at.TOKEN] != 0 else np.int64(0)
        else:
            true = pairs[find_pair(pairs, shift, key) + 1]
        if true == count:
            break
        if true >= smallest:
            sink(heap, used, np.int64(0), true, key)
        else:
            used = pop(heap, used)
    state[at.HEAP_USED] = used
    return used > 0


@function
def lacking(state, occurrences, count):
    """Array that must grow before a pair can be merged, or -1; `count` and occurrences bound the pairs made."""
    made = 2 * min(occurrences, count // state[at.THRESHOLD], state[at.TOKENS] + 1)
    if state[at.TOKENS] >= state[at.TOKEN_ROOM]:
        return np.int64(at.GROW_TOKENS)
    if state[at.PAIRS_USED] + made > np.int64(1) << (63 - state[at.PAIRS_SHIFT]):
        return np.int64(at.GROW_PAIRS)
    if state[at.HEAP_USED] + made + 2 > state[at.HEAP_ROOM]:
        state[at.WANTED] = state[at.HEAP_USED] + made + 2
        return np.int64(at.GROW_HEAP)
    if state[at.OCCURRENCES_USED] + 2 * occurrences > state[at.OCCURRENCE_ROOM]:
        state[at.WANTED] = state[at.OCCURRENCES_USED] + 2 * occurrences
        return np.int64(at.GROW_OCCURRENCES)
    if occurrences > state[at.MET_ROOM]:
        state[at.WANTED] = occurrences
        return np.int64(at.GROW_MET)
    return np.int64(-1)


@function
def lose(pairs, shift, pair, count):
    """Take from the count of a pair, if it has an entry."""
    entry = find_pair(pairs, shift, pair)
    if pairs[entry] != 0:
        pairs[entry + 1] -= count


@function
def make(state, pair, count, occurrences):
    """Enter a pair that is made by a merge, with room for its occurrences; returns where they begin."""
    pairs, place = i64_at(state[at.PAIRS]), state[at.OCCURRENCES_USED]
    entry = find_pair(pairs, state[at.PAIRS_SHIFT], pair)
    pairs[entry], pairs[entry + 1] = pair + 1, count
    pairs[entry + 2], pairs[entry + 3] = place, occurrences
    state[at.PAIRS_USED] += 1
    state[at.OCCURRENCES_USED] = place + occurrences
    state[at.HEAP_USED] = push(i64_at(state[at.HEAP]), state[at.HEAP_USED], count, pair)
    return place


@function
def enter_after(state, right, met):
    """Count the pairs with the right neighbours; where each begins replaces its number of occurrences, -1 if rare."""
    sums, pairs, shift = i64_at(state[at.AFTER]), i64_at(state[at.PAIRS]), state[at.PAIRS_SHIFT]
    neighbours = i32_at(state[at.NEIGHBOURS] + 4 * (state[at.TOKEN_ROOM] + 2))
    made = np.int64(0)
    for index in range(met):
        if index + 4 < met:
            prefetch(state[at.PAIRS] + 32 * slot_of(pair_of(right, np.int64(neighbours[index + 4]) - 1), shift))
        y = np.int64(neighbours[index])
        count = sums[2 * y]
        lose(pairs, shift, pair_of(right, y - 1), count)
        if count >= state[at.THRESHOLD]:
            sums[2 * y + 1] = make(state, pair_of(state[at.TOKENS], y - 1), count, sums[2 * y + 1])
            made += 1
        else:
            sums[2 * y + 1] = -1
    return made


@function
def enter_before(state, left, met):
    """Enter left neighbours. One of them may be the merged pair itself, so this comes second."""
    sums, pairs, shift = i64_at(state[at.BEFORE]), i64_at(state[at.PAIRS]), state[at.PAIRS_SHIFT]
    neighbours = i32_at(state[at.NEIGHBOURS])
    made = np.int64(0)
    for index in range(met):
        if index + 4 < met:
            prefetch(state[at.PAIRS] + 32 * slot_of(pair_of(np.int64(neighbours[index + 4]) - 1, left), shift))
        x = np.int64(neighbours[index])
        count = sums[2 * x]
        lose(pairs, shift, pair_of(x - 1, left), count)
        if count >= state[at.THRESHOLD]:
            sums[2 * x + 1] = make(state, pair_of(x - 1, state[at.TOKENS]), count, sums[2 * x + 1])
            made += 1
        else:
            sums[2 * x + 1] = -1
    return made


@function
def merge(state, entry):
    """Merge the pair of an entry everywhere."""
    pairs = i64_at(state[at.PAIRS])
    pair, first, occurrences = pairs[entry] - 1, pairs[entry + 2], pairs[entry + 3]
    left, right = pair >> 32, pair & LOW
    valid, count, met_before, met_after = replace(state, left, right, first, occurrences)
    add_token(state, left, right, count)
    if enter_after(state, right, met_after) > 0:
        list_after(state, first, valid)
    if enter_before(state, left, met_before) > 0:
        list_before(state, first, valid)
    forget(state, met_before, met_after)
    pairs[entry + 1] = 0
    state[at.TOKENS] += 1
    state[at.NORMAL] += 1
    state[at.MARKED_LEFT], state[at.MARKED_RIGHT] = left, right


@function
def step(state):
    """Readmit the token at the head of the queue, or merge its pair; returns -1 or what must grow first."""
    pairs, key = i64_at(state[at.PAIRS]), i64_at(state[at.HEAP])[1]
    if key >= at.TOKEN:
        readmit(state, key - at.TOKEN)
        return np.int64(-1)
    entry = find_pair(pairs, state[at.PAIRS_SHIFT], key)
    status = lacking(state, pairs[entry + 3], pairs[entry + 1])
    if status < 0:
        merge(state, entry)
        state[at.MARKING] = state[at.SCAFFOLDING]
    return status


def train_bpe(state):
    """Go on for STEPS steps, to the TARGET, or until no pair is left; returns why it ended."""
    for _ in range(state[at.STEPS]):
        if state[at.MARKING] == 0:
            if state[at.NORMAL] >= state[at.TARGET]:
                return np.int64(at.FULL)
            if not find_head(state):
                return np.int64(at.LOWER_THRESHOLD) if state[at.THRESHOLD] > 1 else np.int64(at.NO_PAIR_LEFT)
            status = step(state)
            if status >= 0:
                return status
        if state[at.MARKING] != 0:
            # Scaffold-BPE compares the parts of the last merge with the next head, which must be true for that.
            if find_head(state):
                mark(state, state[at.MARKED_LEFT])
                mark(state, state[at.MARKED_RIGHT])
            elif state[at.THRESHOLD] > 1:
                return np.int64(at.LOWER_THRESHOLD)
            state[at.MARKING] = 0
    return np.int64(at.STEPPED)


@function
def mark(state, token):
    """Make a token a scaffold if it fell below the head of the queue, which is true, and push it back."""
    scaffold, live, heap = u8_at(state[at.SCAFFOLD]), i64_at(state[at.LIVE]), i64_at(state[at.HEAP])
    # A unit stays, however rare: without it some text could not be encoded.
    if token < state[at.UNITS] or scaffold[token] != 0 or live[token] >= heap[0]:
        return
    scaffold[token] = 1
    state[at.NORMAL] -= 1
    if live[token] >= state[at.THRESHOLD]:
        state[at.HEAP_USED] = push(heap, state[at.HEAP_USED], live[token], at.TOKEN + token)


@function
def readmit(state, token):
    """Make the scaffold token at the head of the queue normal again, at its old rank."""
    u8_at(state[at.SCAFFOLD])[token] = 0
    state[at.NORMAL] += 1
    state[at.HEAP_USED] = pop(i64_at(state[at.HEAP]), state[at.HEAP_USED])


def count_pairs(state):
    """Count all adjacent pairs, overlaps included, from POSITION in word WORD on; returns 0 or GROW_PAIRS."""
    symbols, lengths, weights = i32_at(state[at.SYMBOLS]), i32_at(state[at.LENGTHS]), i64_at(state[at.WEIGHTS])
    pairs, shift, used = i64_at(state[at.PAIRS]), state[at.PAIRS_SHIFT], state[at.PAIRS_USED]
    # Half of the slots: searches in a fuller table grow long.
    room = np.int64(1) << (63 - shift)
    position, word = state[at.POSITION], state[at.WORD]
    while position + 1 < state[at.SYMBOL_COUNT]:
        left = np.int64(symbols[position])
        if left == at.SEPARATOR:
            position += 1
            continue
        following = position + lengths[left]
        right = np.int64(symbols[following])
        if right == at.SEPARATOR:
            word += 1
        else:
            entry = find_pair(pairs, shift, pair_of(left, right))
            if pairs[entry] == 0:
                if used >= room:
                    # The caller gives a larger table, and counting goes on from here.
                    state[at.POSITION], state[at.WORD], state[at.PAIRS_USED] = position, word, used
                    return np.int64(at.GROW_PAIRS)
                pairs[entry] = pair_of(left, right) + 1
                used += 1
            pairs[entry + 1] += weights[word]
            pairs[entry + 3] += 1
        position = following
    state[at.PAIRS_USED] = used
    return np.int64(0)


def move_pairs(old, size, pairs, shift, smallest):
    """Put the entries of `size` slots whose count is at least `smallest` into an empty table; returns how many."""
    moved = np.int64(0)
    for slot in range(size):
        if old[4 * slot] != 0 and old[4 * slot + 1] >= smallest:
            entry = find_pair(pairs, shift, old[4 * slot] - 1)
            for part in range(4):
                pairs[entry + part] = old[4 * slot + part]
            moved += 1
    return moved


@function
def give_room(state):
    """Give each pair its stretch of the occurrences, empty yet, and its place in the heap."""
    pairs, heap, used, place = i64_at(state[at.PAIRS]), i64_at(state[at.HEAP]), np.int64(0), np.int64(0)
    for slot in range(np.int64(1) << (64 - state[at.PAIRS_SHIFT])):
        if pairs[4 * slot] != 0:
            pairs[4 * slot + 2] = place
            place += pairs[4 * slot + 3]
            pairs[4 * slot + 3] = 0
            used = push(heap, used, pairs[4 * slot + 1], pairs[4 * slot] - 1)
    state[at.HEAP_USED] = used
    return place


@function
def push_scaffolds(state):
    """Put the scaffold tokens into the heap that are frequent enough."""
    scaffold, live, heap, used = (
        u8_at(state[at.SCAFFOLD]),
        i64_at(state[at.LIVE]),
        i64_at(state[at.HEAP]),
        state[at.HEAP_USED],
    )
    for token in range(state[at.TOKENS]):
        if scaffold[token] != 0 and live[token] >= state[at.THRESHOLD]:
            used = push(heap, used, live[token], at.TOKEN + token)
    state[at.HEAP_USED] = used


def locate_pairs(state):
    """List the occurrences of the counted pairs, in order of position, and fill the heap; returns how many."""
    symbols, lengths = i32_at(state[at.SYMBOLS]), i32_at(state[at.LENGTHS])
    pairs, shift = i64_at(state[at.PAIRS]), state[at.PAIRS_SHIFT]
    occurrences = i64_at(state[at.OCCURRENCES])
    total = give_room(state)
    push_scaffolds(state)
    position, word = np.int64(0), np.int64(0)
    while position + 1 < state[at.SYMBOL_COUNT]:
        left = np.int64(symbols[position])
        if left == at.SEPARATOR:
            position += 1
            continue
        following = position + lengths[left]
        right = np.int64(symbols[following])
        if right == at.SEPARATOR:
            word += 1
        else:
            entry = find_pair(pairs, shift, pair_of(left, right))
            if pairs[entry] != 0:
                occurrences[pairs[entry + 2] + pairs[entry + 3]] = word << at.POSITION_BITS | position
                pairs[entry + 3] += 1
        position = following
    return total


# Pairs by key in an open-addressing table, and a heap of them: largest count first, then smallest key.
#
# A count that falls leaves its old entry in the heap; `pairs` of the training kernels correct it when it comes to the
# head.
@inline
def pair_of(left, right):
    """The key that orders pairs by left, then right."""
    return left << 32 | right


@inline
def slot_of(pair, shift):
    """Slot at which the search for a pair begins."""
    return np.int64(np.uint64(pair) * GOLDEN >> np.uint64(shift))


@inline
def find_pair(pairs, shift, pair):
    """Index of the entry of a pair, or of the empty entry where it belongs: that whose first word is 0."""
    mask = (np.int64(1) << (64 - shift)) - 1
    slot = slot_of(pair, shift)
    # Keys are kept plus one, since zero stands for an empty entry.
    while pairs[4 * slot] != pair + 1 and pairs[4 * slot] != 0:
        slot = slot + 1 & mask
    return 4 * slot


@inline
def before(count, key, other_count, other_key):
    """True if one entry of the heap goes before another."""
    return count > other_count or (count == other_count and key < other_key)


@function
def push(heap, used, count, key):
    """Add an entry; returns how many there are."""
    index = np.int64(used)
    while index > 0:
        parent = (index - 1) >> 1
        if not before(count, key, heap[2 * parent], heap[2 * parent + 1]):
            break
        heap[2 * index], heap[2 * index + 1] = heap[2 * parent], heap[2 * parent + 1]
        index = parent
    heap[2 * index], heap[2 * index + 1] = count, key
    return used + 1


@function
def sink(heap, used, index, count, key):
    """Put an entry at `index` or below, where the entries below it are in order."""
    while True:
        child = 2 * index + 1
        if child >= used:
            break
        if child + 1 < used:
            other = 2 * child + 2
            if before(heap[other], heap[other + 1], heap[2 * child], heap[2 * child + 1]):
                child += 1
        if not before(heap[2 * child], heap[2 * child + 1], count, key):
            break
        heap[2 * index], heap[2 * index + 1] = heap[2 * child], heap[2 * child + 1]
        index = child
    heap[2 * index], heap[2 * index + 1] = count, key


@function
def pop(heap, used):
    """Take the head away; returns how many are left."""
    used -= 1
    sink(heap, used, np.int64(0), heap[2 * used], heap[2 * used + 1])
    return used


# What every merge does on `symbols`: replace its pair, note the neighbours, list the occurrences of new pairs.
#
# The neighbours' sums are indexed by token plus one: their count, then how often they were met, which whoever enters
# the new pairs replaces by where their occurrences begin, or -1.
@inline
def meet(sums, neighbours, met, neighbour, weight):
    """Add to the count of a neighbour, noting it the first time; returns how many were noted."""
    known = sums[2 * neighbour + 1]
    sums[2 * neighbour] += weight
    sums[2 * neighbour + 1] = known + 1
    neighbours[met] = neighbour
    return met + np.int64(known == 0)


@separate
def replace(state, left, right, first, occurrences):
    """Replace a pair, left to right, by the token that is next; returns replacements, their weight, and neighbours.

    What was replaced is left at the begin of the pair's occurrences, its neighbours (plus one) in MET.
    """
    symbols, lengths, weights = i32_at(state[at.SYMBOLS]), i32_at(state[at.LENGTHS]), i64_at(state[at.WEIGHTS])
    places, met = i64_at(state[at.OCCURRENCES] + 8 * first), i64_at(state[at.MET])
    sums_before, sums_after = i64_at(state[at.BEFORE]), i64_at(state[at.AFTER])
    neighbours_before = i32_at(state[at.NEIGHBOURS])
    neighbours_after = i32_at(state[at.NEIGHBOURS] + 4 * (state[at.TOKEN_ROOM] + 2))
    token, first_length, length = state[at.TOKENS], np.int64(lengths[left]), np.int64(lengths[left] + lengths[right])
    # Index 0 is the border of a word, which is no neighbour: taken for met already, it is noted nowhere.
    sums_before[1] = sums_after[1] = 1
    valid = total = met_before = met_after = np.int64(0)
    for index in range(occurrences):
        if index + AHEAD < occurrences:
            coming = places[index + AHEAD]
            prefetch(state[at.SYMBOLS] + 4 * (coming & POSITIONS))
            prefetch(state[at.WEIGHTS] + 8 * (coming >> at.POSITION_BITS))
        place = places[index]
        position = place & POSITIONS
        # Occurrences are not taken off their lists by the merges that use them up, so they are looked at when it is
        # their turn. That also keeps overlapping ones apart: of a a a, the first a a takes the second's left part.
        if symbols[position] != left or symbols[position + first_length] != right:
            continue
        weight = weights[place >> at.POSITION_BITS]
        x = np.int64(symbols[position - 1]) + 1
        y = np.int64(symbols[position + length]) + 1
        # A token stands at its first and its last place, where its neighbours look; of one symbol both are one, so the
        # place of the right part is emptied first.
        symbols[position + first_length] = at.GONE
        symbols[position] = token
        symbols[position + length - 1] = token
        total += weight
        met_before = meet(sums_before, neighbours_before, met_before, x, weight)
        met_after = meet(sums_after, neighbours_after, met_after, y, weight)
        met[valid] = x << 32 | y
        places[valid] = place
        valid += 1
    sums_before[0] = sums_after[0] = 0
    return valid, total, met_before, met_after


@function
def list_after(state, first, valid):
    """Write the occurrences of the pairs with right neighbours."""
    places, met, sums = i64_at(state[at.OCCURRENCES] + 8 * first), i64_at(state[at.MET]), i64_at(state[at.AFTER])
    occurrences = i64_at(state[at.OCCURRENCES])
    sums[1] = -1
    for index in range(valid):
        y = met[index] & LOW
        target = sums[2 * y + 1]
        if target >= 0:
            occurrences[target] = places[index]
            sums[2 * y + 1] = target + 1


@function
def list_before(state, first, valid):
    """Write the occurrences of the pairs with left neighbours."""
    places, met, sums = i64_at(state[at.OCCURRENCES] + 8 * first), i64_at(state[at.MET]), i64_at(state[at.BEFORE])
    occurrences, lengths = i64_at(state[at.OCCURRENCES]), i32_at(state[at.LENGTHS])
    sums[1] = -1
    for index in range(valid):
        x = met[index] >> 32
        target = sums[2 * x + 1]
        if target >= 0:
            occurrences[target] = places[index] - lengths[x - 1]
            sums[2 * x + 1] = target + 1


@function
def forget(state, met_before, met_after):
    """Empty the sums of the neighbours."""
    sums_before, sums_after = i64_at(state[at.BEFORE]), i64_at(state[at.AFTER])
    neighbours_before = i32_at(state[at.NEIGHBOURS])
    neighbours_after = i32_at(state[at.NEIGHBOURS] + 4 * (state[at.TOKEN_ROOM] + 2))
    for index in range(met_before):
        x = np.int64(neighbours_before[index])
        sums_before[2 * x] = sums_before[2 * x + 1] = 0
    for index in range(met_after):
        y = np.int64(neighbours_after[index])
        sums_after[2 * y] = sums_after[2 * y + 1] = 0


@function
def add_token(state, left, right, count):
    """Enter the token that was made of a pair."""
    token, lengths, live = state[at.TOKENS], i32_at(state[at.LENGTHS]), i64_at(state[at.LIVE])
    i32_at(state[at.LEFT])[token], i32_at(state[at.RIGHT])[token] = left, right
    lengths[token] = lengths[left] + lengths[right]
    i64_at(state[at.FREQUENCIES])[token] = count
    live[token] = count
    live[left] -= count
    live[right] -= count


# Words as one flat array of tokens, and tokens as their units.
#
# A token of n units that begins at position p stands at p and at p + n - 1, so the token before a position is found at
# the position before it. Separators lie around every word. Inside a token its own halves may stand, but never where one
# of them could be taken for a token that begins there: GONE stands there, or the token itself.
def lay_out_bytes(spellings, offsets, words, weights, continuation, symbols, frequencies):
    """Write the bytes of each word, `continuation` added to all but its first; returns how many positions there are.

    Adds up the `frequencies` of units.
    """
    symbols[0] = at.SEPARATOR
    position = np.int64(1)
    for word in range(words):
        added = np.int64(0)
        for place in range(offsets[word], offsets[word + 1]):
            unit = np.int64(spellings[place]) + added
            symbols[position] = unit
            frequencies[unit] += weights[word]
            added = continuation
            position += 1
        symbols[position] = at.SEPARATOR
        position += 1
    return position


def lay_out_characters(spellings, offsets, words, weights, ranks, continuation, symbols, frequencies):
    """Lay out characters, by the rank of each codepoint; every character has one."""
    symbols[0] = at.SEPARATOR
    position = np.int64(1)
    for word in range(words):
        place, added = offsets[word], np.int64(0)
        while place < offsets[word + 1]:
            codepoint, size = decode(spellings, place, offsets[word + 1])
            unit = np.int64(ranks[codepoint]) + added
            symbols[position] = unit
            frequencies[unit] += weights[word]
            added = continuation
            position += 1
            place += size
        symbols[position] = at.SEPARATOR
        position += 1
    return position


def observe_characters(spellings, size, seen):
    """Set `seen` of every codepoint; returns how many characters there are."""
    place, count = np.int64(0), np.int64(0)
    while place < size:
        codepoint, length = decode(spellings, place, size)
        seen[codepoint] = 1
        place += length
        count += 1
    return count


def spell_tokens(left, right, tokens, offsets, units):
    """Write the units of each token, whose parents come before it; `offsets` say where."""
    for token in range(tokens):
        place = offsets[token]
        if left[token] < 0:
            units[place] = token
            continue
        for parent in (left[token], right[token]):
            for index in range(offsets[parent], offsets[parent + 1]):
                units[place] = units[index]
                place += 1
    return tokens
