"""What users of `transformers` expect of any tokenizer, of ours too: added and special tokens, offsets, training."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from paribus.errors import ConfigurationError
from paribus.tokenization import Tokenizer
from paribus.tokenization.interchange.huggingface import ParibusTokenizer
from support.exported_texts import EOS, MARKED_UP, real_texts
from support.real_data import RealData

BOTH: dict[str, dict[str, Any]] = {
    "bpe": {},
    "none": {"pretokenizer": "none"},
    "stripped": {"pretokenizer": "stripped"},
    "characters": {"unit": "character", "vocab_size": 1400, "pretokenizer": "gpt2"},
    "unknown": {"unit": "character", "unknown": "token", "vocab_size": 1000},
    "from_the_left": {"encoder": "left_to_right", "pretokenizer": "gpt4"},
    "bert": {"algorithm": "wordpiece", "pretokenizer": "stripped", "unit": "character", "unknown": "token"},
}
"""Tokenizers that `tokenizer.json` can describe, so that ours in Python can be compared with the library's."""
PYTHON: dict[str, dict[str, Any]] = {
    "longest_first": {"encoder": "longest_first"},
    "dropout": {"encoder": "dropout"},
    "scaffold": {"algorithm": "scaffold_bpe"},
    "unigram": {"algorithm": "unigram", "unit": "character", "vocab_size": 1400},
    "words": {"algorithm": "words", "unit": "character", "unknown": "token", "pretokenizer": "punctuation"},
    "spans": {"pretokenizer": "spans"},
}
ADDED = [
    AddedToken("<x>", normalized=False),
    AddedToken("<x>>", normalized=False),
    AddedToken("qua", single_word=True),
    AddedToken("left", lstrip=True),
    AddedToken("right", rstrip=True),
    AddedToken("<|user|>", special=True, lstrip=True, rstrip=True),
    AddedToken("東京"),
]
PIECES = [
    "<x>",
    "<x>>",
    "and",
    "squa",
    "and_",
    " ",
    "  \n",
    "left",
    "right",
    "<|user|>",
    EOS,
    "東京",
    "é",
    "a ",
    "\u3000",
    "qua",
    "\u0301",
    "\u200d",
    "²",
    "①",
    "\x1c",
    "\x1f ",
]
WRITTEN = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)


@pytest.fixture(scope="module")
def texts(real_data: RealData) -> list[str]:
    return real_texts(real_data)


@pytest.fixture(scope="module")
def made(texts: list[str]) -> dict[str, Tokenizer]:
    """A tokenizer of every kind; characters that occur only in one language are outside the alphabets."""
    seen = [text for number, text in enumerate(texts) if number != 4 and text != MARKED_UP]
    special = {"vocab_size": 1200, "special_tokens": [EOS, "<pad>"]}
    return {name: Tokenizer.train(seen, **special | options) for name, options in (BOTH | PYTHON).items()}


def in_python(tok: Tokenizer) -> PreTrainedTokenizerBase:
    return ParibusTokenizer(tok, pad_token="<pad>")


def as_a_library_has_it(tok: Tokenizer) -> PreTrainedTokenizerBase:
    fast = tok.to_huggingface(pad_token="<pad>")
    assert fast.is_fast
    return fast


@pytest.mark.parametrize("name", BOTH)
def test_special_tokens_in_text_are_special_unless_they_are_to_be_split(name: str, made: dict[str, Tokenizer]) -> None:
    tok = made[name]
    text = f"one {EOS}two<pad>"
    parts = [*tok.encode("one ").tolist(), tok.eos_id, *tok.encode("two").tolist(), tok.special_tokens["<pad>"]]
    for theirs in (in_python(tok), as_a_library_has_it(tok)):
        assert theirs(text)["input_ids"] == parts
        assert theirs(text, split_special_tokens=True)["input_ids"] == tok.encode(text).tolist() != parts


