"""The stage `contexts`: (tokens, order) -> measures of all contexts, for which no later stage reads the corpus.

Contexts are measured a part at a time; finished parts stay in the stage's scratch directory until the stage is done, so
a killed stage resumes where it stopped. Memory is O(documents), and a worker's that of one part.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from paribus.config.groups.ordering import (
    BestFitPacking,
    ConcatenatePacking,
    OneDocumentPacking,
    PackingConfig,
    PairPacking,
)
from paribus.config.schema import RunConfig, in_tokens
from paribus.errors import DataError
from paribus.native.registry import SPANS, TABLES
from paribus.ordering.arrays import create_array, open_array, save_array
from paribus.ordering.ordered_text import ARRAYS, Measured, MeasuredContexts, OrderedText, sampled_bytes
from paribus.ordering.orders import Order
from paribus.ordering.packing import (
    AssignedContexts,
    ContextPieces,
    Contexts,
    Integers,
    OrderedDocuments,
    PackedStream,
    best_fit,
    one_document,
)
from paribus.ordering.pairs import PairContexts
from paribus.ordering.shuffle import ContextShuffle, traverse
from paribus.stage import JSON, StageContext, compile_kernels
from paribus.store import files
from paribus.tokenization.encoded_corpus import EncodedCorpus

TOKENS_A_PART = 2**24
"""Tokens of the contexts of one part; this decides what is repeated after a kill, never what is written."""
MOST_CONTEXTS_A_PART = 2**17

Part = tuple[int, int]
"""The first context of a part, and the one after its last."""
SUMMARY = "contexts.json"
COUNT, SIZES = "contexts", ("context_length", "ordered_bytes", "corpus_bytes")
NUMBERS = (COUNT, "left_out_tokens", *SIZES)
PIECES = ("positions", "starts", "lengths", "bounds")


def build(context: StageContext) -> dict[str, JSON]:
    """Measure all contexts. Raises DataError for a corpus smaller than one context, or without text."""
    compile_kernels(SPANS | TABLES, context.listener)
    parts = context.work / "parts"
    parts.mkdir(parents=True, exist_ok=True)
    measure = MeasurePart(context.config, context.inputs, parts)
    contexts, text = measure.contexts, measure.text
    arrays = _measure_all(measure, context)
    sizes = {
        "contexts": contexts.count,
        "left_out_tokens": contexts.left_out_tokens,
        "context_length": contexts.context_length,
        "ordered_bytes": text.bytes,
        "corpus_bytes": int(text.corpus_begins[-1]),
    }
    write_summary(context.output, **sizes)
    if isinstance(contexts, AssignedContexts):
        for name in PIECES:
            save_array(array_path(context.output, name), getattr(contexts.all_pieces, name))
    return {**sizes, "targets": int(arrays["targets"].sum()), "text_bytes": int(arrays["text_bytes"].sum())}


class MeasurePart:
    """Measures parts of the contexts, each into a file below `directory`; several threads may call it at once.

    A process that unpickles it opens the artefacts itself, as they are too large to be sent.
    """

    def __init__(self, config: RunConfig, inputs: Mapping[str, Path], directory: Path) -> None:
        self._arguments = (config, dict(inputs), directory)
        opened = pack_corpus(config, inputs)
        corpus, tokenizer = opened.corpus, opened.corpus.tokenizer
        self.contexts: Contexts = opened.contexts
        self.text = OrderedText(self.contexts.documents, corpus.source_bytes, tokenizer.token_byte_lengths())
        self._lossy = tokenizer.settings.lossy
        self._points = sampled_bytes(int(self.text.corpus_begins[-1]))

    def __call__(self, part: Part) -> Path:
        start, stop = part
        # Named by its range, so that a part of another size, left by an earlier run, is not taken for this one.
        target = self._arguments[2] / f"{start:012d}-{stop:012d}.npz"
        if not target.exists():
            measured = Measured.of(self.contexts, self.text, self._lossy, self._points, start, stop)
            with files.replacing(target) as aside, aside.open("wb") as file:
                np.savez(file, **vars(measured))
        return target

    def __getstate__(self) -> Any:
        return self._arguments

    def __setstate__(self, arguments: Any) -> None:
        self.__init__(*arguments)  # type: ignore[misc]


def _measure_all(measure: MeasurePart, context: StageContext) -> dict[str, Any]:
    """Measure all parts and write their joined arrays; returns those with one entry per context."""
    count = measure.contexts.count
    names = [name for name in ARRAYS if name != "sampled"]
    arrays = {name: create_array(array_path(context.output, name), "<i8", (count,)) for name in names}
    sampled = [np.zeros((0, 2), dtype="<i8")]
    context.listener.progress(0, count, unit="contexts", doing="measuring contexts")
    size = max(1, min(MOST_CONTEXTS_A_PART, TOKENS_A_PART // measure.contexts.context_length))
    parts = [(start, min(start + size, count)) for start in range(0, count, size)]
    for (start, stop), file in zip(parts, context.engine.map(measure, parts, releases_gil=True), strict=True):
        with np.load(file, allow_pickle=False) as saved:
            for name, array in arrays.items():
                array[start:stop] = saved[name]
            sampled.append(saved["sampled"])
        context.listener.progress(stop, count, unit="contexts", doing="measuring contexts")
    save_array(array_path(context.output, "sampled"), np.concatenate(sampled))
    return arrays


@dataclass(frozen=True)
class PackedCorpus:
    """Contexts and what they are packed from."""

    config: RunConfig
    """Configuration, with the length of a context in tokens even where it is given in bytes of text."""
    context_bytes: int | None
    """Bytes of a context, where its length is given so."""
    corpus: EncodedCorpus
    order: Order
    contexts: Contexts

    def traversal(self, measured: MeasuredContexts) -> ContextShuffle:
        """The sequence in which training reads the contexts."""
        seed, draws = self.config.seed_of("contexts"), self.corpus.draws
        return traverse(self.config.packing, measured, seed, context_bytes=self.context_bytes, draws=draws)


def pack_corpus(config: RunConfig, inputs: Mapping[str, Path]) -> PackedCorpus:
    """Pack the documents of the artefacts `tokens` and `order`; no token is read. DataError as `pack` says."""
    context_bytes = config.model.context_bytes
    config, corpus, order = _open(config, inputs)
    given = (corpus.ids, corpus.offsets, order, corpus.tokenizer.eos_id, config.model.context_length)
    contexts = pack(config.packing, *given, corpus.source_lengths, corpus.draws)
    return PackedCorpus(config, context_bytes, corpus, order, contexts)


def open_contexts(config: RunConfig, inputs: Mapping[str, Path]) -> tuple[PackedCorpus, MeasuredContexts]:
    """Open the packed corpus and its artefact `contexts`, whose assignment of documents is reused.

    DataError where that is of other contexts.
    """
    path, context_bytes = inputs["contexts"], config.model.context_bytes
    if not array_path(path, PIECES[0]).exists():
        packed = pack_corpus(config, inputs)
    else:
        config, corpus, order = _open(config, inputs)
        documents = OrderedDocuments(corpus.ids, corpus.offsets, order.documents, corpus.tokenizer.eos_id)
        assigned = read_assigned(path, documents, config.model.context_length)
        packed = PackedCorpus(config, context_bytes, corpus, order, assigned)
    contexts, measured = packed.contexts, read_contexts(path)
    if (contexts.count, contexts.context_length) != (measured.count, measured.context_length):
        raise DataError(
            f"{path}: has {measured.count} contexts of {measured.context_length} tokens, but the tokens in their order "
            f"are {contexts.count} of {contexts.context_length}"
        )
    return packed, measured


def _open(config: RunConfig, inputs: Mapping[str, Path]) -> tuple[RunConfig, EncodedCorpus, Order]:
    corpus = EncodedCorpus(inputs["tokens"])
    return replace(config, model=in_tokens(config.model, corpus.bytes_per_token)), corpus, Order(inputs["order"])


# `text_bytes.npy`, `targets.npy`, `places.npy` and `ends.npy` (int64, contexts) and `sampled.npy` (int64, found × 2)
# are those of `Measured`; `contexts.json` has the sizes that they must agree with. Where a packing assigned pieces of
# documents to contexts, which may take minutes, the pieces are stored too: `positions.npy`, `starts.npy`, `lengths.npy`
# and `bounds.npy` (int64), as `ContextPieces` has them.
def array_path(directory: Path, name: str) -> Path:
    """The file of an array of the artefact."""
    return directory / f"{name}.npy"


def write_summary(directory: Path, **sizes: int) -> None:
    """Write the sizes that the arrays must agree with: a number for each of `NUMBERS`."""
    files.write_json(directory / SUMMARY, sizes)


def read_assigned(path: Path, documents: OrderedDocuments, context_length: int) -> AssignedContexts:
    """The contexts that the pieces in the artefact make of `documents`, memory-mapped.

    DataError where its files are cut short or disagree.
    """
    sizes = _sizes(path / SUMMARY)
    bounds = _map(array_path(path, "bounds"), sizes[COUNT] + 1)
    positions, starts, lengths = (_map(array_path(path, name), int(bounds[-1])) for name in PIECES[:-1])
    return AssignedContexts(documents, context_length, ContextPieces(positions, starts, lengths, bounds))


def read_contexts(path: Path) -> MeasuredContexts:
    """Measurements of the contexts of the artefact in directory `path`, memory-mapped.

    DataError where its files are cut short or disagree.
    """
    sizes = _sizes(path / SUMMARY)
    arrays: dict[str, Any] = {name: _map(array_path(path, name), sizes[COUNT]) for name in ARRAYS}
    return MeasuredContexts(**arrays | {name: sizes[name] for name in SIZES})


def _sizes(file: Path) -> dict[str, int]:
    try:
        sizes = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{file}: no readable sizes of contexts ({error})") from error
    missing = [name for name in NUMBERS if not isinstance(sizes, dict) or not isinstance(sizes.get(name), int)]
    if missing:
        raise DataError(f"{file}: has no whole number for {', '.join(missing)}")
    return dict(sizes)


def _map(file: Path, count: int) -> Any:
    """The array of `count` integers, or, of `sampled`, any number of pairs of integers."""
    array = open_array(file, "contexts")
    has_shape = array.shape[1:] == (2,) if file.stem == "sampled" else array.shape == (count,)
    if not has_shape or array.dtype != np.int64:
        raise DataError(f"{file}: is {array.dtype} {array.shape}, but there must be {count} of int64")
    return array


class DocumentOrder(Protocol):
    """The documents and groups of an order, as packing needs them."""

    @property
    def documents(self) -> Integers:
        """Document indices in the sequence in which they are read, (m,); repeats allowed."""

    @property
    def groups(self) -> Integers | None:
        """Positions in `documents` at which a group begins, and m, (g + 1,); None for an order without groups."""


@dataclass(frozen=True)
class GivenOrder:
    """An order that no stage has stored."""

    documents: Integers
    groups: Integers | None = None


def pack(  # noqa: PLR0917 (each is one input of packing; none has a default to leave out)
    packing: PackingConfig,
    ids: npt.ArrayLike,
    offsets: npt.ArrayLike,
    order: DocumentOrder,
    eos_id: int,
    context_length: int,
    source_lengths: npt.ArrayLike | None = None,
    draws: int = 1,
) -> Contexts:
    """Contexts of `context_length` tokens of the encoded corpus (flat `ids`, `offsets`) in `order`.

    If the tokens of pairs were drawn several times, all contexts of a draw come before those of the next.

    Raises DataError if the documents are fewer tokens than one context, if the order names a document that is not
    there, and if `pair` is not given the `source_lengths` (draws · documents,) of a corpus of pairs. Only `concatenate`
    has use for the groups of an order.
    """
    documents = OrderedDocuments(ids, offsets, order.documents, eos_id, draws)
    if isinstance(packing, PairPacking):
        if source_lengths is None:
            raise DataError("packing.kind=pair needs pairs, and the encoded corpus has documents; use corpus=parallel")
        return PairContexts(documents, context_length, source_lengths)
    _refuse_too_small(documents, context_length)
    match packing:
        case ConcatenatePacking():
            return PackedStream(documents, context_length, order.groups)
        case BestFitPacking(window=window):
            return best_fit(documents, context_length, window)
        case OneDocumentPacking():
            return one_document(documents, context_length)


def _refuse_too_small(documents: OrderedDocuments, context_length: int) -> None:
    # Each document has at least its end-of-document token, so these are more than a context, or all documents.
    first = np.arange(min(len(documents), context_length + 1), dtype=np.int64)
    tokens = int(documents.lengths_at(first).sum())
    if tokens <= context_length:
        raise DataError(
            f"The corpus is smaller than one context: {len(documents)} documents give {tokens} tokens "
            f"(end-of-document tokens included), and `model.context_length` = {context_length} needs "
            f"{context_length + 1}. Set model.context_length to {max(tokens - 1, 1)} or less, or give more text"
        )
