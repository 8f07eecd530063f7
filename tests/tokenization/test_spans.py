"""Spans from mutual information and branching entropy, against an obvious computation from the definitions."""

import json
import math
import random
import unicodedata
from collections import Counter, defaultdict
from itertools import pairwise
from typing import Any

import pytest

from paribus.config.groups.tokenization import SpansPretokenizer
from paribus.errors import ConfigurationError, DataError
from paribus.tokenization import spans
from paribus.tokenization.spans import CodeSpool, SpanPretokenizer, candidate_ngrams, decode
from support.real_data import RealData

Candidates = dict[str, tuple[int, float, float, float]]


def lines_of(texts: list[str]) -> list[str]:
    return [line for text in texts for line in (text.splitlines() or [""])]


def is_candidate(ngram: str, settings: SpansPretokenizer) -> bool:
    def obvious_class(character: str) -> str:
        if unicodedata.name(character, "").startswith("CJK UNIFIED") or character in "〇々":
            return "ideograph"
        kind = unicodedata.category(character)[0]
        return {"N": "digit", "L": "letter", "M": "letter"}.get(kind, "other")

    classes = set(map(obvious_class, ngram))
    return settings.classes == "any" or (len(classes) == 1 and "other" not in classes)


def entropy(counts: Counter[str]) -> float:
    total = sum(counts.values())
    return -sum(count / total * math.log2(count / total) for count in counts.values())


def obvious_candidates(texts: list[str], settings: SpansPretokenizer) -> Candidates:
    """n-gram -> (count, min PMI, H_left, H_right), position by position."""
    lines = lines_of(texts)
    characters = Counter(character for line in lines for character in line)
    pairs = Counter(line[i : i + 2] for line in lines for i in range(len(line) - 1))
    counts: Counter[str] = Counter()
    left: defaultdict[str, Counter[str]] = defaultdict(Counter)
    right: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for line in lines:
        for length in range(2, settings.max_length + 1):
            for i in range(len(line) - length + 1):
                ngram = line[i : i + length]
                counts[ngram] += 1
                left[ngram][line[i - 1] if i else "line end"] += 1
                right[ngram][line[i + length] if i + length < len(line) else "line end"] += 1

    def information(x: str, y: str) -> float:
        if settings.information == "counts":
            return math.log2(pairs[x + y] / (characters[x] * characters[y]))
        joint = pairs[x + y] / pairs.total()
        return math.log2(joint / (characters[x] / characters.total() * characters[y] / characters.total()))

    return {
        ngram: (count, min(information(x, y) for x, y in pairwise(ngram)), entropy(left[ngram]), entropy(right[ngram]))
        for ngram, count in counts.items()
        if count >= settings.min_count and is_candidate(ngram, settings)
    }


def obvious_pieces(
    text: str, candidates: dict[str, tuple[int, float, float, float]], settings: SpansPretokenizer
) -> list[str]:
    """From the left, the candidate of highest score that begins here, else the character."""

    def score(ngram: str) -> float:
        _, information, left, right = candidates[ngram]
        if settings.entropy_only:
            return round(min(left, right), 9)
        return round(information + settings.entropy_weight * min(left, right), 9)

    pieces = []
    while text:
        here = [text[:length] for length in range(2, settings.max_length + 1) if text[:length] in candidates]
        best = max(here, key=lambda ngram: (score(ngram), len(ngram)), default=text[0])
        if best in candidates and settings.least_score is not None and score(best) <= settings.least_score:
            best = text[0]
        pieces.append(best)
        text = text[len(best) :]
    return pieces


def random_texts(seed: int) -> list[str]:
    draw = random.Random(seed)
    words = ["中国", "人民", "中国人民", "大学", "的", "在", "ab", "abc", "12", "１９９８"]
    words += ["，", "。", " ", "\n", "〇", "e\u0301", "🙂"]
    return ["".join(draw.choices(words, k=draw.randint(0, 60))) for _ in range(draw.randint(1, 30))]


@pytest.fixture(scope="module")
def sentences(real_data: RealData) -> list[str]:
    return real_data.chinese_sentences(400)


