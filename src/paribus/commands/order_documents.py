"""One document of an ordered corpus: the steps that read it, what it shares contexts with, and what is near to it."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from paribus.config.byte_sizes import in_contexts
from paribus.config.schema import RunConfig
from paribus.corpus.artifact import CorpusArtifact, Document, read_shard
from paribus.errors import ConfigurationError
from paribus.modeling.counts import training_flops
from paribus.ordering.contexts.measure import MeasuredContexts
from paribus.ordering.contexts.opening import PackedCorpus, open_contexts
from paribus.ordering.duplicates.removed import Duplicates
from paribus.ordering.neighbours.lists import NeighbourLists
from paribus.ordering.packing.contexts import Contexts
from paribus.training.data.batches import Batches
from paribus.training.data.budget import resolve_steps

SHOWN_CHARACTERS = 300
SHOWN_PLACES = 20
SHOWN_READINGS = 20
SHOWN_COMPANIONS = 12
SHOWN_NEIGHBOURS = 10


def where(index: int, config: RunConfig, inputs: Mapping[str, Path]) -> str:
    """At which steps document `index` of the training split is read, in which contexts and beside which documents.

    `inputs` are the artefacts corpus, tokens, order and contexts, and duplicates where the order has removed some.
    """
    corpus = CorpusArtifact(inputs["corpus"])
    opened, measured = open_contexts(config, inputs)
    order, contexts = opened.order, opened.contexts
    described = _describe(index, corpus)
    positions = np.flatnonzero(order.documents == index)
    if not len(positions):
        return f"{described}\nit is not in the order: {_why_absent(index, inputs)}\n"
    lines = [described, f"place in the order (from 0): {_places(positions.tolist())} of {len(order):,}"]
    training = in_contexts(config.training, float(measured.text_bytes.mean()))
    batches = Batches(contexts, training.global_batch, opened.traversal(measured))
    return "\n".join([*lines, *_readings(index, opened, batches, measured, corpus)]) + "\n"


def _places(positions: Sequence[int]) -> str:
    shown = ", ".join(f"{position:,}" for position in positions[:SHOWN_PLACES])
    more = len(positions) - SHOWN_PLACES
    return f"{shown} and {more:,} more" if more > 0 else shown


def _readings(
    index: int, opened: PackedCorpus, batches: Batches, measured: MeasuredContexts, corpus: CorpusArtifact
) -> list[str]:
    contexts, config = batches.contexts, opened.config
    held = contexts.contexts_of(index)
    if not len(held):
        return ["no context holds any of it: it is in what packing leaves out"]
    step_tokens = batches.global_batch * contexts.context_length
    step_flops = training_flops(config.model, opened.corpus.tokenizer.vocab_size, step_tokens)
    steps = resolve_steps(config.budget, batches, measured.targets, measured.text_bytes, step_flops)
    read = batches.steps_of(held, steps)
    length = f"{steps:,} steps ({steps * batches.global_batch / batches.contexts_an_epoch:.3g} epochs)"
    lines = [
        f"tokens of it are in {len(held):,} of {contexts.count:,} contexts,",
        f"which are read {len(read):,} times in {length}:",
    ]
    for step, context in read[:SHOWN_READINGS]:
        lines.append(f"  step {step + 1:,}: context {context:,} of {contexts.count:,}")
    if len(read) > SHOWN_READINGS:
        lines.append(f"  and {len(read) - SHOWN_READINGS:,} more")
    return [*lines, *_companions(int(held[0]), contexts, corpus)]


def _companions(context: int, contexts: Contexts, corpus: CorpusArtifact) -> list[str]:
    holding = contexts.documents_of(context)
    documents = _documents([document for document, _ in holding[:SHOWN_COMPANIONS]], corpus)
    lines = [f"context {context:,} holds {len(holding)} documents:"]
    for document, tokens in holding[:SHOWN_COMPANIONS]:
        lines.append(f"  {tokens:,} tokens of #{document} {_start(documents[document])}")
    if len(holding) > SHOWN_COMPANIONS:
        lines.append(f"  and {len(holding) - SHOWN_COMPANIONS:,} more")
    return lines


def _why_absent(index: int, inputs: Mapping[str, Path]) -> str:
    if "duplicates" in inputs:
        removed = Duplicates(inputs["duplicates"]).removed()
        places = np.flatnonzero(removed["document"].to_numpy() == index)
        if len(places):
            row = {name: removed[name][int(places[0])].as_py() for name in ("kept", "kept_id", "similarity")}
            return f"removed as near duplicate of #{row['kept']} ({row['kept_id']}), similarity {row['similarity']:.4f}"
    return "the ordering dropped it (see dropped.parquet of the order)"


def near(index: int, corpus_path: Path, neighbours: Path) -> str:
    """The documents nearest to document `index` of the training split, with similarities and the begin of texts."""
    corpus = CorpusArtifact(corpus_path)
    lists = NeighbourLists(neighbours)
    ids = [int(near) for near in lists.ids[index][:SHOWN_NEIGHBOURS] if near >= 0]
    documents = _documents([index, *ids], corpus)
    lines = [f"#{index} {documents[index].id}", _text(documents[index])]
    for number, (document, similarity) in enumerate(zip(ids, lists.similarities[index], strict=False), start=1):
        lines += [f"{number}. {similarity:.4f} #{document} {documents[document].id}", _text(documents[document])]
    return "\n\n".join(lines if ids else [*lines, "it has no neighbours"]) + "\n"


def find_document(name: str, corpus_path: Path) -> int:
    """Index in the training split of a document id, or of `#N` where no id is that; ConfigurationError for neither."""
    corpus = CorpusArtifact(corpus_path)
    first = 0
    for shard in corpus.shards("train"):
        ids = pq.read_table(shard, columns=["id"])["id"].to_pylist()
        if name in ids:
            return first + int(ids.index(name))
        first += len(ids)
    if name.startswith("#") and name[1:].isdecimal():
        if int(name[1:]) < first:
            return int(name[1:])
        raise ConfigurationError(f"{name}: the training split has documents #0 to #{first - 1}")
    raise ConfigurationError(
        f"{name!r}: no document of the training split has this id (a held-out document is in no order); #N takes "
        "document number N"
    )


def _documents(indices: Sequence[int], corpus: CorpusArtifact) -> dict[int, Document]:
    """Documents of the training split by index."""
    wanted, first = set(indices), 0
    found: dict[int, Document] = {}
    for shard in corpus.shards("train"):
        count = pq.read_metadata(shard).num_rows
        here = {index - first for index in wanted if first <= index < first + count}
        if here:
            found |= {first + row: document for row, document in enumerate(read_shard(shard)) if row in here}
        first += count
    return found


def _describe(index: int, corpus: CorpusArtifact) -> str:
    document = _documents([index], corpus)[index]
    return f"#{index} {document.id}, {document.bytes:,} bytes, from {document.source}"


def _start(document: Document) -> str:
    return f"{document.id}: {' '.join(document.text[:120].split())[:80]}"


def _text(document: Document) -> str:
    text = " ".join(document.text[: 2 * SHOWN_CHARACTERS].split())
    return text[:SHOWN_CHARACTERS] + ("…" if len(text) > SHOWN_CHARACTERS else "")
