"""What a caller of the library plausibly gives by mistake, and what holds texts and ids."""

import warnings

import numpy as np
import pytest

from paribus.tokenization import Tokenizer

TEXTS = ["all else being equal and nothing else in 1998"] * 3


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.train(TEXTS, vocab_size=270, special_tokens=("<end>",))


def test_a_mistake_is_a_type_error_that_says_what_is_right(tokenizer: Tokenizer) -> None:
    with pytest.raises(TypeError, match=r"Tokenizer\.train takes several strings.*\[text\]"):
        Tokenizer.train("a string", vocab_size=270)
    with pytest.raises(TypeError, match="encode_batch takes several strings"):
        tokenizer.encode_batch("abc")
    with pytest.raises(TypeError, match="encode: a text is a string, not bytes"):
        tokenizer.encode(b"abc")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="token ids are whole numbers"):
        tokenizer.decode([97, 1.5])


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
