"""BM25 neighbours against a slow and obvious reading of the formula."""

import math
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer

from paribus.config.groups.ordering import LexicalOrdering
from paribus.errors import DataError
from paribus.ordering import bm25 as lexical_stage
from paribus.ordering.arrays import TERM, NeighbourLists
from paribus.ordering.bm25 import count_texts
from paribus.stage import JSON
from support.corpora import write_corpus
from support.orders import ordering_context, topics


def find(
    root: Path, texts: list[str], ordering: LexicalOrdering, *, workers: int = 1
) -> tuple[NeighbourLists, dict[str, JSON]]:
    """Run the stage on a corpus of two shards or more."""
    corpus = write_corpus(root / "corpus", texts, shard_bytes=200)
    stage = ordering_context(root, "lexical_neighbours", ordering, corpus=corpus, workers=workers)
    result = lexical_stage.build(stage)
    return NeighbourLists(stage.output), result


def slow(texts: list[str], ordering: LexicalOrdering) -> list[dict[int, float]]:
    """Similarity of each document to those it shares a term with, in double precision."""
    bags = [re.findall(r"[一-鿿]|[^\W一-鿿]{2,}", text.lower()) for text in texts]
    frequency = {term: sum(term in bag for bag in bags) for bag in bags for term in bag}
    bags = [[term for term in bag if frequency[term] > 1] for bag in bags]
    mean = sum(map(len, bags)) / len(bags)

    def weight(term: str, document: int) -> float:
        tf, k, b = bags[document].count(term), ordering.saturation, ordering.length_normalization
        rarity = math.log(1 + (len(bags) - frequency[term] + 0.5) / (frequency[term] + 0.5))
        return rarity * tf * (k + 1) / (tf + k * (1 - b + b * len(bags[document]) / mean)) if tf else 0.0

    similarities = []
    for document, bag in enumerate(bags):
        query = sorted(set(bag), key=lambda term: (-np.float32(weight(term, document)), term))[: ordering.query_terms]
        scores = [sum(weight(term, other) for term in query) for other in range(len(bags))]
        others = [other for other in range(len(bags)) if other != document and scores[other] > 0]
        similarities.append({other: min(1.0, scores[other] / scores[document]) for other in others})
    return similarities


def assert_equal(lists: NeighbourLists, expected: list[dict[int, float]]) -> None:
    """The lists hold the most similar documents; which of two that differ by rounding only is left open."""
    for document, similarities in enumerate(expected):
        ids = [other for other in lists.ids[document].tolist() if other >= 0]
        values = lists.similarities[document, : len(ids)].tolist()
        assert len(set(ids)) == len(ids) == min(len(similarities), lists.width)
        assert values == pytest.approx([similarities[other] for other in ids], abs=1e-5)
        assert values == pytest.approx(sorted(similarities.values(), reverse=True)[: len(ids)], abs=1e-5)
        assert sorted(zip(values, ids, strict=True), key=lambda pair: (-pair[0], pair[1])) == list(
            zip(values, ids, strict=True)
        )
        assert not lists.similarities[document, len(ids) :].any()


def test_neighbours_are_those_of_the_formula(tmp_path: Path) -> None:
    ordering = LexicalOrdering(neighbours=3, query_terms=4)
    texts = [*topics(40), "nothing in common", "人工智能 is 人工", "智能 star"]
    lists, result = find(tmp_path, texts, ordering)
    assert_equal(lists, slow(texts, ordering))
    assert (lists.count, lists.width) == (43, 33)
    assert result["documents"] == 43 and result["without_neighbours"] == 0
    assert result["mean_similarity_of_nearest"] == pytest.approx(lists.similarities[:, 0].mean())


@given(st.lists(st.lists(st.sampled_from(["aa", "bb", "cc", "dd", "ee", "x"]), max_size=12), min_size=1, max_size=12))
def test_random_documents_have_the_neighbours_of_the_formula(
    tmp_path_factory: pytest.TempPathFactory, bags: list[list[str]]
) -> None:
    texts, ordering = [" ".join(bag) for bag in bags], LexicalOrdering(neighbours=2, saturation=0.9)
    if not any(set(bag) - {"x"} for bag in bags):
        return
    lists, _ = find(tmp_path_factory.mktemp("lexical"), texts, ordering)
    assert_equal(lists, slow(texts, ordering))


def test_a_corpus_without_words_or_of_too_many_documents_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="has a word"):
        find(tmp_path / "a", ["!", "? ."], LexicalOrdering())
    with pytest.raises(DataError, match="no documents"):
        find(tmp_path / "b", [], LexicalOrdering())
    corpus = tmp_path / "corpus"
    (corpus / "train").mkdir(parents=True)
    ids = pa.array(np.arange(lexical_stage.MOST_DOCUMENTS + 1).astype(str))
    pq.write_table(pa.table({"id": ids}), corpus / "train/00000.parquet")
    stage = ordering_context(tmp_path, "lexical_neighbours", LexicalOrdering(), corpus=corpus)
    with pytest.raises(DataError, match=r"ordering=lexical .* has 1,000,001: .* use ordering=in_context"):
        lexical_stage.build(stage)
    assert not list(stage.work.iterdir()) and not list(stage.output.iterdir())


@pytest.mark.slow
def test_lists_do_not_depend_on_workers_or_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = topics(60)
    one, _ = find(tmp_path / "one", texts, LexicalOrdering(neighbours=7))
    monkeypatch.setattr(lexical_stage, "MOST_DOCUMENTS_A_BLOCK", 7)
    two, _ = find(tmp_path / "two", texts, LexicalOrdering(neighbours=7), workers=2)
    assert np.array_equal(one.ids, two.ids) and np.array_equal(one.similarities, two.similarities)


def test_a_killed_stage_repeats_no_finished_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lexical_stage, "MOST_DOCUMENTS_A_BLOCK", 10)
    whole, _ = find(tmp_path / "whole", topics(60), LexicalOrdering())
    corpus = write_corpus(tmp_path / "corpus", topics(60))
    first, again = (ordering_context(tmp_path, name, LexicalOrdering(), corpus=corpus) for name in ("first", "again"))
    lexical_stage.build(first)
    finished = sorted(first.work.glob("*.npz"))
    for path in finished[3:]:
        path.unlink()
    times = {path: path.stat().st_mtime_ns for path in [*finished[:3], *(first.work / "index").iterdir()]}
    again.work.rmdir()
    first.work.rename(again.work)
    lexical_stage.build(again)
    assert len(list(again.work.glob("*.npz"))) == 6
    assert all((again.work / path.relative_to(first.work)).stat().st_mtime_ns == time for path, time in times.items())
    assert np.array_equal(whole.ids, NeighbourLists(again.output).ids)


def test_terms_are_counted_as_scikit_learn_counts_them() -> None:
    texts = [
        "Silt, stones; SILT and reeds",
        "河流把水和泥沙 İstanbul Straße ΑΣ",
        "",
        "a b !",
        "and silt カタ",
        "stones_1 x2",
    ]
    counter = CountVectorizer(token_pattern=TERM, dtype=np.int32)
    expected, counted = counter.fit_transform(texts), count_texts(iter(texts))
    assert counted.terms == sorted(counter.vocabulary_)
    for part in ("data", "indices", "indptr"):
        array, of_library = getattr(counted.counts, part), getattr(expected, part)
        assert (array.dtype, array.tolist()) == (of_library.dtype, of_library.tolist())
    assert count_texts(["!", ""]).counts.shape == (2, 0)
