"""The stages `vocabulary` and `tokens`."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from paribus.config.groups.tokenization import (
    BytesTokenizer,
    DropoutEncoder,
    EncoderConfig,
    ExistingTokenizer,
    LongestFirstEncoder,
    PredictiveEntropyPretokenizer,
    PretokenizerConfig,
    ScaffoldBPETokenizer,
    SpansPretokenizer,
    TrainableTokenizerConfig,
    UnigramTokenizer,
    draws_of,
)
from paribus.corpus.artifact import CorpusArtifact, CorpusPart, corpus_parts, has_pairs, read_shard
from paribus.engine import Engine
from paribus.engine.local import LocalEngine
from paribus.errors import DataError
from paribus.native.registry import ENCODING
from paribus.stage import JSON, StageContext, StageListener, compile_kernels
from paribus.store import files
from paribus.tokenization.counts import WordCounts, sum_counts
from paribus.tokenization.encoded_corpus import EncodedCorpusWriter, id_dtype
from paribus.tokenization.existing import open_existing
from paribus.tokenization.predictive import PredictiveEntropySpans
from paribus.tokenization.pretokenize import PatternPretokenizer, Pretokenizer
from paribus.tokenization.settings import check_lossless
from paribus.tokenization.spans import SpanPretokenizer
from paribus.tokenization.tokenizer import Tokenizer
from paribus.tokenization.train import count_pretokens, training_kernels
from paribus.tokenization.unigram import PRUNE

_WORKERS_A_GPU = 4
"""Each holds a language model and its distributions on the GPU, some 3 GB; one a core would not fit."""
_REPORT_BYTES = 2**20
_BATCH_ROWS = 1024


def build_vocabulary(context: StageContext) -> dict[str, JSON]:
    """Write `tokenizer/`: the configured tokenizer, trained on the training split, or an existing one.

    Raises ConfigurationError for a size below the alphabet, DataError for an empty training split.
    """
    config = context.config.tokenizer
    if isinstance(config, ExistingTokenizer):
        tokenizer = open_existing(Path(config.path))
        if config.lossless:
            check_lossless(tokenizer.settings)
        return _save(tokenizer, context.output)
    corpus = CorpusArtifact(context.inputs["corpus"])
    texts = TrainingText(corpus, None if isinstance(config, BytesTokenizer) else config.sample, context.listener)
    compile_kernels(training_kernels(config.kind), context.listener)
    pretokenizer = make_pretokenizer(context.config.pretokenizer, texts)
    tokenizer = _train(config, pretokenizer, texts, context)
    if texts.documents == 0 and not isinstance(config, BytesTokenizer):
        raise DataError(f"corpus: the training split of {corpus.path} is empty; there is nothing to train on")
    if not isinstance(config, BytesTokenizer) and tokenizer.vocab_size < config.vocab_size:
        context.listener.message(
            f"the vocabulary has {tokenizer.vocab_size:,} tokens, and tokenizer.vocab_size asks for "
            f"{config.vocab_size:,}: no pair of the text is left to merge"
        )
    counted: dict[str, JSON] = {"documents": texts.documents, "bytes": texts.bytes}
    return _save(tokenizer, context.output) | counted | _device(context.config.pretokenizer)


def _device(config: PretokenizerConfig) -> dict[str, JSON]:
    """Type of device of a pre-tokenizer's language model, since others round otherwise; empty without a model."""
    if not isinstance(config, PredictiveEntropyPretokenizer):
        return {}
    from paribus.modeling.device import resolve_device

    return {"device": resolve_device(config.device, "pretokenizer.device").type}


def _save(tokenizer: Tokenizer, output: Path) -> dict[str, JSON]:
    tokenizer.save(output / "tokenizer")
    return {
        "vocab_size": tokenizer.vocab_size,
        "units": sum(entry.kind in ("unit", "fallback") for entry in tokenizer.vocabulary),
        "merges": len(tokenizer.merges),
        "scaffolds": len(tokenizer.vocabulary) - tokenizer.vocab_size,
        "string_equal_pairs": tokenizer.settings.string_equal_pairs,
        "stopped": tokenizer.settings.stopped,
        "unknown": tokenizer.settings.unknown,
    }


@dataclass(frozen=True)
class CountedPart:
    """The first documents of a shard of the corpus, and the file for the counts of their pre-tokens."""

    shard: Path
    documents: int
    bytes: int
    target: Path


