"""What neighbours and embeddings cannot be made with, found before anything runs."""

from pathlib import Path

import pytest

from paribus.config.groups.embedding import NeighboursConfig, TfidfEmbedder
from paribus.ordering.preflight import problems
from support.embeddings import encoder_config, write_encoder
from support.run_config import run_config

MISSING = {"embeddings", "neighbours"}


@pytest.mark.parametrize("index", ["auto", "ivf_pq"])
def test_a_code_that_does_not_divide_the_vectors_is_refused(index: str, tmp_path: Path) -> None:
    for embedder in (TfidfEmbedder(dimensions=8), encoder_config(write_encoder(tmp_path / "encoder"), max_tokens=14)):
        told = []
        for code_size in (3, 4):
            neighbours = NeighboursConfig(index=index, code_size=code_size)  # type: ignore[arg-type]
            config = run_config(embedder=embedder, neighbours=neighbours)
            told.append([f"{path}: {message}" for path, message in problems(config, MISSING)])
            assert list(problems(config, set())) == []
        expected = f"neighbours.code_size: 3 does not divide the 8 dimensions of embedder.kind={embedder.kind}; use 2"
        assert told[1] == []
        assert told[0][0].startswith(expected)


def test_chunks_longer_than_an_encoder_has_positions_are_refused(tmp_path: Path) -> None:
    embedder = encoder_config(write_encoder(tmp_path / "encoder"), max_tokens=17)
    (path, message), *others = problems(run_config(embedder=embedder), MISSING)
    assert (path, others) == ("embedder.max_tokens", [])
    assert "17 tokens are more than the 16 positions" in message
