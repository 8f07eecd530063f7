"""The text that a tokenizer is trained on: counted shard by shard as it is in a stream."""

from collections.abc import Callable
from pathlib import Path

import pytest

from paribus.corpus.artifact import CorpusArtifact
from paribus.stage import SilentListener
from paribus.tokenization.build import TrainingText
from paribus.tokenization.pretokenize import PatternPretokenizer
from paribus.tokenization.spans import SpanPretokenizer
from paribus.tokenization.train import count_pretokens
from support.corpora import write_corpus
from support.engines import Elsewhere

TEXTS = [f"document {number}: " + "naïve words 東京 " * (number % 7) for number in range(60)]


@pytest.fixture
def corpus(tmp_path: Path) -> CorpusArtifact:
    return CorpusArtifact(write_corpus(tmp_path / "corpus", TEXTS, group_bytes=200, shard_bytes=900))


@pytest.mark.parametrize("cut", [lambda: PatternPretokenizer("gpt2"), lambda: SpanPretokenizer.train(TEXTS)])
@pytest.mark.parametrize("total", [1, 20, 899, 900, 1_500, 100_000])
def test_shards_are_counted_as_the_stream_is(
    tmp_path: Path, corpus: CorpusArtifact, cut: Callable[[], PatternPretokenizer], total: int
) -> None:
    assert len(corpus.shards("train")) > 4
    stream, shards = TrainingText(corpus, total, SilentListener()), TrainingText(corpus, total, SilentListener())
    pretokenizer = cut()
    expected = dict(count_pretokens(stream, pretokenizer))
    assert dict(shards.words(pretokenizer, Elsewhere(1), tmp_path)) == expected
    assert (shards.documents, shards.bytes) == (stream.documents, stream.bytes)
    assert stream.documents >= 1


def test_counts_that_a_killed_stage_left_are_taken_as_they_are(tmp_path: Path, corpus: CorpusArtifact) -> None:
    first = dict(TrainingText(corpus, 10_000, SilentListener()).words("gpt2", Elsewhere(1), tmp_path))
    files = sorted((tmp_path / "counts").iterdir())
    files[0].unlink()
    times = [file.stat().st_mtime_ns for file in files[1:]]
    assert dict(TrainingText(corpus, 10_000, SilentListener()).words("gpt2", Elsewhere(1), tmp_path)) == first
    assert [file.stat().st_mtime_ns for file in files[1:]] == times