class TrainingText:
    """The first documents of the training split, up to `most` bytes of text; None takes the whole split.

    Iterating counts them and reports progress. The first document is taken whatever its size.
    """

    def __init__(self, corpus: CorpusArtifact, most: int | None, listener: StageListener) -> None:
        size = corpus.bytes("train")
        self._corpus, self._total, self._listener = corpus, min(size, most or size), listener
        self.documents = self.bytes = 0

    def __iter__(self) -> Iterator[str]:
        reported = self.documents = self.bytes = 0
        for document in self._corpus.documents("train"):
            if self.documents and self.bytes + document.bytes > self._total:
                break
            self.documents += 1
            self.bytes += document.bytes
            if self.bytes - reported >= _REPORT_BYTES:
                reported = self.bytes
                self._report_progress()
            yield from document.texts
        self._listener.progress(self.bytes, self.bytes, unit="bytes", doing="counting pre-tokens")

    def words(self, pretokenizer: str | Pretokenizer, engine: Engine, work: Path) -> WordCounts:
        """Count the pre-tokens, shard by shard; the counts of finished shards stay in directory `work`."""
        directory = work / "counts"
        directory.mkdir(exist_ok=True)
        parts = list(self._parts(directory))
        cutter = PatternPretokenizer(pretokenizer) if isinstance(pretokenizer, str) else pretokenizer
        self.documents = self.bytes = 0
        for part, _ in zip(parts, engine.map(partial(count_part, cutter), parts), strict=True):
            self.documents += part.documents
            self.bytes += part.bytes
            self._report_progress()
        return sum_counts(map(_read_counts, parts))

    def _report_progress(self) -> None:
        self._listener.progress(self.bytes, self._total, unit="bytes", doing="counting pre-tokens")

    def _parts(self, directory: Path) -> Iterator[CountedPart]:
        remaining, is_first = self._total, True
        for shard in self._corpus.shards("train"):
            sizes: npt.NDArray[np.int64] = pq.read_table(shard, columns=["bytes"]).column("bytes").to_numpy()
            ends = np.cumsum(sizes)
            count = int(np.searchsorted(ends, remaining, side="right"))
            # The first document is taken whatever its size.
            count = max(count, 1) if is_first and len(sizes) else count
            if count:
                size = int(ends[count - 1])
                yield CountedPart(shard, count, size, directory / f"{shard.stem}-{count:09d}.npz")
                remaining, is_first = remaining - size, False
            if count < len(sizes):
                return


def _train(
    config: TrainableTokenizerConfig, pretokenizer: str | Pretokenizer, texts: TrainingText, context: StageContext
) -> Tokenizer:
    if isinstance(config, BytesTokenizer):
        return Tokenizer.train((), algorithm="bytes", pretokenizer=pretokenizer, special_tokens=config.special_tokens)

    def progress(done: int) -> None:
        doing = "fitting a unigram model" if config.kind == "unigram" else "merging pairs"
        context.listener.progress(done, config.vocab_size, unit="tokens", doing=doing)

    source = texts if context.engine.shares_memory else texts.words(pretokenizer, context.engine, context.work)
    return Tokenizer.train(
        source,
        algorithm=config.kind,
        vocab_size=config.vocab_size,
        unit=config.unit,
        pretokenizer=pretokenizer,
        special_tokens=config.special_tokens,
        unknown=config.unknown,
        demolish=config.demolish if isinstance(config, ScaffoldBPETokenizer) else "parents",
        prune=config.prune if isinstance(config, UnigramTokenizer) else PRUNE,
        lossless=config.lossless,
        threads=context.engine.workers if context.engine.shares_memory else 1,
        progress=progress,
    )


def build_tokens(context: StageContext) -> dict[str, JSON]:
    """Encode the training split, in corpus order, with the configured encoder."""
    compile_kernels(ENCODING, context.listener)
    pretokenizer = context.config.pretokenizer
    device = pretokenizer.device if isinstance(pretokenizer, PredictiveEntropyPretokenizer) else "cpu"
    vocabulary = Tokenizer.load(context.inputs["vocabulary"] / "tokenizer", device=device)
    tokenizer = with_encoder(vocabulary, context.config.encoder)
    corpus = CorpusArtifact(context.inputs["corpus"])
    draws = draws_of(context.config.encoder)
    total, done = draws * corpus.bytes("train"), 0
    pairs = has_pairs(corpus)
    with EncodedCorpusWriter(context.output, tokenizer, pairs=pairs, draws=draws) as writer:
        context.listener.progress(0, total, unit="bytes", doing="encoding")
        for draw, target in _encode_draws(tokenizer, corpus, context, draws):
            with np.load(target, allow_pickle=False) as part:
                source_lengths, source_bytes = part.get("source_lengths"), part["source_bytes"]
                new_bytes = source_bytes if draw == 0 else source_bytes[:0]
                writer.append(part["ids"], part["lengths"], new_bytes, source_lengths)
                done += int(source_bytes.sum())
            context.listener.progress(done, total, unit="bytes", doing="encoding")
    optional: dict[str, JSON] = {"source_tokens": writer.source_tokens} if pairs else {}
    if draws > 1:
        optional["draws"] = draws
    sizes: dict[str, JSON] = {
        "tokens": writer.tokens,
        "documents": draws * writer.documents,
        "bytes": done,
        "bytes_per_token": done / writer.tokens if writer.tokens else 0.0,
        "vocab_size": tokenizer.vocab_size,
    }
    return optional | _device(pretokenizer) | sizes


