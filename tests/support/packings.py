"""Small corpora to pack, and packing written out in lists."""

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from paribus.config.groups.ordering import ConcatenatePacking, PackingConfig
from paribus.ordering.arrays import STRETCHES
from paribus.ordering.contexts import pack
from paribus.ordering.ordered_text import Measured, MeasuredContexts, OrderedText, sampled_bytes
from paribus.ordering.packing import Contexts
from paribus.ordering.shuffle import ContextShuffle, permute, traverse

EOS = 99
Token = tuple[int, int]
"""A token of the reference: (position in the order, place in the document)."""


@dataclass(frozen=True)
class FixedOrder:
    """An order that is given."""

    documents: np.ndarray
    groups: np.ndarray | None = None


def packed(
    documents: list[list[int]],
    order: list[int] | None = None,
    length: int = 4,
    packing: PackingConfig | None = None,
    groups: list[int] | None = None,
) -> Contexts:
    """Contexts of documents of token ids; `groups` are the positions at which groups begin, and the end."""
    ids = np.array([token for document in documents for token in document], dtype=np.uint16)
    offsets = np.cumsum([0, *map(len, documents)])
    chosen = np.array(range(len(documents)) if order is None else order, dtype=np.int64)
    given = FixedOrder(chosen, None if groups is None else np.array(groups))
    return pack(packing or ConcatenatePacking(), ids, offsets, given, EOS, length)


def token(documents: list[list[int]], order: list[int], place: Token) -> int:
    """The id of a token of the reference."""
    document = documents[order[place[0]]]
    return document[place[1]] if place[1] < len(document) else EOS


def stream(documents: list[list[int]], order: list[int]) -> list[Token]:
    """Every token of the documents, end after each, in the order."""
    return [(at, place) for at, document in enumerate(order) for place in range(len(documents[document]) + 1)]


def held(contexts: Contexts, index: int) -> list[Token]:
    """The tokens of a context's row, by the pieces it is said to hold."""
    pieces = contexts.pieces([index])
    columns = zip(pieces.positions.tolist(), pieces.starts.tolist(), pieces.lengths.tolist(), strict=True)
    return [(position, start + i) for position, start, length in columns for i in range(length)]


def predictions(contexts: Contexts) -> list[tuple[Token, Token]]:
    """(token, the token it predicts) over all contexts, by their targets; (-1, 0) is what a context begins with."""
    pairs = []
    for index in range(contexts.count):
        row, targets = held(contexts, index), contexts.rows([index])[1][0]
        row = [(-1, 0)] * contexts.pieces([index]).lead + row
        pairs += [(row[i], row[i + 1]) for i in np.flatnonzero(targets >= 0).tolist()]
    return pairs


@st.composite
def corpora(draw: st.DrawFn, longest: int = 14) -> tuple[list[list[int]], list[int], int]:
    """Documents (not all empty), a permutation of them, and a context length of at least 2 that they fill."""
    lists = st.lists(st.lists(st.integers(0, 9), max_size=longest), min_size=1, max_size=10)
    documents = draw(lists.filter(lambda found: any(found) and sum(map(len, found)) + len(found) > 2))
    order = draw(st.permutations(range(len(documents))))
    tokens = len(stream(documents, order))
    return documents, order, draw(st.integers(2, min(8, tokens - 1)))


def text_of(contexts: Contexts, token_byte_lengths: np.ndarray) -> OrderedText:
    """The text of packed documents, each as long as its tokens."""
    documents = contexts.documents
    source_bytes = np.zeros(int(documents.order.max()) + 1, dtype=np.int64)
    for position, document in enumerate(documents.order.tolist()):
        room = np.empty(int(documents.lengths[position]) - 1, dtype=np.int64)
        documents.read(np.array([position]), np.array([0]), [room])
        source_bytes[document] = token_byte_lengths[room].sum()
    return OrderedText(documents, source_bytes, token_byte_lengths)


def measured(contexts: Contexts, text: OrderedText, *, lossy: bool = False) -> MeasuredContexts:
    """What the stage `contexts` would say of all contexts."""
    corpus_bytes = int(text.corpus_begins[-1])
    found = Measured.of(contexts, text, lossy, sampled_bytes(corpus_bytes), 0, contexts.count)
    return MeasuredContexts(
        **vars(found), context_length=contexts.context_length, ordered_bytes=text.bytes, corpus_bytes=corpus_bytes
    )


def traversal_of(
    packing: PackingConfig, contexts: Contexts, token_byte_lengths: np.ndarray, seed: int
) -> ContextShuffle:
    """The sequence in which training reads packed documents."""
    return traverse(packing, measured(contexts, text_of(contexts, token_byte_lengths)), seed)


def slow_text_shuffle(places: list[int], text_bytes: int, stretch_bytes: int, seed: int, epoch: int) -> list[int]:
    """The contexts of an epoch in the sequence in which `packing.shuffle=text` reads them, stretch by stretch.

    `places` are the bytes of ordered text before each context. What is drawn at random is drawn as training does.
    """
    entropy = np.random.SeedSequence(entropy=(seed, epoch), spawn_key=(STRETCHES,))
    shift = int(np.random.Generator(np.random.PCG64(entropy)).integers(stretch_bytes))
    stretches: list[list[tuple[int, int]]] = [[] for _ in range(max(1, -(-(text_bytes + shift) // stretch_bytes)))]
    for context in sorted(range(len(places)), key=lambda context: (places[context], context)):
        number = min((places[context] + shift) // stretch_bytes, len(stretches) - 1)
        stretches[number].append((places[context] + shift - number * stretch_bytes, context))
    drawn = [stretches[int(permute(rank, len(stretches), seed=seed, epoch=epoch))] for rank in range(len(stretches))]
    windows = max(1, len(drawn) // max(64, min(4096, len(drawn) // 32)))
    read = []
    for window in range(windows):
        first, last = (number * len(drawn) // windows for number in (window, window + 1))
        side_by_side = [
            (into, rank, place, context)
            for rank, stretch in enumerate(drawn[first:last])
            for place, (into, context) in enumerate(stretch)
        ]
        read += [context for *_, context in sorted(side_by_side)]
    return read
