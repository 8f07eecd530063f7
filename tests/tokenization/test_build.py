"""The stages `vocabulary` and `tokens`: counted text, files, records, and independence of workers and kills."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paribus.config.groups.tokenization import (
    BPETokenizer,
    BytesTokenizer,
    DropoutEncoder,
    FewestEncoder,
    LeftToRightEncoder,
    LongestFirstEncoder,
    MergeRankEncoder,
    PatternPretokenizer,
    PredictiveEntropyPretokenizer,
    ScaffoldBPETokenizer,
    SpansPretokenizer,
    UnigramTokenizer,
    ViterbiEncoder,
    WordPieceTokenizer,
)
from paribus.config.schema import RunConfig
from paribus.corpus.artifact import CorpusArtifact
from paribus.errors import ConfigurationError
from paribus.stage import SilentListener, StageContext
from paribus.tokenization import Tokenizer
from paribus.tokenization.build import TrainingText, build_tokens, build_vocabulary
from paribus.tokenization.encoded_corpus import EncodedCorpus
from paribus.tokenization.pretokenize import PatternPretokenizer as PatternWords
from paribus.tokenization.spans import SpanPretokenizer
from paribus.tokenization.train import count_pretokens
from support.character_models import SENTENCE, save_bert_style_model
from support.corpora import write_corpus
from support.engines import WithoutSharedMemory
from support.run_config import run_config
from support.stages import context_at, files

WORDS = ["capital", "capitals", "the", "of", "naïve", "東京", "1998", "ordering", "tokens", "documents"]


class ProgressListener(SilentListener):
    """Remembers how far each unit of progress came."""

    def __init__(self) -> None:
        super().__init__()
        self.last: dict[str, tuple[float, float]] = {}

    def progress(self, done: float, total: float, *, unit: str, doing: str, detail: str = "") -> None:
        self.last[doing] = (done, total)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    texts = []
    for number in range(300):
        words = [WORDS[(number * step) % len(WORDS)] for step in range(1, 8)]
        texts.append(f"{number}: " + " ".join(words))
    return write_corpus(tmp_path / "corpus", texts, heldout=0.1, shard_bytes=4_000)


def context(directory: Path, name: str, config: RunConfig, workers: int = 1, **inputs: Path) -> StageContext:
    output, work = directory / name / "output", directory / name / "work"
    return context_at(output, work, config, inputs, listener=ProgressListener(), workers=workers)


def vocabulary(directory: Path, corpus: Path, config: RunConfig) -> tuple[Path, dict[str, Any]]:
    stage = context(directory, "vocabulary", config, corpus=corpus)
    return stage.output, build_vocabulary(stage)


@pytest.mark.parametrize(
    ("pretokenizer", "tokenizer", "encoder"),
    [
        (PatternPretokenizer(), BPETokenizer(vocab_size=320, unit="character"), MergeRankEncoder()),
        (PatternPretokenizer(), BytesTokenizer(), MergeRankEncoder()),
        (PatternPretokenizer(kind="gpt4"), WordPieceTokenizer(vocab_size=300), LeftToRightEncoder()),
        (PatternPretokenizer(kind="none"), BPETokenizer(vocab_size=300), DropoutEncoder(seed=7)),
        (PatternPretokenizer(kind="whitespace"), UnigramTokenizer(vocab_size=290), ViterbiEncoder()),
        (SpansPretokenizer(), UnigramTokenizer(vocab_size=320, unit="character"), FewestEncoder()),
        (SpansPretokenizer(entropy_only=True), ScaffoldBPETokenizer(vocab_size=290), LongestFirstEncoder()),
    ],
    ids=lambda config: config.kind,
)
def test_every_kind_of_tokenizer_encodes_the_training_split_in_its_order(
    tmp_path: Path, corpus: Path, pretokenizer: Any, tokenizer: Any, encoder: Any
) -> None:
    config = run_config(pretokenizer=pretokenizer, tokenizer=tokenizer, encoder=encoder)
    trained, record = vocabulary(tmp_path, corpus, config)
    stage = context(tmp_path, "tokens", config, workers=2, corpus=corpus, vocabulary=trained)
    result = build_tokens(stage)
    encoded, source = EncodedCorpus(stage.output), CorpusArtifact(corpus)
    texts = list(source.texts("train"))
    assert encoded.tokenizer.settings.pretokenizer == pretokenizer.kind
    assert encoded.tokenizer.settings.encoder == encoder.kind
    assert [encoded.tokenizer.decode(encoded.document(n)) for n in range(len(encoded))] == texts
    assert encoded.source_bytes.tolist() == [len(text.encode()) for text in texts]
    ids, _ = Tokenizer.load(trained / "tokenizer").with_encoder(encoder.kind, seed=7).encode_batch(texts)
    assert encoded.ids.tolist() == ids.tolist()
    assert result["tokens"] == encoded.tokens
    assert result["bytes"] == source.bytes("train") == stage.listener.last["encoding"][0]  # type: ignore[attr-defined]
    assert record["vocab_size"] == result["vocab_size"] == Tokenizer.load(trained / "tokenizer").vocab_size


def test_a_pretokenizer_that_loses_text_is_refused_where_lossless_is_asked(tmp_path: Path, corpus: Path) -> None:
    config = run_config(pretokenizer=PatternPretokenizer(kind="stripped"), tokenizer=BPETokenizer(vocab_size=700))
    with pytest.raises(ConfigurationError, match="stripped loses whitespace; `whitespace` keeps it"):
        vocabulary(tmp_path, corpus, config)


def test_a_language_model_cuts_in_both_stages_and_their_records_name_its_device(tmp_path: Path) -> None:
    save_bert_style_model(tmp_path / "model")
    texts = [SENTENCE[number % 9 :] + SENTENCE[: number % 7] for number in range(60)]
    corpus = write_corpus(tmp_path / "corpus", texts)
    pretokenizer = PredictiveEntropyPretokenizer(model=str(tmp_path / "model"), device="cpu")
    config = run_config(pretokenizer=pretokenizer, tokenizer=BPETokenizer(vocab_size=300, unit="character"))
    trained, record = vocabulary(tmp_path, corpus, config)
    cutter = Tokenizer.load(trained / "tokenizer").cutter
    assert cutter is not None and len(cutter.pieces(SENTENCE)) > 1
    encoded = {}
    for workers in (1, 2):
        stage = context(tmp_path, f"tokens{workers}", config, workers, corpus=corpus, vocabulary=trained)
        assert build_tokens(stage)["device"] == record["device"] == "cpu"
        encoded[workers] = files(stage.output)
    assert encoded[1] == encoded[2]
    tokens = EncodedCorpus(tmp_path / "tokens1" / "output")
    documents = [document.text for document in CorpusArtifact(corpus).documents("train")]
    assert [tokens.tokenizer.decode(tokens.document(number)) for number in range(len(tokens))] == documents


def test_neither_workers_nor_kills_change_the_tokens(tmp_path: Path, corpus: Path) -> None:
    config = run_config(tokenizer=BPETokenizer(vocab_size=300))
    trained, _ = vocabulary(tmp_path, corpus, config)
    inputs = {"corpus": corpus, "vocabulary": trained}
    alone, two = (context(tmp_path, f"workers{n}", config, workers=n, **inputs) for n in (1, 2))
    build_tokens(alone)
    build_tokens(two)
    assert files(alone.output) == files(two.output)
    parts = sorted((alone.work / "parts").glob("*/*"))
    assert len(parts) > 3
    parts[1].unlink()
    parts[2].rename(parts[2].with_suffix(".123.tmp"))
    again = dataclasses.replace(alone, output=tmp_path / "again")
    build_tokens(again)
    assert files(again.output) == files(two.output)


def test_a_sample_is_the_first_documents(tmp_path: Path, corpus: Path) -> None:
    config = run_config(tokenizer=BPETokenizer(vocab_size=270, sample=500))
    _, record = vocabulary(tmp_path, corpus, config)
    sizes = np.cumsum([document.bytes for document in CorpusArtifact(corpus).documents("train")])
    assert record["bytes"] == sizes[sizes <= 500][-1]
    assert record["documents"] == int((sizes <= 500).sum())


TEXTS = [f"document {number}: " + "naïve words 東京 " * (number % 7) for number in range(60)]


@pytest.fixture
def shards(tmp_path: Path) -> CorpusArtifact:
    return CorpusArtifact(write_corpus(tmp_path / "shards", TEXTS, group_bytes=200, shard_bytes=900))


@pytest.mark.parametrize("cut", [lambda: PatternWords("gpt2"), lambda: SpanPretokenizer.train(TEXTS)])
def test_shards_are_counted_as_their_stream_is(
    tmp_path: Path, shards: CorpusArtifact, cut: Callable[[], PatternWords]
) -> None:
    assert len(shards.shards("train")) > 4
    for total in (1, 20, 899, 900, 1_500, 100_000):
        (tmp_path / str(total)).mkdir()
        stream, parts = TrainingText(shards, total, SilentListener()), TrainingText(shards, total, SilentListener())
        expected = dict(count_pretokens(stream, cut()))
        assert dict(parts.words(cut(), WithoutSharedMemory(1), tmp_path / str(total))) == expected
        assert (parts.documents, parts.bytes) == (stream.documents, stream.bytes)
        assert stream.documents >= 1


def test_counts_of_a_killed_stage_are_not_counted_again(tmp_path: Path, shards: CorpusArtifact) -> None:
    first = dict(TrainingText(shards, 10_000, SilentListener()).words("gpt2", WithoutSharedMemory(1), tmp_path))
    files = sorted((tmp_path / "counts").iterdir())
    files[0].unlink()
    times = [file.stat().st_mtime_ns for file in files[1:]]
    assert dict(TrainingText(shards, 10_000, SilentListener()).words("gpt2", WithoutSharedMemory(1), tmp_path)) == first
    assert [file.stat().st_mtime_ns for file in files[1:]] == times
