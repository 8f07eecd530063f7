"""Encoding in several threads: every text once and in its place; Arrow input; a full cache of pre-tokens."""

import random
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from paribus.tokenization import Tokenizer, encode
from paribus.tokenization.encode import Ids, SharedOutput
from paribus.tokenization.kernels import layout


def encode_in_threads(sizes: list[int], threads: int) -> tuple[Ids, npt.NDArray[np.int64], int]:
    """Texts whose ids are half their bytes, all of them the text's number; and how many blocks there were."""
    array = np.array(sizes, dtype=np.int64)
    output, starts = SharedOutput(array, threads), list[int]()

    def encode(texts: slice) -> tuple[Ids, npt.NDArray[np.int64]]:
        starts.append(texts.start)
        counts = array[texts] // 2
        return np.repeat(np.arange(len(sizes), dtype=np.int32)[texts], counts), np.cumsum(counts)

    with ThreadPoolExecutor(threads) as executor:
        list(executor.map(lambda _: output.work(encode), range(threads)))
    return *output.result(), len(starts)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_every_text_is_in_its_place_for_any_number_of_threads(threads: int) -> None:
    sizes = np.random.default_rng(threads).integers(0, 100_000, 300).tolist()
    ids, offsets, blocks = encode_in_threads(sizes, threads)
    counts = [size // 2 for size in sizes]
    assert np.array_equal(offsets, np.concatenate([[0], np.cumsum(counts)]))
    assert np.array_equal(ids, np.repeat(np.arange(300, dtype=np.int32), counts))
    assert blocks > threads


def test_texts_of_any_size_have_the_ids_of_one_thread() -> None:
    tok = Tokenizer.train(["a b c dd xx 中文"], vocab_size=262)
    for texts in (["", ""], ["a", ""], ["", "", "中"], ["x" * 3_000_000, "b", "", "dd" * 1_000_000]):
        expected = tok.encode_batch(texts)
        for threads in (2, 3, 9):
            result = tok.encode_batch(texts, threads=threads)
            assert all(np.array_equal(array, of_one) for array, of_one in zip(result, expected, strict=True))


def test_an_arrow_array_has_the_ids_of_its_strings() -> None:
    texts = ["one two", "", "中文 没有", "x" * 40, "naïve café", "", "end"]
    tok = Tokenizer.train(texts, vocab_size=300)
    for kind in (pa.string(), pa.large_string()):
        array = pa.array(texts, type=kind)
        for begin, end in ((0, 7), (2, 5), (1, 2), (3, 3), (6, 7)):
            result, expected = tok.encode_arrow(array[begin:end]), tok.encode_batch(texts[begin:end])
            assert all(np.array_equal(array, of_list) for array, of_list in zip(result, expected, strict=True))


WORDS = random.Random(4)
TEXTS = [
    " ".join("".join(WORDS.choices("abcdefgh", k=WORDS.choice((3, 9, 14, 17, 40, 300)))) for _ in range(400))
    for _ in range(60)
]


@pytest.mark.parametrize("largest", [12, 20])
@pytest.mark.parametrize("encoder", ["merge_rank", "longest_first"])
def test_a_full_memo_changes_no_ids(largest: int, encoder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tok = Tokenizer.train(TEXTS[:5], vocab_size=600).with_encoder(encoder)
    expected = [Tokenizer(tok.vocabulary, tok.settings).encode(text) for text in TEXTS]
    monkeypatch.setattr(encode, "_LARGEST_SHORT", largest)
    monkeypatch.setattr(encode, "_LARGEST_LONG", largest)
    limited = Tokenizer(tok.vocabulary, tok.settings)
    for _ in range(2):
        ids, offsets = limited.encode_batch(TEXTS)
        assert np.array_equal(ids, np.concatenate(expected))
        assert np.array_equal(np.diff(offsets), [len(text) for text in expected])
    slots = limited._encoding._workspace()._slots
    assert (slots[layout.SHORT_FREE] == -1) == (largest < 20)
    assert slots[layout.SHORT_SHIFT] >= 64 - largest and slots[layout.LONG_SHIFT] >= 64 - largest
