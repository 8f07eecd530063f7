"""The stages `vocabulary` and `tokens`: files, records, and independence of workers and kills."""

import dataclasses
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
from paribus.corpus.artifact import CorpusArtifact, CorpusWriter
from paribus.errors import ConfigurationError
from paribus.stage import SilentListener, StageContext
from paribus.tokenization import Tokenizer
from paribus.tokenization.build import build_tokens, build_vocabulary
from paribus.tokenization.encoded_corpus import EncodedCorpus
from support.character_models import SENTENCE, save_bert_style_model
from support.corpora import write_corpus
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
    path = tmp_path / "corpus"
    with CorpusWriter(path, heldout=0.1, shard_bytes=4_000) as writer:
        for number in range(300):
            words = [WORDS[(number * step) % len(WORDS)] for step in range(1, 8)]
            writer.add(f"document {number}", f"{number}: " + " ".join(words), "made up")
    return path


def context(directory: Path, name: str, config: RunConfig, workers: int = 1, **inputs: Path) -> StageContext:
    made = directory / name
    return context_at(made / "output", made / "work", config, inputs, listener=ProgressListener(), workers=workers)


def vocabulary(directory: Path, corpus: Path, config: RunConfig) -> tuple[Path, dict[str, Any]]:
    made = context(directory, "vocabulary", config, corpus=corpus)
    return made.output, build_vocabulary(made)


@pytest.mark.parametrize("encoder", [MergeRankEncoder(), LongestFirstEncoder(candidates="expanded")], ids=str)
@pytest.mark.parametrize(
    "tokenizer",
    [
        BPETokenizer(vocab_size=300),
        ScaffoldBPETokenizer(vocab_size=290),
        BPETokenizer(vocab_size=320, unit="character"),
        BytesTokenizer(),
    ],
    ids=lambda config: config.kind,
)
def test_the_training_split_keeps_its_order(tmp_path: Path, corpus: Path, tokenizer: Any, encoder: Any) -> None:
    config = run_config(tokenizer=tokenizer, encoder=encoder)
    trained, record = vocabulary(tmp_path, corpus, config)
    made = context(tmp_path, "tokens", config, corpus=corpus, vocabulary=trained)
    result = build_tokens(made)
    encoded = EncodedCorpus(made.output)
    texts = list(CorpusArtifact(corpus).texts("train"))
    assert [encoded.tokenizer.decode(encoded.document(n)) for n in range(len(encoded))] == texts
    assert encoded.source_bytes.tolist() == [len(text.encode()) for text in texts]
    assert encoded.tokenizer.settings.encoder == encoder.kind
    assert result["tokens"] == encoded.tokens
    assert result["bytes"] == CorpusArtifact(corpus).bytes("train") == made.listener.last["encoding"][0]
    assert record["vocab_size"] == result["vocab_size"] == Tokenizer.load(trained / "tokenizer").vocab_size


@pytest.mark.parametrize(
    ("pretokenizer", "tokenizer", "encoder"),
    [
        (PatternPretokenizer(kind="gpt4"), WordPieceTokenizer(vocab_size=300), LeftToRightEncoder()),
        (PatternPretokenizer(kind="none"), BPETokenizer(vocab_size=300), DropoutEncoder(seed=7)),
        (PatternPretokenizer(kind="whitespace"), UnigramTokenizer(vocab_size=290), ViterbiEncoder()),
        (SpansPretokenizer(), UnigramTokenizer(vocab_size=320, unit="character"), FewestEncoder()),
        (SpansPretokenizer(entropy_only=True), ScaffoldBPETokenizer(vocab_size=290), LongestFirstEncoder()),
    ],
    ids=lambda config: config.kind,
)
def test_every_kind_of_tokenizer_makes_a_corpus_that_reads_back(
    tmp_path: Path, corpus: Path, pretokenizer: Any, tokenizer: Any, encoder: Any
) -> None:
    config = run_config(pretokenizer=pretokenizer, tokenizer=tokenizer, encoder=encoder)
    trained, _ = vocabulary(tmp_path, corpus, config)
    made = context(tmp_path, "tokens", config, workers=2, corpus=corpus, vocabulary=trained)
    build_tokens(made)
    encoded = EncodedCorpus(made.output)
    texts = list(CorpusArtifact(corpus).texts("train"))
    assert encoded.tokenizer.settings.pretokenizer == pretokenizer.kind
    assert [encoded.tokenizer.decode(encoded.document(n)) for n in range(len(encoded))] == texts
    ids, _ = Tokenizer.load(trained / "tokenizer").with_encoder(encoder.kind, seed=7).encode_batch(texts)
    assert encoded.ids.tolist() == ids.tolist()


def test_a_pretokenizer_that_loses_text_is_refused_where_lossless_is_asked(tmp_path: Path, corpus: Path) -> None:
    config = run_config(pretokenizer=PatternPretokenizer(kind="stripped"), tokenizer=BPETokenizer(vocab_size=700))
    with pytest.raises(ConfigurationError, match="stripped loses whitespace; `whitespace` keeps it"):
        vocabulary(tmp_path, corpus, config)


def test_a_language_model_cuts_in_both_stages_and_their_records_say_where(tmp_path: Path) -> None:
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
        made = context(tmp_path, f"tokens{workers}", config, workers, corpus=corpus, vocabulary=trained)
        result = build_tokens(made)
        encoded[workers] = files(made.output)
        assert result["device"] == record["device"] == "cpu"
    assert encoded[1] == encoded[2]
    tokens = EncodedCorpus(tmp_path / "tokens1" / "output")
    documents = [document.text for document in CorpusArtifact(corpus).documents("train")]
    assert [tokens.tokenizer.decode(tokens.document(number)) for number in range(len(tokens))] == documents


def test_workers_and_kills_change_no_artefact(tmp_path: Path, corpus: Path) -> None:
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


def test_a_sample_takes_the_first_documents(tmp_path: Path, corpus: Path) -> None:
    config = run_config(tokenizer=BPETokenizer(vocab_size=270, sample=500))
    _, record = vocabulary(tmp_path, corpus, config)
    sizes = np.cumsum([document.bytes for document in CorpusArtifact(corpus).documents("train")])
    assert record["bytes"] == sizes[sizes <= 500][-1]
    assert record["documents"] == int((sizes <= 500).sum())


@pytest.mark.parametrize(("size", "told"), [(30_000, True), (260, False)])
def test_a_stage_tells_of_too_small_a_vocabulary(size: int, told: bool, tmp_path: Path, corpus: Path) -> None:
    made = context(tmp_path, "small", run_config(tokenizer=BPETokenizer(vocab_size=size)), corpus=corpus)
    result = build_vocabulary(made)
    assert isinstance(made.listener, ProgressListener)
    expected = f"the vocabulary has {result['vocab_size']:,} tokens, and tokenizer.vocab_size asks for 30,000: no pair"
    assert [line.startswith(expected) for line in made.listener.messages] == [True] * told
    assert (result["stopped"] == "no_pair_left") == told
