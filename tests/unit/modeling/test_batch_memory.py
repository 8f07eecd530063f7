"""Batches for which memory is short: halved, with nothing lost, doubled or put in another place."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch

from paribus.errors import OutOfMemoryError
from paribus.evaluation import translation
from paribus.evaluation.heldout import TextPair
from paribus.evaluation.translation import TargetScorer, Translator
from paribus.modeling.device import BatchMemory
from paribus.tokenization import Tokenizer

WORDS = ["a", "bcd", "", "efghi", "jk", "lmn", "o"]
BYTES = Tokenizer.train((), algorithm="bytes", special_tokens=("<|endoftext|>",))


def refusing(most: int, kind: type[BaseException] = torch.OutOfMemoryError) -> Any:
    """Doubles numbers, of so many at a time."""

    def compute(batch: Sequence[int]) -> list[int]:
        if len(batch) > most:
            raise kind("DefaultCPUAllocator: can't allocate memory" if kind is RuntimeError else "short")
        return [2 * item for item in batch]

    return compute


@pytest.mark.parametrize("kind", [torch.OutOfMemoryError, MemoryError, RuntimeError])
@pytest.mark.parametrize(("most", "parts"), [(7, [7]), (4, [3, 4]), (3, [3, 2, 2]), (1, [1] * 7)])
def test_parts_come_in_order_with_their_results(most: int, parts: list[int], kind: type[BaseException]) -> None:
    found = list(BatchMemory("testing").computed(refusing(most, kind), range(7)))
    assert [len(batch) for batch, _ in found] == parts
    assert [item for _, result in found for item in result] == list(range(0, 14, 2))


def test_the_following_batches_begin_with_what_a_batch_was_halved_to() -> None:
    memory, tried = BatchMemory("testing"), list[int]()

    def compute(batch: Sequence[int]) -> list[int]:
        tried.append(len(batch))
        return refusing(2)(batch)

    for _ in range(2):
        found = [item for _, result in memory.computed(compute, range(8)) for item in result]
        assert found == list(range(0, 16, 2))
    assert tried == [8, 4, 2, 2, 4, 2, 2, 2, 2, 2, 2]


def test_other_errors_and_what_a_single_item_needs_are_told() -> None:
    with pytest.raises(OutOfMemoryError, match=r"^testing ran out of memory with a single one .*\(short\)$"):
        list(BatchMemory("testing").computed(refusing(0), range(7)))
    with pytest.raises(ValueError, match="short"):
        list(BatchMemory("testing").computed(refusing(0, ValueError), range(7)))


@pytest.mark.parametrize("most", [1, 2, 3])
def test_every_source_keeps_its_translation(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def echoed(self: Translator, rows: Sequence[Any]) -> list[Any]:
        if len(rows) > most:
            raise torch.OutOfMemoryError("short")
        return [row[:-1] for row in rows]

    monkeypatch.setattr(Translator, "_generated", echoed)
    told: list[tuple[int, int]] = []
    translator = Translator(None, BYTES, context_length=16, batch_tokens=3 * 5 * 6)
    assert translator.translate(WORDS, lambda done, total: told.append((done, total))) == WORDS
    assert told[-1] == (7, 7) and told == sorted(told)


@pytest.mark.parametrize("most", [1, 2, 3])
def test_every_target_keeps_its_bits(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def counted(model: Any, batch: Sequence[Any]) -> Any:
        if len(batch) > most:
            raise torch.OutOfMemoryError("short")
        return np.array([float(len(part.scored)) for part in batch])

    monkeypatch.setattr(translation, "_window_nats", counted)
    found = TargetScorer(None, BYTES, context_length=4, batch_tokens=3 * 11).bits(
        [TextPair(word, "x", word) for word in WORDS]
    )
    assert (found.bits * np.log(2)).round(9).tolist() == [len(word) for word in WORDS]