def check_candidates(texts: list[str], settings: SpansPretokenizer) -> None:
    expected = obvious_candidates(texts, settings)
    candidates = {
        string: (int(level.counts[i]), level.information[i], level.left_entropy[i], level.right_entropy[i])
        for level in candidate_ngrams(texts, settings)
        for i, string in enumerate(decode(level.codes))
    }
    assert candidates.keys() == expected.keys()
    for ngram, measures in candidates.items():
        assert measures == pytest.approx(expected[ngram], abs=1e-9), ngram


@pytest.mark.parametrize("seed", range(12))
def test_candidates_and_their_measures_are_those_of_the_definitions(seed: int) -> None:
    settings = SpansPretokenizer(max_length=2 + seed % 4, min_count=1 + seed % 3)
    check_candidates(random_texts(seed), settings)


@pytest.mark.parametrize("weight", [0.0, 2.0, 50.0])
def test_a_span_that_scores_no_more_than_the_least_is_cut(weight: float) -> None:
    settings = SpansPretokenizer(
        entropy_weight=weight, information="counts", least_score=0.0, classes="any", min_count=1
    )
    for seed in range(3):
        texts = random_texts(seed)
        candidates = obvious_candidates(texts, settings)
        pretokenizer = SpanPretokenizer.train(texts, settings)
        for line in lines_of([*texts, *random_texts(seed + 50)]):
            assert list(pretokenizer.pieces(line)) == obvious_pieces(line, candidates, settings)
        assert any(len(span) for span in pretokenizer.spans) == (weight > 0)


def test_candidates_do_not_depend_on_how_the_corpus_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spans, "_IN_MEMORY", 100)
    monkeypatch.setattr(spans, "_BATCH", 20)
    for window in (5, 6, 50):
        monkeypatch.setattr(CodeSpool.windows, "__defaults__", (window,))
        check_candidates(random_texts(window)[:6], SpansPretokenizer())


@pytest.mark.parametrize("only", [False, True])
@pytest.mark.parametrize("weight", [0.0, 0.1, 1.0, 10.0, 100.0])
def test_pieces_are_the_best_scored_candidates_from_the_left(weight: float, only: bool, sentences: list[str]) -> None:
    settings = SpansPretokenizer(entropy_weight=weight, entropy_only=only)
    check_candidates(sentences[:200], settings)
    candidates = obvious_candidates(sentences[:200], settings)
    pretokenizer = SpanPretokenizer.train(sentences[:200], settings)
    for sentence in sentences:
        assert pretokenizer.pieces(sentence) == obvious_pieces(sentence, candidates, settings)


def test_pieces_join_to_any_text_even_with_lone_surrogates() -> None:
    pretokenizer = SpanPretokenizer.train(random_texts(0))
    draw = random.Random(1)
    for _ in range(200):
        text = "".join(chr(draw.choice([draw.randrange(0x110000), draw.randrange(0x4E00, 0x4F00)])) for _ in range(50))
        assert "".join(pretokenizer.pieces(text)) == text
    assert pretokenizer.pieces("") == []


def test_the_state_is_json_and_gives_the_same_pretokenizer_and_the_same_bytes() -> None:
    texts = random_texts(3)
    pretokenizer = SpanPretokenizer.train(iter(texts), SpansPretokenizer(entropy_weight=10, least_score=0))
    state = json.dumps(pretokenizer.to_state())
    restored = SpanPretokenizer.from_state(json.loads(state))
    assert (restored.settings, restored.spans) == (pretokenizer.settings, pretokenizer.spans)
    assert json.dumps(restored.to_state()) == state
    settings = SpansPretokenizer(entropy_weight=10.0, least_score=0.0)
    assert json.dumps(SpanPretokenizer.train(texts, settings).to_state()) == state


def test_settings_out_of_range_are_refused() -> None:
    state = SpanPretokenizer(SpansPretokenizer(), ["ab"]).to_state()
    cases: list[dict[str, Any]] = [
        {"max_length": 1}, {"min_count": 0}, {"entropy_weight": -1.0}, {"entropy_weight": "x"}, {"entropy_only": "no"},
        {"information": "foo"}, {"classes": "foo"}, {"least_score": math.nan},
    ]  # fmt: skip
    for values in cases:
        with pytest.raises(ConfigurationError, match=f"pretokenizer.{next(iter(values))}: "):
            SpanPretokenizer(SpansPretokenizer(**values), ["ab"])
        with pytest.raises(DataError, match="malformed"):
            SpanPretokenizer.from_state(state | {"settings": state["settings"] | values})
