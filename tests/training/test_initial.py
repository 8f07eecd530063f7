"""Rows that the models of two tokenizers begin with: equal for the same token, wherever its id lies."""

import pytest
import torch

from paribus.tokenization import Tokenizer
from paribus.training.initial import initial_model
from support.real_data import real_data
from support.training_inputs import config

END = "<|endoftext|>"


def tokenizer(algorithm: str, size: int, special: tuple[str, ...] = (END,)) -> Tokenizer:
    texts = real_data().english_texts(200)
    return Tokenizer.train(texts, algorithm=algorithm, vocab_size=size, special_tokens=special)  # type: ignore[arg-type]


def rows(made: Tokenizer, seed: int = 0) -> dict[bytes, torch.Tensor]:
    """Row of the embedding by what its id decodes to, which special tokens have too."""
    weight = initial_model(config(seed=seed), made).embedding.weight.detach()
    found = {made.decode_bytes([number]): weight[number] for number in range(made.vocab_size)}
    assert len(found) == made.vocab_size
    return found


@pytest.fixture(scope="module")
def bpe() -> dict[bytes, torch.Tensor]:
    return rows(tokenizer("bpe", 1500))


def test_tokens_that_bpe_and_scaffold_bpe_share_begin_alike(bpe: dict[bytes, torch.Tensor]) -> None:
    scaffold = rows(tokenizer("scaffold_bpe", 1500))
    shared = bpe.keys() & scaffold.keys()
    assert 1000 < len(shared) < 1500
    assert END.encode() in shared
    assert all(torch.equal(bpe[token], scaffold[token]) for token in shared)


def test_a_larger_vocabulary_begins_with_the_rows_of_the_smaller(bpe: dict[bytes, torch.Tensor]) -> None:
    larger = rows(tokenizer("bpe", 1600, ("<pad>", END)))
    assert bpe.keys() < larger.keys()
    assert all(torch.equal(bpe[token], larger[token]) for token in bpe)


def test_no_two_tokens_begin_alike_nor_with_another_seed(bpe: dict[bytes, torch.Tensor]) -> None:
    other = rows(tokenizer("bpe", 1500), seed=1)
    drawn = torch.stack([*bpe.values(), *other.values()])
    assert len(torch.unique(drawn, dim=0)) == len(bpe) + len(other)


def test_a_special_token_and_a_text_token_of_one_spelling_are_two() -> None:
    made = Tokenizer.train(["a a b"] * 3, vocab_size=260, special_tokens=(" a", END))
    names = [made.decode_bytes([number]) for number in range(made.vocab_size)]
    assert names.count(b" a") == 2
    weight = initial_model(config(), made).embedding.weight.detach()
    first, second = (weight[number] for number, name in enumerate(names) if name == b" a")
    assert not torch.equal(first, second)
