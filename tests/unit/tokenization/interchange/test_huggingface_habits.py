"""What users of `transformers` expect of any tokenizer, of ours too: added and special tokens, batches, templates."""

from pathlib import Path
from typing import Any

import pytest
from tokenizers import AddedToken
from transformers import AutoTokenizer

from paribus.tokenization import Tokenizer
from paribus.tokenization.interchange.huggingface import ParibusTokenizer
from support.exported_texts import EOS, MARKED_UP, real_texts
from support.real_data import RealData

KINDS: dict[str, dict[str, Any]] = {
    "bpe": {},
    "stripped": {"pretokenizer": "stripped"},
    "unknown": {"unit": "character", "unknown": "token", "vocab_size": 1000},
    "bert": {"algorithm": "wordpiece", "pretokenizer": "stripped", "unit": "character", "unknown": "token"},
    "longest_first": {"encoder": "longest_first"},
    "scaffold": {"algorithm": "scaffold_bpe"},
}
ADDED = [
    AddedToken("<x>", normalized=False),
    AddedToken("<x>>", normalized=False),
    AddedToken("left", lstrip=True),
    AddedToken("right", rstrip=True),
    AddedToken("<|user|>", special=True, lstrip=True, rstrip=True),
    AddedToken("東京"),
]


@pytest.fixture(scope="module")
def texts(real_data: RealData) -> list[str]:
    return real_texts(real_data)


@pytest.fixture(scope="module")
def made(texts: list[str]) -> dict[str, Tokenizer]:
    seen = [text for text in texts if text != MARKED_UP]
    special = {"vocab_size": 1400, "special_tokens": [EOS, "<pad>"]}
    return {name: Tokenizer.train(seen, **special | options) for name, options in KINDS.items()}


@pytest.mark.parametrize("name", KINDS)
def test_special_tokens_in_text_are_special_unless_they_are_to_be_split(name: str, made: dict[str, Tokenizer]) -> None:
    tok = made[name]
    text = f"one {EOS}two<pad>"
    parts = [*tok.encode("one ").tolist(), tok.eos_id, *tok.encode("two").tolist(), tok.special_tokens["<pad>"]]
    for theirs in (ParibusTokenizer(tok, pad_token="<pad>"), tok.to_huggingface(pad_token="<pad>")):
        assert theirs(text)["input_ids"] == parts
        assert theirs(text, split_special_tokens=True)["input_ids"] == tok.encode(text).tolist() != parts


@pytest.mark.parametrize("name", ["longest_first", "stripped"])
def test_added_tokens_outlive_saving_and_are_decoded(name: str, made: dict[str, Tokenizer], tmp_path: Path) -> None:
    ours = ParibusTokenizer(made[name], pad_token="<pad>")
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


@pytest.mark.parametrize(
    "options",
    [
        {"padding": True},
        {"padding": True, "padding_side": "left"},
        {"padding": "max_length", "max_length": 9, "truncation": True},
        {"padding": True, "truncation": "only_second", "max_length": 11},
        {"padding": True, "pad_to_multiple_of": 8, "return_tensors": "np"},
    ],
)
def test_batches_and_pairs_are_those_of_the_library(options: dict[str, Any], made: dict[str, Tokenizer]) -> None:
    ours, theirs = ParibusTokenizer(made["bpe"], pad_token="<pad>"), made["bpe"].to_huggingface(pad_token="<pad>")
    first, second = [f"one{EOS}", "two and 東京"], ["a much longer text than that", "é"]
    for pairs in ((first,), (first, second)):
        given = {**options, "truncation": True} if options.get("truncation") and len(pairs) == 1 else options
        expected, found = (each(*pairs, **given) for each in (theirs, ours))
        assert found.keys() == expected.keys() == {"input_ids", "attention_mask"}
        for key in found:
            assert [list(row) for row in found[key]] == [list(row) for row in expected[key]]


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