def _encode_draws(
    tokenizer: Tokenizer, corpus: CorpusArtifact, context: StageContext, draws: int
) -> Iterator[tuple[int, Path]]:
    """(draw, file of its ids) for every part of every draw, in corpus order."""
    engine = context.engine
    if engine.shares_memory and _device(context.config.pretokenizer).get("device") == "cuda":
        engine = LocalEngine(min(engine.workers, _WORKERS_A_GPU))
    sides = ("text", "target") if has_pairs(corpus) else ("text",)
    for draw in range(draws):
        drawn = tokenizer
        if draw:  # draw 0 has the tokenizer's own seed
            settings = tokenizer.settings
            seed = np.random.SeedSequence([settings.seed, draw]).generate_state(1, np.uint64)[0] >> np.uint64(1)
            drawn = tokenizer.with_encoder("dropout", dropout=settings.dropout, seed=int(seed))
        parts = corpus_parts(corpus, context.work / "parts" / f"draw-{draw:06d}")
        encode = partial(_encode_part, drawn, sides)
        for target in engine.map(encode, parts, releases_gil=tokenizer.cutter is None):
            yield draw, target


def with_encoder(tokenizer: Tokenizer, config: EncoderConfig) -> Tokenizer:
    """The tokenizer with the configured encoder; ConfigurationError where its vocabulary cannot serve that."""
    if isinstance(config, LongestFirstEncoder):
        return tokenizer.with_encoder(config.kind, candidates=config.candidates)
    if isinstance(config, DropoutEncoder):
        return tokenizer.with_encoder(config.kind, dropout=config.probability, seed=config.seed)
    return tokenizer.with_encoder(config.kind)


def _encode_part(tokenizer: Tokenizer, sides: Sequence[str], part: CorpusPart) -> Path:
    """File of the encoded documents of a part, written unless it exists."""
    target = part.target.with_suffix(".npz")
    if target.exists():
        return target
    dtype = id_dtype(tokenizer.vocab_size)
    ids, lengths = [], []
    table = part.columns("id", *sides, "bytes")
    for batch in table.to_batches(max_chunksize=_BATCH_ROWS):
        encoded, offsets = _encode(tokenizer, batch, sides)
        ids.append(encoded.astype(dtype))
        lengths.append(np.diff(offsets).reshape(-1, len(sides)))
    side_lengths = np.concatenate(lengths)
    source_bytes = table["bytes"].to_numpy()
    arrays = {"ids": np.concatenate(ids), "lengths": side_lengths.sum(axis=1), "source_bytes": source_bytes}
    if len(sides) > 1:
        arrays["source_lengths"] = side_lengths[:, 0]
    with files.replacing(target) as aside, aside.open("wb") as file:
        np.savez(file, **arrays)
    return target


def _encode(tokenizer: Tokenizer, batch: pa.RecordBatch, sides: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Flat ids and offsets of the texts, document by document; a pair's source is before its target."""
    texts = batch.column(sides[0])
    if len(sides) > 1:
        columns = pa.concat_arrays([batch.column(side) for side in sides])
        texts = columns.take(pa.array(np.arange(len(columns)).reshape(len(sides), -1).T.reshape(-1)))
    try:
        return tokenizer.encode_arrow(texts)
    except DataError:
        names = np.repeat(batch.column("id").to_pylist(), len(sides)).tolist()
        for name, text in zip(names, texts.to_pylist(), strict=True):
            if text is None:
                raise DataError(f"document {name!r}: its text is null") from None
            try:
                tokenizer.encode(text)
            except DataError as error:
                raise DataError(f"document {name!r}: {error}") from error
        raise


def count_part(pretokenizer: PatternPretokenizer | Pretokenizer, part: CountedPart) -> None:
    """Count the pre-tokens of a part into its file, unless it exists."""
    if not part.target.exists():
        documents = islice(read_shard(part.shard), part.documents)
        words = count_pretokens((text for document in documents for text in document.texts), pretokenizer)
        with files.replacing(part.target) as aside, aside.open("wb") as file:
            np.savez(file, spellings=words.spellings, offsets=words.offsets, counts=words.counts)


def _read_counts(part: CountedPart) -> WordCounts:
    with np.load(part.target, allow_pickle=False) as saved:
        return WordCounts(saved["spellings"], saved["offsets"], saved["counts"])


def make_pretokenizer(config: PretokenizerConfig, texts: Iterable[str]) -> str | Pretokenizer:
    """The name of a pattern, or a pre-tokenizer made from data; `texts` are read only to find spans."""
    if isinstance(config, SpansPretokenizer):
        return SpanPretokenizer.train(texts, config)
    if isinstance(config, PredictiveEntropyPretokenizer):
        return predictive_entropy(config)
    return config.kind


def predictive_entropy(config: PredictiveEntropyPretokenizer) -> PredictiveEntropySpans:
    """Pre-tokenizer with the configured language model; DataError where its directory has none."""
    model = Path(config.model).expanduser()
    return PredictiveEntropySpans(model, threshold=config.threshold, device=config.device)
