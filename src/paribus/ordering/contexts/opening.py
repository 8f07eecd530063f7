"""The contexts of a configuration, out of the artefacts that they are made of."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from paribus.config.byte_sizes import in_tokens
from paribus.config.schema import RunConfig
from paribus.errors import DataError
from paribus.ordering.contexts.artifact import has_pieces, read_assigned, read_contexts
from paribus.ordering.contexts.measure import MeasuredContexts
from paribus.ordering.orders.artifact import Order
from paribus.ordering.packing.contexts import Contexts
from paribus.ordering.packing.documents import OrderedDocuments
from paribus.ordering.packing.pack import pack
from paribus.ordering.traversal.traversal import Traversal, traverse
from paribus.tokenization.encoded_corpus import EncodedCorpus


@dataclass(frozen=True)
class PackedCorpus:
    """Contexts and what they are packed from."""

    config: RunConfig
    """With its context in tokens, where that is given in bytes of text."""
    context_bytes: int | None
    """Bytes of a context, where that is what was given."""
    corpus: EncodedCorpus
    order: Order
    contexts: Contexts

    def traversal(self, measured: MeasuredContexts) -> Traversal:
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
    if not has_pieces(path):
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
    in_tokens_of_corpus = in_tokens(config.model, corpus.bytes_per_token)
    return replace(config, model=in_tokens_of_corpus), corpus, Order(inputs["order"])
