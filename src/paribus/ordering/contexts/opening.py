"""The contexts of a configuration, out of the artefacts that they are made of."""

from dataclasses import dataclass, replace
from pathlib import Path

from paribus.config.byte_sizes import in_tokens
from paribus.config.schema import RunConfig
from paribus.ordering.orders.artifact import Order
from paribus.ordering.packing.contexts import Contexts
from paribus.ordering.packing.pack import pack
from paribus.tokenization.encoded_corpus import EncodedCorpus


@dataclass(frozen=True)
class OpenedContexts:
    """Packed contexts and what they were packed from."""

    config: RunConfig
    """With its context in tokens, where that is given in bytes of text."""
    corpus: EncodedCorpus
    order: Order
    contexts: Contexts

    @classmethod
    def open(cls, config: RunConfig, tokens: Path, order: Path) -> "OpenedContexts":
        """Pack the documents of the artefacts `tokens` and `order`; no token is read. DataError as `pack` says."""
        corpus, documents = EncodedCorpus(tokens), Order(order)
        config = replace(config, model=in_tokens(config.model, corpus.bytes_per_token))
        given = (corpus.ids, corpus.offsets, documents, corpus.tokenizer.eos_id, config.model.context_length)
        return cls(config, corpus, documents, pack(config.packing, *given, corpus.source_lengths))
