"""TF-IDF with truncated SVD against dense linear algebra."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from paribus.config.groups.ordering import TfidfEmbedder
from paribus.ordering.tfidf import TfidfSvd

TEXTS = ["red green green blue", "red green", "blue blue sky", "sky over red sea", "sea sky", "green over sea"]


def embed_tfidf(texts: list[str], config: TfidfEmbedder) -> np.ndarray:
    return TfidfSvd.fit(texts, config).embed(texts)


def dense_tfidf(texts: list[str]) -> np.ndarray:
    counts = [Counter(text.split()) for text in texts]
    terms = sorted(set().union(*counts))
    in_documents = {term: sum(term in count for count in counts) for term in terms}
    rows = np.zeros((len(texts), len(terms)))
    for row, count in zip(rows, counts, strict=True):
        for column, term in enumerate(terms):
            if count[term]:
                row[column] = (1 + np.log(count[term])) * (1 + np.log((1 + len(texts)) / (1 + in_documents[term])))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_inner_products_are_those_of_the_best_approximation_of_rank_d() -> None:
    embeddings = embed_tfidf(TEXTS, TfidfEmbedder(dimensions=3))
    left, singular, _ = np.linalg.svd(dense_tfidf(TEXTS), full_matrices=False)
    expected = left[:, :3] * singular[:3]
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    assert embeddings.shape == (6, 3) and embeddings.dtype == np.float32
    assert np.allclose(embeddings @ embeddings.T, expected @ expected.T, atol=1e-5)


def test_the_commonest_terms_are_kept_and_long_documents_are_cut() -> None:
    texts = ["red sky", "red sea", "red red", "red sky sea blue"]
    two_terms = embed_tfidf(texts, TfidfEmbedder(dimensions=2, max_features=2))
    assert np.allclose(two_terms @ two_terms.T, embed_both(["red", "red sea", "red red", "red sea"]), atol=1e-5)
    cut = embed_tfidf(texts, TfidfEmbedder(dimensions=8, max_characters=7))
    assert np.allclose(cut @ cut.T, embed_both(["red sky", "red sea", "red red", "red sky"]), atol=1e-5)


def embed_both(texts: list[str]) -> np.ndarray:
    return dense_tfidf(texts) @ dense_tfidf(texts).T


def test_documents_outside_the_sample_are_projected_on_its_directions() -> None:
    fitted = TfidfSvd.fit(TEXTS, TfidfEmbedder(dimensions=3))
    unseen = ["green sky", "yellow submarine", "sea sea red"]
    _, _, directions = np.linalg.svd(dense_tfidf(TEXTS), full_matrices=False)
    in_documents = Counter(term for text in TEXTS for term in set(text.split()))
    for text, vector in zip(unseen, fitted.embed(unseen), strict=True):
        counts = Counter(text.split())
        row = [
            (1 + np.log(counts[term])) * (1 + np.log(7 / (1 + in_documents[term]))) if counts[term] else 0.0
            for term in sorted(in_documents)
        ]
        projected = directions[:3] @ row
        assert np.linalg.norm(vector) == pytest.approx(1 if projected.any() else 0, abs=1e-6)
        if projected.any():
            assert abs(fitted.directions @ row @ vector) == pytest.approx(np.linalg.norm(projected), rel=1e-5)
    assert not fitted.embed(unseen)[1].any()


def test_a_fitted_embedder_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    config = TfidfEmbedder(dimensions=3)
    fitted = TfidfSvd.fit([*TEXTS, "今天"], config)
    fitted.save(tmp_path / "fitted")
    loaded = TfidfSvd.load(tmp_path / "fitted", config)
    assert np.array_equal(loaded.embed(TEXTS), fitted.embed(TEXTS))
    assert loaded.facts() == {"kind": "tfidf_svd", "fit_documents": 7, "terms": 8, "directions": 3}
    assert [path.name for path in tmp_path.iterdir()] == ["fitted"]
