"""Counting pre-tokens in a stream against `regex` and a dictionary."""

import random
from collections import Counter
from collections.abc import Iterable
from itertools import islice

import pytest
import regex

from paribus.tokenization import counts
from paribus.tokenization.counts import count_words, sum_counts
from paribus.tokenization.kernels.layout import PATTERNS as NAMES
from paribus.tokenization.pretokenize import PATTERNS, class_table
from support.real_data import RealData, texts_of

POOL = "  \n\r\t''sdmtlrev abcABC019.,!é\u00a0\u3000世界语文٣½😀👩\u200d🚀\u0301नमस्तेمرحبا"


def reference(texts: Iterable[str], name: str) -> Counter[bytes]:
    pattern = regex.compile(PATTERNS[name])
    return Counter(piece.encode() for text in texts for piece in pattern.findall(text))


def counted(texts: Iterable[str], name: str, threads: int = 1) -> dict[bytes, int]:
    words = count_words(texts, NAMES.index(name), class_table(name), threads=threads)
    listed = dict(words)
    assert len(listed) == len(words)
    return listed


def random_text(draw: random.Random) -> str:
    pool = POOL[: draw.choice([20, 35, len(POOL)])]
    return "".join(draw.choice(pool) for _ in range(draw.choice([0, 1, 2, 5, 15, 16, 17, 40, 64, 65, 200])))


@pytest.mark.parametrize("name", NAMES)
def test_random_texts_are_counted_as_the_pattern_cuts_them(name: str) -> None:
    draw = random.Random(name)
    for _ in range(150):
        texts = [random_text(draw) for _ in range(draw.randrange(8))]
        assert counted(texts, name) == reference(texts, name)


@pytest.mark.parametrize("name", NAMES)
def test_a_long_text_is_counted_the_same_in_stretches(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counts, "_SCANNED", 64)
    draw = random.Random(name)
    words = ["it's", "they'll", "x", "Straße", "中文 没有 空格", "12 345", "a  b", "...", "\n", "don't. ", "é a"]
    for _ in range(60):
        text = " ".join(draw.choices(words, k=draw.choice([10, 100, 400])))
        assert counted([text], name) == reference([text], name)


@pytest.mark.parametrize("name", NAMES)
def test_real_text_is_counted_the_same_by_any_number_of_threads(real_data: RealData, name: str) -> None:
    texts = [text for kind in ("english", "declarations") for text in islice(texts_of(getattr(real_data, kind)), 150)]
    expected = reference(texts, name)
    assert counted(texts, name) == expected
    assert counted(texts[::-1], name, threads=2) == expected


def test_counts_of_parts_add_up_to_those_of_the_whole() -> None:
    draw = random.Random(2)
    words = ["fifteen-bytes--", "sixteen-bytes---", "世界语文" * 5, "", "a", "12345678", "123456789"]
    texts = [random_text(draw) + draw.choice(words) for _ in range(300)]
    texts += [" ".join(f"w{number} much-longer-than-inline-{number}" for number in range(5_000))]
    parts = [count_words(texts[begin::4], NAMES.index("gpt2"), class_table()) for begin in range(4)]
    total = sum_counts(parts)
    assert dict(total) == counted(texts, "gpt2")
    assert len(dict(total)) == len(total)
    assert len(sum_counts([])) == 0
