"""Pinned contexts of every packing on a tiny input.

A value that changes means that the `code_version` of the stage `training` must change with it.
"""

import numpy as np
import pytest

from paribus.config.groups.ordering import BestFitPacking, OneDocumentPacking
from paribus.ordering.packing import Contexts
from paribus.ordering.shuffle import permute
from support.packings import packed

DOCUMENTS = [[0, 1, 2, 3, 4, 5, 6], [], list(range(10, 23)), [30], [40, 41, 42]]
ORDER = [2, 1, 0, 4, 3]
__ = -1


def rows(contexts: Contexts) -> list[tuple[list[int], list[int]]]:
    inputs, targets = contexts.rows(np.arange(contexts.count))
    return list(zip(inputs.tolist(), targets.tolist(), strict=True))


def test_concatenated_contexts_keep_their_tokens() -> None:
    assert rows(packed(DOCUMENTS, ORDER, 6)) == [
        ([10, 11, 12, 13, 14, 15], [11, 12, 13, 14, 15, 16]),
        ([16, 17, 18, 19, 20, 21], [17, 18, 19, 20, 21, 22]),
        ([22, 99, 99, 0, 1, 2], [99, 99, 0, 1, 2, 3]),
        ([3, 4, 5, 6, 99, 40], [4, 5, 6, 99, 40, 41]),
    ]


def test_contexts_of_groups_keep_their_tokens() -> None:
    assert rows(packed(DOCUMENTS, ORDER, 6, groups=[0, 1, 3, 4, 5])) == [
        ([10, 11, 12, 13, 14, 15], [11, 12, 13, 14, 15, 16]),
        ([99, 0, 1, 2, 3, 4], [0, 1, 2, 3, 4, 5]),
    ]


@pytest.mark.parametrize("window", [1024, None])
def test_fitted_contexts_keep_their_tokens(window: int | None) -> None:
    assert rows(packed(DOCUMENTS, ORDER, 6, BestFitPacking(window=window))) == [
        ([99, 10, 11, 12, 13, 14], [10, 11, 12, 13, 14, 15]),
        ([99, 15, 16, 17, 18, 19], [__, 16, 17, 18, 19, 20]),
        ([99, 20, 21, 22, 99, 99], [__, 21, 22, 99, 99, __]),
        ([99, 0, 1, 2, 3, 4], [0, 1, 2, 3, 4, 5]),
        ([99, 5, 6, 99, 99, 99], [__, 6, 99, __, __, __]),
        ([99, 40, 41, 42, 99, 30], [40, 41, 42, 99, 30, 99]),
    ]


def test_contexts_fitted_in_windows_keep_their_tokens() -> None:
    assert rows(packed(DOCUMENTS, ORDER, 6, BestFitPacking(window=2)))[2:] == [
        ([99, 20, 21, 22, 99, 99], [__, 21, 22, 99, 99, __]),
        ([99, 0, 1, 2, 3, 4], [0, 1, 2, 3, 4, 5]),
        ([99, 5, 6, 99, 99, 99], [__, 6, 99, __, __, __]),
        ([99, 40, 41, 42, 99, 99], [40, 41, 42, 99, __, __]),
        ([99, 30, 99, 99, 99, 99], [30, 99, __, __, __, __]),
    ]


def test_contexts_of_one_document_keep_their_tokens() -> None:
    assert rows(packed(DOCUMENTS, ORDER, 6, OneDocumentPacking()))[2:] == [
        ([99, 20, 21, 22, 99, 99], [__, 21, 22, 99, __, __]),
        ([99, 99, 99, 99, 99, 99], [99, __, __, __, __, __]),
        ([99, 0, 1, 2, 3, 4], [0, 1, 2, 3, 4, 5]),
        ([99, 5, 6, 99, 99, 99], [__, 6, 99, __, __, __]),
        ([99, 40, 41, 42, 99, 99], [40, 41, 42, 99, __, __]),
        ([99, 30, 99, 99, 99, 99], [30, 99, __, __, __, __]),
    ]


def test_the_order_of_contexts_keeps_its_values() -> None:
    assert permute(np.arange(10), 1000, seed=7, epoch=3).tolist() == [507, 811, 354, 584, 310, 994, 176, 768, 689, 346]
