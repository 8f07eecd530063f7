"""What a caller gives by mistake: one string for several, bytes, None, fractions; refused with what is right."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from paribus.errors import DataError
from paribus.tokenization import Tokenizer
from paribus.tokenization.pretokenize.spans.pretokenizer import SpanPretokenizer
from paribus.tokenization.statistics import corpus_statistics

TEXTS = ["all else being equal and nothing else in 1998"] * 3
Use = Callable[[Tokenizer], Any]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.train(TEXTS, vocab_size=270, special_tokens=("<end>",))


def train(texts: Any = TEXTS, **options: Any) -> Any:
    return Tokenizer.train(texts, **({"vocab_size": 270} | options))


WRONG: dict[str, tuple[Use, str]] = {
    "one string to train on": (lambda t: train("a string"), r"Tokenizer\.train takes several texts.*\[text\]"),
    "one string for spans": (lambda t: train("a string", pretokenizer="spans"), "several texts"),
    "bytes to train on": (lambda t: train(b"a string"), "several texts .*, not bytes"),
    "a dictionary to train on": (lambda t: train({"text": "a"}), "several texts .*, not dict"),
    "nothing to train on": (lambda t: train(None), "several texts .*, not None"),
    "bytes among texts": (lambda t: train(["a", b"a"]), "text 1 is bytes; decode it first"),
    "none among texts": (lambda t: train(["a", None]), "text 1 is None"),
    "one special token": (lambda t: train(special_tokens="<a>"), r"special_tokens takes several.*write \['<a>'\]"),
    "no special tokens": (lambda t: train(special_tokens=None), r"not None; \(\) for none"),
    "a size that is a fraction": (lambda t: train(vocab_size=270.5), "vocab_size takes a whole number, not 270.5"),
    "a size that is text": (lambda t: train(vocab_size="270"), "vocab_size takes a whole number, not '270'"),
    "a size that is true": (lambda t: train(vocab_size=True), "vocab_size takes a whole number, not True"),
    "threads that are text": (lambda t: train(threads="2"), "threads takes a whole number, not '2'"),
    "no pre-tokenizer": (lambda t: train(pretokenizer=None), "pretokenizer takes a name or an object"),
    "bytes to encode": (lambda t: t.encode(b"abc"), "encode takes a string, not bytes.*encode_bytes"),
    "several to encode": (lambda t: t.encode(["abc"]), "not list: encode_batch takes several"),
    "nothing to encode": (lambda t: t.encode(None), "not None"),
    "bytes to tokenize": (lambda t: t.tokenize(b"abc"), "not bytes"),
    "text as bytes": (lambda t: t.encode_bytes("abc"), "encode_bytes takes bytes, not str: encode takes strings"),
    "fractions as bytes": (lambda t: t.encode_bytes(np.array([1.5])), "not items of 8 bytes each"),
    "one string in a batch's place": (lambda t: t.encode_batch("abc"), r"encode_batch takes several.*\[text\]"),
    "bytes in a batch": (lambda t: t.encode_batch([b"abc"]), "text 0 is bytes"),
    "none in a batch": (lambda t: t.encode_batch(["a", None]), "text 1 is None"),
    "a dictionary as a batch": (lambda t: t.encode_batch({"text": "abc"}), "not dict"),
    "a fraction to decode": (lambda t: t.decode([97, 1.5]), "token ids are whole numbers, not .*1.5"),
    "fractions to decode": (lambda t: t.decode(np.array([97.0])), "token ids are whole numbers, not 97.0"),
    "true to decode": (lambda t: t.decode([True]), "token ids are whole numbers, not True"),
    "truths to decode": (lambda t: t.decode(np.array([True])), "token ids are whole numbers, not True"),
    "text to decode": (lambda t: t.decode("97"), "decode takes several token ids, not str"),
    "numbers as text": (lambda t: t.decode(["97"]), "token ids are whole numbers, not '97'"),
    "bytes to decode": (lambda t: t.decode(b"ab"), "several token ids, not bytes"),
    "one id": (lambda t: t.decode(97), r"not int: \[97\] for one"),
    "no ids": (lambda t: t.decode(None), "not None"),
    "none among ids": (lambda t: t.decode([None]), "token ids are whole numbers, not None"),
    "ids of two texts": (lambda t: t.decode(np.array([[97], [98]])), "the ids of one text"),
    "ids of two texts in lists": (lambda t: t.decode([[97], [98]]), "the ids of one text"),
    "statistics of one string": (lambda t: corpus_statistics(t, "abc"), "corpus_statistics takes several texts"),
    "spans of one string": (lambda t: SpanPretokenizer.train("abc"), "SpanPretokenizer.train takes several texts"),
    "ranks of text": (lambda t: Tokenizer.from_tiktoken({"a": 0}, pattern="gpt2"), "tokens that are bytes"),  # type: ignore[dict-item]
    "special names without ids": (
        lambda t: Tokenizer.from_tiktoken({b"a": 0}, pattern="gpt2", special_tokens=["<a>"]),  # type: ignore[arg-type]
        "special_tokens takes ids by name",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_mistake_is_a_type_error_that_says_what_is_right(case: str, tokenizer: Tokenizer) -> None:
    use, message = WRONG[case]
    with pytest.raises(TypeError, match=f"(?s){message}"):
        use(tokenizer)


@pytest.mark.parametrize("ids", [[-1], [270], [2**70], [-(2**70)], np.array([2**63 + 97], np.uint64)], ids=str)
def test_ids_that_no_token_has_are_refused_with_their_range(ids: Any, tokenizer: Tokenizer) -> None:
    with pytest.raises(DataError, match=r"token ids must lie in 0\.\.269, not "):
        tokenizer.decode(ids)


@pytest.mark.parametrize(
    "ids",
    [
        [97, 98],
        (97, 98),
        iter([97, 98]),
        np.array([97, 98], np.uint8),
        [np.int32(97), 98],
        [np.int64(97), np.int32(98)],
    ],
    ids=["list", "tuple", "iterator", "bytes of numpy", "mixed", "numpy's"],
)
def test_ids_are_decoded_in_whatever_holds_them(ids: Any, tokenizer: Tokenizer) -> None:
    assert tokenizer.decode(ids) == "ab"


def test_nothing_decodes_to_nothing_and_tensors_are_ids(tokenizer: Tokenizer) -> None:
    import torch

    assert [tokenizer.decode(ids) for ids in ([], (), np.array([]))] == ["", "", ""]
    assert tokenizer.decode(torch.tensor([97, 98])) == "ab"


def test_texts_may_be_an_array_a_generator_or_strings_of_numpy(tokenizer: Tokenizer) -> None:
    expected = [97, 98]
    for texts in (["a", "b"], ("a", "b"), np.array(["a", "b"]), (text for text in "ab"), [np.str_("a"), "b"]):
        assert tokenizer.encode_batch(texts)[0].tolist() == expected
    assert tokenizer.encode(np.str_("ab")).tolist() == expected
    assert train(np.array(TEXTS)).vocabulary.size == 270
    assert train(iter(TEXTS), vocab_size=np.int64(270)).vocabulary.size == 270


def test_a_vocabulary_smaller_than_was_asked_for_is_said() -> None:
    with pytest.warns(UserWarning, match="vocab_size=30000 was asked for, and the texts gave 258 tokens"):
        small = Tokenizer.train(["abc"], vocab_size=30_000)
    assert (small.vocab_size, small.settings.stopped) == (258, "no_pair_left")
    with pytest.warns(UserWarning, match="was asked for") as told:
        scaffold = Tokenizer.train(["aabaab aab"] * 9, algorithm="scaffold_bpe", vocab_size=30_000)
    assert len(scaffold.vocabulary) > scaffold.vocab_size, "scaffolds are no tokens"
    assert f"gave {scaffold.vocab_size} tokens" in str(told[0].message)
    assert told[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert train().vocab_size == 270
        assert Tokenizer.train((), algorithm="bytes").vocab_size == 256
