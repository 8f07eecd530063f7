"""The table of the entropy paper, `benchmarks/segmenters.py`."""

import importlib
from pathlib import Path

import pytest

from paribus.evaluation.segmentation import read_segmented, scores_of_counts


def test_the_table_has_the_papers_order_of_methods_on_real_sentences(
    shared_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of shares, spans help by far more than lambda matters; of counts, F1 is the paper's at each lambda."""
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[1] / "benchmarks"))
    benchmark = importlib.import_module("segmenters")
    sentences = benchmark.sentences_of(read_segmented(shared_data / "corpora" / "pku_1998_01_first70.seg.txt.gz"))
    ((train, test),), rest = benchmark.drawn(sentences, draws=1)
    assert (len(sentences), len(train), len(test), len(rest)) == (31_837, 1_578, 677, 31_837 - 2_255)
    methods = benchmark.text_methods(["".join(words) for words in train])
    scores = {name: benchmark.method_scores(method, train, test) for name, method in methods.items()}
    f1 = {name: each.tokens.f1 for name, each in scores.items()}
    spans = [f1[name] for name in (*benchmark.LAMBDAS, benchmark.ENTROPY_ONLY)]
    assert 0.47 < f1[benchmark.STANDARD] < 0.54
    assert min(spans) > f1[benchmark.STANDARD] + 0.06 and max(spans) - min(spans) < 0.02
    counts = [f1[name] for name in benchmark.COUNT_LAMBDAS]
    assert counts == pytest.approx([benchmark.PAPER[name][2] / 100 for name in benchmark.COUNT_LAMBDAS], abs=0.012)

    none, half, right = (scores_of_counts(number, 2, 2) for number in range(3))
    draws = {
        benchmark.PUNCTUATION: [benchmark.MethodScores(right, half)] * 2,
        benchmark.STANDARD: [benchmark.MethodScores(each, half) for each in (half, none)],
    }
    *_, standard, apart = benchmark.table(draws).splitlines()
    assert standard == (
        "| standard BPE | 25.00 ± 35.36 | 25.00 ± 35.36 | 25.00 ± 35.36 | 46.89 | 51.96 | 49.30 | 50.00 ± 0.00 "
        "| – | −75.00 ± 317.66 |"
    )
    assert apart.endswith("| 100.00 ± 0.00 | – | – | – | 50.00 ± 0.00 | +75.00 ± 317.66 | – |")
