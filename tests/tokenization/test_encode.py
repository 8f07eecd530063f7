"""Threads that fill one array of ids: every text once, in its place, and the first refusal told."""

import random
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from paribus.errors import DataError
from paribus.tokenization import Tokenizer, encode
from paribus.tokenization.encode import Ids, SharedOutput
from paribus.tokenization.kernels import layout


def encoded(sizes: list[int], threads: int, order: list[int] | None = None) -> tuple[Ids, npt.NDArray[np.int64], int]:
    """Texts whose ids are half their bytes, all of them the text's number; and how many blocks there were.

    With `order`, blocks are finished in the order of their first texts, as many at a time as there are threads.
    """
    array = np.array(sizes, dtype=np.int64)
    output = SharedOutput(array, threads)
    turns = threading.Condition()
    finished: list[int] = []

    def encode(texts: slice) -> tuple[Ids, npt.NDArray[np.int64]]:
        numbers = np.arange(len(sizes), dtype=np.int32)[texts]
        counts = array[texts] // 2
        before = order[: order.index(texts.start)] if order else []
        with turns:
            assert turns.wait_for(lambda: set(before) <= set(finished), timeout=30)
            finished.append(texts.start)
            turns.notify_all()
        return np.repeat(numbers, counts), np.cumsum(counts)

    with ThreadPoolExecutor(threads) as executor:
        list(executor.map(lambda _: output.work(encode), range(threads)))
    return *output.result(), len(finished)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_every_text_is_in_its_place_for_any_number_of_threads(threads: int) -> None:
    sizes = np.random.default_rng(threads).integers(0, 100_000, 300).tolist()
    ids, offsets, blocks = encoded(sizes, threads)
    counts = [size // 2 for size in sizes]
    assert np.array_equal(offsets, np.concatenate([[0], np.cumsum(counts)]))
    assert np.array_equal(ids, np.repeat(np.arange(300, dtype=np.int32), counts))
    assert blocks > threads


@pytest.mark.parametrize("texts", [["", ""], ["a", ""], ["", "", "中"], ["x" * 3_000_000, "b", "", "dd" * 1_000_000]])
def test_texts_of_any_size_have_the_ids_of_one_thread(texts: list[str]) -> None:
    tok = Tokenizer.train(["a b c dd xx 中文"], vocab_size=262)
    alone, offsets = tok.encode_batch(texts)
    for threads in (2, 3, 9):
        ids, places = tok.encode_batch(texts, threads=threads)
        assert np.array_equal(ids, alone)
        assert np.array_equal(places, offsets)


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_an_arrow_array_has_the_ids_of_its_strings(kind: pa.DataType) -> None:
    texts = ["one two", "", "中文 没有", "x" * 40, "naïve café", "", "end"]
    tok = Tokenizer.train(texts, vocab_size=300)
    array = pa.array(texts, type=kind)
    for begin, end in ((0, 7), (2, 5), (1, 2), (3, 3), (6, 7)):
        ids, offsets = tok.encode_arrow(array[begin:end])
        expected, places = tok.encode_batch(texts[begin:end])
        assert np.array_equal(ids, expected)
        assert np.array_equal(offsets, places)


REFUSED = {
    "list": (["a"], "not list; encode_batch takes a list of strings"),
    "chunked": (pa.chunked_array([["a"], ["b"]]), r"not ChunkedArray; .*`combine_chunks\(\)`"),
    "numbers": (pa.array([1, 2]), "not Int64Array"),
    "nulls": (pa.array(["a", None, "b", None]), r"text 1 is null \(2 of 4 are\); leave nulls out"),
}


@pytest.fixture(params=["gpt2", "spans"])
def tok(request: pytest.FixtureRequest) -> Tokenizer:
    """By pattern, whose texts are read where Arrow has them, and with a pre-tokenizer made from data."""
    return Tokenizer.train(["a b a b"], vocab_size=257, pretokenizer=request.param)


@pytest.mark.parametrize("name", REFUSED)
def test_other_arrow_data_than_strings_is_refused_by_name(tok: Tokenizer, name: str) -> None:
    texts, message = REFUSED[name]
    with pytest.raises(DataError, match=message):
        tok.encode_arrow(texts)


# What is remembered has an end, and ids never depend on it.

WORDS = random.Random(4)
TEXTS = [
    " ".join("".join(WORDS.choices("abcdefgh", k=WORDS.choice((3, 9, 14, 17, 40, 300)))) for _ in range(400))
    for _ in range(60)
]


@pytest.mark.parametrize("largest", [12, 13, 20])
@pytest.mark.parametrize("encoder", ["merge_rank", "longest_first"])
def test_a_full_memo_changes_no_ids(largest: int, encoder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tok = Tokenizer.train(TEXTS[:5], vocab_size=600).with_encoder(encoder)
    alone = [Tokenizer(tok.vocabulary, tok.settings).encode(text) for text in TEXTS]
    monkeypatch.setattr(encode, "_LARGEST_SHORT", largest)
    monkeypatch.setattr(encode, "_LARGEST_LONG", largest)
    limited = Tokenizer(tok.vocabulary, tok.settings)
    for _ in range(2):
        ids, offsets = limited.encode_batch(TEXTS)
        assert np.array_equal(ids, np.concatenate(alone))
        assert np.array_equal(np.diff(offsets), [len(found) for found in alone])
    kept = limited._encoding._workspace()
    assert (kept._slots[layout.SHORT_FREE] == -1) == (largest < 20)
    assert kept._slots[layout.SHORT_SHIFT] >= 64 - largest
    assert kept._slots[layout.LONG_SHIFT] >= 64 - largest
