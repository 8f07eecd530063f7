"""Documents whose tokens were drawn several times: as if the order named every draw of each, without being written."""

import numpy as np
import pytest

from paribus.errors import DataError
from paribus.ordering.packing import OrderedDocuments
from paribus.ordering.pairs import PairContexts
from support.packings import EOS

DRAWS, DOCUMENTS = 3, 7
ORDER = np.array([5, 0, 3, 6, 1])


def drawn(random: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Ids, offsets and lengths of sources of all draws."""
    sources, targets = random.integers(0, 6, (2, DRAWS * DOCUMENTS))
    offsets = np.concatenate([[0], np.cumsum(sources + targets)])
    return random.integers(0, EOS, offsets[-1]).astype(np.uint16), offsets, sources


def both(seed: int, length: int = 4) -> tuple[PairContexts, PairContexts]:
    """Pairs of all draws, and the same with every draw of a document named as a document of its own."""
    ids, offsets, sources = drawn(np.random.default_rng(seed))
    written = np.concatenate([ORDER + DOCUMENTS * draw for draw in range(DRAWS)])
    redrawn = OrderedDocuments(ids, offsets, ORDER, EOS, DRAWS)
    return PairContexts(redrawn, length, sources), PairContexts(
        OrderedDocuments(ids, offsets, written, EOS), length, sources
    )


@pytest.mark.parametrize("seed", range(5))
def test_pairs_of_several_draws_are_those_of_an_order_that_names_every_draw(seed: int) -> None:
    redrawn, written = both(seed)
    assert redrawn.count == written.count == DRAWS * len(ORDER)
    assert redrawn.left_out_tokens == written.left_out_tokens > 0
    assert redrawn.documents.lengths.tolist() == written.documents.lengths.tolist()
    assert redrawn.documents.lengths.sum() == written.documents.lengths.sum()
    chosen = np.random.default_rng(seed).permutation(redrawn.count)[:9]
    for one, other in zip(redrawn.rows(chosen), written.rows(chosen), strict=True):
        assert np.array_equal(one, other)
    assert redrawn.by_length(chosen).tolist() == written.by_length(chosen).tolist()
    byte_lengths = np.arange(EOS)
    assert redrawn.source_bytes(byte_lengths, chosen).tolist() == written.source_bytes(byte_lengths, chosen).tolist()
    pieces, others = redrawn.predicted(chosen), written.predicted(chosen)
    assert all(np.array_equal(vars(pieces)[name], vars(others)[name]) for name in vars(pieces))


def test_a_document_is_in_a_context_of_each_draw_and_has_the_name_that_it_has_in_the_corpus() -> None:
    redrawn, _ = both(0)
    assert redrawn.contexts_of(3).tolist() == [2, 7, 12]
    assert redrawn.contexts_of(2).tolist() == []
    assert [redrawn.documents_of(context)[0][0] for context in (2, 7, 12)] == [3, 3, 3]
    assert redrawn.documents.texts_at(np.arange(10)).tolist() == [*ORDER, *ORDER]


def test_an_order_may_name_no_document_that_only_a_later_draw_would_have() -> None:
    ids, offsets, _ = drawn(np.random.default_rng(0))
    with pytest.raises(DataError, match=r"document 7 .*documents 0 to 6"):
        OrderedDocuments(ids, offsets, np.array([7]), EOS, DRAWS)
