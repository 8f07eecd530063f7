"""Hundreds of languages and scripts, and Chinese without spaces."""

import pytest

from paribus.tokenization import Tokenizer
from support.real_data import RealData


@pytest.fixture(scope="module")
def declarations(real_data: RealData) -> list[str]:
    return [text[:1_500] for text in real_data.declaration_texts()]


@pytest.mark.parametrize("unit", ["byte", "character"])
@pytest.mark.parametrize("algorithm", ["bpe", "scaffold_bpe"])
def test_every_language_comes_back_exactly(declarations: list[str], algorithm: str, unit: str) -> None:
    tok = Tokenizer.train(
        declarations[::2],
        algorithm=algorithm,
        vocab_size=4_500,
        unit=unit,
        pretokenizer="gpt4",
        unknown="byte_fallback",
    )
    for encoder in ("merge_rank", "longest_first"):
        encoding = tok.with_encoder(encoder)
        for text in declarations[::5]:
            assert encoding.decode(encoding.encode(text)) == text


def test_chinese_words_become_tokens(real_data: RealData) -> None:
    texts = real_data.chinese_sentences(1_500)
    tok = Tokenizer.train(texts, vocab_size=5_000, unit="character", pretokenizer="gpt2_digits")
    tokens = {entry.bytes.decode() for entry in tok.vocabulary if entry.kind == "token"}
    assert {"中国", "经济", "发展"} <= tokens
    assert tok.decode(tok.encode(texts[0])) == texts[0]
