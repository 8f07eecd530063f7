"""What a caller of the library plausibly gives by mistake, and what holds texts and ids."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from paribus.errors import DataError
from paribus.tokenization import Tokenizer
from paribus.tokenization.statistics import corpus_statistics

TEXTS = ["all else being equal and nothing else in 1998"] * 3


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.train(TEXTS, vocab_size=270, special_tokens=("<end>",))


WRONG: list[tuple[Callable[[Any], Any], str]] = [
    (lambda t: t.train("a string", vocab_size=270), r"Tokenizer\.train takes several strings.*\[text\]"),
    (lambda t: t.train(["a", b"a"], vocab_size=270), "a text is a string, not bytes"),
    (lambda t: t.train(TEXTS, vocab_size=270, special_tokens="<a>"), r"special_tokens takes several strings"),
    (lambda t: corpus_statistics(t, "abc"), "corpus_statistics takes several strings"),
    (lambda t: t.encode(b"abc"), "encode: a text is a string, not bytes"),
    (lambda t: t.encode(["abc"]), "encode: a text is a string, not list"),
    (lambda t: t.encode_batch("abc"), "encode_batch takes several strings"),
    (lambda t: t.encode_batch(["a", None]), "a text is a string, not NoneType"),
    (lambda t: t.decode("97"), "token ids are whole numbers"),
    (lambda t: t.decode([97, 1.5]), "token ids are whole numbers"),
    (lambda t: t.decode([[97], [98]]), "the ids of one text"),
]


def test_a_mistake_is_a_type_error_that_says_what_is_right(tokenizer: Tokenizer) -> None:
    for use, message in WRONG:
        with pytest.raises(TypeError, match=message):
            use(tokenizer)
    for ids in ([-1], [270], np.array([2**63 + 97], np.uint64)):
        with pytest.raises(DataError, match=r"token ids must lie in 0\.\.269, not "):
            tokenizer.decode(ids)


def test_texts_and_ids_are_taken_from_whatever_holds_them(tokenizer: Tokenizer) -> None:
    import torch

    for ids in ([97, 98], iter([97, 98]), np.array([97, 98], np.uint8), [np.int32(97), 98], torch.tensor([97, 98])):
        assert tokenizer.decode(ids) == "ab"
    assert [tokenizer.decode(ids) for ids in ([], (), np.array([]))] == ["", "", ""]
    for texts in (("a", "b"), np.array(["a", "b"]), (text for text in "ab"), [np.str_("a"), "b"]):
        assert tokenizer.encode_batch(texts)[0].tolist() == [97, 98]


def test_a_vocabulary_smaller_than_was_asked_for_is_said() -> None:
    with pytest.warns(UserWarning, match="vocab_size=30000 was asked for, and the texts gave 258 tokens") as warned:
        small = Tokenizer.train(["abc"], vocab_size=30_000)
    assert (small.vocab_size, small.settings.stopped, warned[0].filename) == (258, "no_pair_left", __file__)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Tokenizer.train((), algorithm="bytes").vocab_size == 256