@pytest.mark.parametrize("name", ["bpe", "stripped", "unknown"])
@pytest.mark.parametrize("split", [False, True])
def test_added_tokens_are_found_as_the_library_finds_them(name: str, split: bool, made: dict[str, Tokenizer]) -> None:
    ours, theirs = in_python(made[name]), as_a_library_has_it(made[name])
    for added in (ours, theirs):
        assert added.add_tokens(ADDED) == len(ADDED)
        assert len(added) == made[name].vocab_size + len(ADDED)

    @settings(max_examples=300, deadline=None)
    @given(WRITTEN)
    def check(text: str) -> None:
        expected = theirs(text, return_offsets_mapping=True, split_special_tokens=split)
        found = ours(text, return_offsets_mapping=True, split_special_tokens=split)
        assert found["input_ids"] == expected["input_ids"]
        assert found["offset_mapping"] == expected["offset_mapping"]

    check()


@pytest.mark.parametrize("name", ["longest_first", "stripped"])
def test_added_tokens_outlive_saving_and_are_decoded(name: str, made: dict[str, Tokenizer], tmp_path: Path) -> None:
    ours = in_python(made[name])
    ours.add_tokens(ADDED)
    ours.add_special_tokens({"bos_token": "<s>"})
    ours.save_pretrained(tmp_path)
    read = AutoTokenizer.from_pretrained(tmp_path)
    text = f"<s>one left squa <x>> right  <|user|> 東京é{EOS}"
    ids = ours(text)["input_ids"]
    assert read(text)["input_ids"] == ids
    assert {read.bos_token_id, read.convert_tokens_to_ids("<x>>"), read.eos_token_id} < set(ids)
    decoded = {
        "longest_first": f"<s>oneleft squa <x>> right<|user|>東京é{EOS}",
        "stripped": f"<s> one left squa <x>> right <|user|> 東京 é {EOS}",
    }
    assert read.decode(ids) == decoded[name]
    assert len(read) == len(ours) == made[name].vocab_size + len(ADDED) + 1


@pytest.mark.parametrize("name", BOTH)
def test_offsets_are_those_of_the_library(name: str, made: dict[str, Tokenizer], texts: list[str]) -> None:
    ours, theirs = in_python(made[name]), as_a_library_has_it(made[name])
    for text in texts:
        expected = theirs(text, return_offsets_mapping=True)
        found = ours(text, return_offsets_mapping=True)
        assert found["input_ids"] == expected["input_ids"]
        assert found["offset_mapping"] == expected["offset_mapping"]


@pytest.mark.parametrize("name", PYTHON)
def test_offsets_cover_the_text_in_order(name: str, made: dict[str, Tokenizer], texts: list[str]) -> None:
    tok = made[name]
    lengths = tok.token_byte_lengths()
    for text in texts:
        found = in_python(tok)(text, return_offsets_mapping=True, split_special_tokens=True)
        spans = found["offset_mapping"]
        assert found["input_ids"] == tok.encode(text).tolist()
        assert spans == sorted(spans)
        assert {place for span in spans for place in range(*span)} == set(range(len(text)))
        for identity, (begin, end) in zip(found["input_ids"], spans, strict=True):
            written = text[begin:end].encode()
            if lengths[identity]:
                assert tok.token_bytes()[identity] in written


def test_a_character_that_tokens_share_is_the_place_of_each() -> None:
    tok = Tokenizer.train(["a"], vocab_size=257, special_tokens=[EOS])
    for theirs in (in_python_without_pad(tok), tok.to_huggingface()):
        assert theirs("a河b", return_offsets_mapping=True)["offset_mapping"] == [(0, 1), *[(1, 2)] * 3, (2, 3)]


def in_python_without_pad(tok: Tokenizer) -> PreTrainedTokenizerBase:
    return ParibusTokenizer(tok)


@pytest.mark.parametrize(
    "options",
    [
        {"padding": True},
        {"padding": True, "padding_side": "left"},
        {"padding": "max_length", "max_length": 9, "truncation": True},
        {"padding": True, "truncation": "only_second", "max_length": 11},
        {"padding": True, "pad_to_multiple_of": 8, "return_tensors": "pt"},
    ],
)
def test_batches_and_pairs_are_those_of_the_library(options: dict[str, Any], made: dict[str, Tokenizer]) -> None:
    ours, theirs = in_python(made["bpe"]), as_a_library_has_it(made["bpe"])
    first, second = [f"one{EOS}", "two and 東京"], ["a much longer text than that", "é"]
    for pairs in ((first,), (first, second)):
        given = {**options, "truncation": True} if options.get("truncation") and len(pairs) == 1 else options
        expected, found = (each(*pairs, return_offsets_mapping=True, **given) for each in (theirs, ours))
        assert found.keys() == expected.keys() == {"input_ids", "attention_mask", "offset_mapping"}
        for key, values in expected.items():
            assert listed(found[key]) == listed(values)
    for alone in (theirs, ours):
        single = alone("one", "東京", return_offsets_mapping=True, return_tensors="pt")
        assert single["offset_mapping"].shape == (*single["input_ids"].shape, 2)


