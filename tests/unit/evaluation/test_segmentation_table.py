"""The table of the entropy paper, on small corpora."""

import re
from itertools import chain
from pathlib import Path

import pytest

from paribus.errors import ConfigurationError
from paribus.evaluation.measures.segmentation import scores_of_counts
from paribus.evaluation.segmenters.corpus import tokenizer_scores
from paribus.evaluation.segmenters.methods import (
    COUNT_LAMBDAS,
    PUNCTUATION,
    STANDARD,
    CutAgain,
    MethodScores,
    PiecesAlone,
    count_name,
    method_scores,
    text_methods,
)
from paribus.evaluation.segmenters.table import drawn, main, sentences_of, table
from paribus.tokenization.pretokenize.patterns import Pretokenizer
from paribus.tokenization.pretokenize.spans.pretokenizer import SpanPretokenizer
from paribus.tokenization.pretokenize.spans.settings import SpanSettings

WORDS = [["中国", "人民", "。", "北京", "大学", "！"], ["在", "北京", "，", "人民", "大学"], ["中国", "。"]]


def test_lines_are_cut_after_the_words_that_end_sentences() -> None:
    assert sentences_of(WORDS) == [
        ["中国", "人民", "。"],
        ["北京", "大学", "！"],
        ["在", "北京", "，", "人民", "大学"],
        ["中国", "。"],
    ]


def test_draws_share_no_sentence_and_leave_the_rest_in_order() -> None:
    sentences = [[str(number)] for number in range(20)]
    blocks, rest = drawn(sentences, size=6, draws=3, seed=1)
    assert [len(block) for block in blocks] == [6, 6, 6]
    assert sorted([*chain(*blocks), *rest]) == sorted(sentences)
    assert rest == sorted(rest, key=lambda words: int(words[0]))
    assert drawn(sentences, size=6, draws=2, seed=1)[0] == blocks[:2]
    assert drawn(sentences, size=6, draws=3, seed=2)[0] != blocks
    with pytest.raises(ConfigurationError, match="4 draws of 6 sentences are more than the corpus' 20"):
        drawn(sentences, size=6, draws=4, seed=1)


def test_tokens_stay_inside_pieces_and_pieces_are_scored_too() -> None:
    sentences = sentences_of(WORDS) * 8
    texts = ["".join(words) for words in sentences]
    methods = text_methods(texts, max_length=4, min_count=2)
    assert len(methods) == 11
    for name, pretokenizer in methods.items():
        scores = method_scores(pretokenizer, sentences, sentences, vocab_size=40, unknown="token")
        assert scores.tokens.gold == scores.pieces.gold == sum(map(len, sentences))
        assert scores.tokens.predicted >= scores.pieces.predicted, name
        assert scores.pieces.predicted == sum(len(pretokenizer.pieces(text)) for text in texts)
    assert method_scores(methods[STANDARD], sentences, sentences, vocab_size=40, unknown="token").pieces.correct == 0
    assert methods[PUNCTUATION].pieces("中国，人民。") == ["中国", "，", "人民", "。"]


def test_pieces_alone_are_words() -> None:
    assert PiecesAlone(Pretokenizer("none")).tokenize("中国。") == ["中国。".encode()]


def test_the_table_gives_means_deviations_and_the_papers_numbers() -> None:
    none, half, right = (scores_of_counts(n, 2, 2) for n in range(3))
    rows = {
        PUNCTUATION: [MethodScores(right, half, 1), MethodScores(right, half, 1)],
        STANDARD: [MethodScores(half, half, 1), MethodScores(none, half, 1)],
    }
    lines = table(rows).splitlines()
    assert lines[2] == (
        "| standard BPE | 25.00 ± 35.36 | 25.00 ± 35.36 | 25.00 ± 35.36 | 46.89 | 51.96 | 49.30 | 50.00 ± 0.00 "
        "| – | −75.00 ± 317.66 |"
    )
    assert lines[3].endswith("| 100.00 ± 0.00 | – | – | – | 50.00 ± 0.00 | +75.00 ± 317.66 | – |")


def test_a_single_draw_has_no_spread() -> None:
    half = scores_of_counts(1, 2, 2)
    assert table({STANDARD: [MethodScores(half, half, 1)]}).splitlines()[2] == (
        "| standard BPE | 50.00 | 50.00 | 50.00 | 46.89 | 51.96 | 49.30 | 50.00 | – | – |"
    )


def test_pieces_can_be_cut_again_at_punctuation() -> None:
    spans = SpanPretokenizer(SpanSettings(), ["中国", "人民"])
    cut = CutAgain(spans, Pretokenizer("gpt2"))
    assert cut.pieces("中国，。人民大") == ["中国", "，", "。", "人民", "大"]
    assert cut.to_state() == {"kind": "spans"}


def test_the_command_writes_the_table_and_the_text_that_is_in_no_draw(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gold, rest = tmp_path / "gold.txt", tmp_path / "rest.txt"
    gold.write_text("\n".join("  ".join(line) for line in WORDS * 20), encoding="utf-8")
    main([str(gold), "--sentences", "30", "--draws", "2", "--vocabulary", "60", "--rest", str(rest)])
    rows = re.findall(r"^\| (.*?) \|", capsys.readouterr().out, flags=re.MULTILINE)
    assert rows == [
        "pre-tokens",
        "standard BPE",
        "BPE, punctuation apart",
        "PMI + 0.1 × entropy",
        "PMI + 1 × entropy",
        "PMI + 10 × entropy",
        "PMI + 100 × entropy",
        *map(count_name, COUNT_LAMBDAS),
        "entropy only",
    ]
    assert len(rest.read_text(encoding="utf-8").splitlines()) == 80 - 60


def test_the_command_ends_with_what_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"error: .*gold\.txt: cannot be read"):
        main([str(tmp_path / "gold.txt")])


class Characters:
    """Every character a word."""

    def tokenize(self, text: str) -> list[bytes]:
        return [character.encode() for character in text]


def test_the_papers_order_of_methods_on_real_sentences(shared_data: Path, tmp_path: Path) -> None:
    """Of shares, spans help by far more than lambda matters; of counts, lambda goes from characters to entropy."""
    from paribus.evaluation.segmenters.corpus import read_segmented

    sentences = sentences_of(read_segmented(shared_data / "corpora" / "pku_1998_01_first70.seg.txt.gz"))
    assert len(sentences) == 31837
    (block,), _ = drawn(sentences, size=2255, draws=1, seed=0)
    train, test = block[:1578], block[1578:]
    methods = text_methods(["".join(words) for words in train], max_length=4, min_count=2)
    f1 = {
        name: method_scores(pretokenizer, train, test, vocab_size=12_000, unknown="token").tokens.f1
        for name, pretokenizer in methods.items()
    }
    spans = [value for name, value in f1.items() if "ntropy" in name and "counts" not in name]
    assert 0.47 < f1[STANDARD] < 0.54
    assert min(spans) > f1[STANDARD] + 0.06
    assert max(spans) - min(spans) < 0.02
    lowest, second, third, fourth = (f1[count_name(weight)] for weight in COUNT_LAMBDAS)
    assert lowest == pytest.approx(tokenizer_scores(Characters(), test).f1, abs=0.001)
    assert [lowest, second, third, fourth] == pytest.approx([0.3439, 0.4747, 0.5873, 0.5712], abs=0.012), "the paper's"