def listed(values: Any) -> Any:
    return values.tolist() if hasattr(values, "tolist") else values


def test_offsets_of_a_tokenizer_that_normalizes_are_refused_with_a_way_out(tmp_path: Path) -> None:
    words = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\ncity\n"
    (tmp_path / "vocab.txt").write_text(words, encoding="utf-8")
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": true}', encoding="utf-8")
    theirs = Tokenizer.from_huggingface(tmp_path / "vocab.txt").to_huggingface()
    assert theirs("A city")["input_ids"] == [5, 6]
    with pytest.raises(
        ConfigurationError, match=r"pretokenizer=bert normalizes a text .* as transformers reads its file"
    ):
        theirs("A city", return_offsets_mapping=True)
    with pytest.raises(ConfigurationError, match=r"pretokenizer=bert is not trained here; .* or use Tokenizer.train"):
        theirs.train_new_from_iterator(["A city"], vocab_size=300)


@pytest.mark.parametrize("name", PYTHON)
def test_training_anew_is_training_the_same_kind_on_other_text(
    name: str, made: dict[str, Tokenizer], texts: list[str], tmp_path: Path
) -> None:
    others = texts[:2] * 3
    options = PYTHON[name] | {"vocab_size": 600, "special_tokens": [EOS, "<pad>", "<|user|>"]}
    if made[name].settings.unit == "character":
        options["vocab_size"] = 900
        options["unknown"] = made[name].settings.unknown
    expected = Tokenizer.train(others, **options)
    batches = [others[:4], others[4:]]
    trained = in_python(made[name]).train_new_from_iterator(
        batches, options["vocab_size"], new_special_tokens=["<|user|>"]
    )
    assert trained.paribus.settings == expected.settings
    assert [trained(text, split_special_tokens=True)["input_ids"] for text in texts[:2]] == [
        expected.encode(text).tolist() for text in texts[:2]
    ]
    assert (trained.eos_token, trained.pad_token, len(trained)) == (EOS, "<pad>", expected.vocab_size)
    trained.save_pretrained(tmp_path)
    assert (
        AutoTokenizer.from_pretrained(tmp_path)("one<|user|>")["input_ids"][-1] == expected.special_tokens["<|user|>"]
    )


def test_training_anew_renames_special_tokens_and_refuses_a_single_text(made: dict[str, Tokenizer]) -> None:
    ours = in_python(made["longest_first"])
    trained = ours.train_new_from_iterator(["a city"] * 9, 262, special_tokens_map={EOS: "</s>"})
    assert (trained.eos_token, trained.paribus.settings.special_tokens) == ("</s>", ("</s>", "<pad>"))
    with pytest.raises(TypeError, match="an iterator of texts or of lists of texts"):
        ours.train_new_from_iterator("a city", 300)


def test_a_fast_tokenizer_is_trained_anew_by_transformers(made: dict[str, Tokenizer], texts: list[str]) -> None:
    """With the same pre-tokens and every byte; it numbers tokens otherwise, so ties give other merges."""
    trained = made["bpe"].to_huggingface().train_new_from_iterator([texts[:2] * 3], 600)
    expected = Tokenizer.train(texts[:2] * 3, vocab_size=600, special_tokens=[EOS, "<pad>"])
    names = expected.to_huggingface().get_vocab().keys()
    assert len(trained) == 600
    assert len(trained.get_vocab().keys() & names) > 0.95 * 600
    assert [trained.decode(trained(text)["input_ids"]) for text in texts] == texts


@pytest.mark.parametrize("name", ["bpe", "longest_first"])
def test_a_chat_template_is_not_made_up(name: str, made: dict[str, Tokenizer]) -> None:
    with pytest.raises(ValueError, match=r"tokenizer.chat_template is not set"):
        made[name].to_huggingface().apply_chat_template([{"role": "user", "content": "one"}])
