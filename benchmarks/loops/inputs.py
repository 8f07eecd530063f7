"""Input artefacts of a run, with random tokens, and the same contexts packed in advance for those who want them so."""

from pathlib import Path

import numpy as np

from paribus.config.schema import RunConfig
from paribus.ordering.orders.artifact import Order, write_order
from paribus.ordering.packing.pack import pack
from paribus.ordering.traversal.text import OrderedText
from paribus.ordering.traversal.traversal import traverse
from paribus.tokenization import Tokenizer
from paribus.tokenization.encoded_corpus import EncodedCorpus, EncodedCorpusWriter
from paribus.training.data.batches import Batches

LONGEST = 1000
EOS = "<|endoftext|>"
ROWS = "rows.npy"


def write_inputs(root: Path, config: RunConfig, vocab_size: int, steps: int) -> None:
    """Artefacts `tokens` and `order` of documents of 1 to 1,000 tokens in random order, enough for `steps` steps.

    `rows.npy` holds the contexts of those steps in the order they are read, context length + 1 tokens each.
    """
    generator, length = np.random.default_rng(0), config.model.context_length
    needed = (steps + 2) * config.training.global_batch * (length + 1) + LONGEST
    tokenizer, documents = _tokenizer(vocab_size), 0
    with EncodedCorpusWriter(root / "tokens", tokenizer) as writer:
        while writer.tokens < needed:
            size = int(generator.integers(1, LONGEST))
            ids = generator.integers(0, vocab_size - 1, size)
            writer.append(ids, np.array([size]), np.array([4 * size]))
            documents += 1
    (root / "order").mkdir()
    write_order(root / "order", generator.permutation(documents), kept=documents, removed=0)
    _write_rows(root, config, tokenizer, steps)


def _write_rows(root: Path, config: RunConfig, tokenizer: Tokenizer, steps: int) -> None:
    corpus, order = EncodedCorpus(root / "tokens"), Order(root / "order")
    contexts = pack(config.packing, corpus.ids, corpus.offsets, order, tokenizer.eos_id, config.model.context_length)
    text = OrderedText(contexts.documents, corpus.source_bytes, tokenizer.token_byte_lengths())
    traversal = traverse(config.packing, contexts, text, config.seed_of("contexts"))
    batches = Batches(contexts, config.training.global_batch, traversal)
    assert contexts.full and contexts.count >= steps * batches.global_batch
    read = (batches.rows(step) for step in range(steps))
    whole = [np.concatenate([inputs, targets[:, -1:]], axis=1) for inputs, targets in read]
    np.save(root / ROWS, np.concatenate(whole).astype(corpus.ids.dtype))


def _tokenizer(vocab_size: int) -> Tokenizer:
    """BPE with exactly that many tokens, of words of random letters."""
    generator = np.random.default_rng(1)
    letters = generator.integers(ord("a"), ord("z") + 1, (40_000, 12), dtype=np.uint8)
    text = " ".join(word.tobytes().decode()[: 4 + number % 9] for number, word in enumerate(letters))
    tokenizer = Tokenizer.train([text], vocab_size=vocab_size, pretokenizer="gpt2", special_tokens=(EOS,))
    assert tokenizer.vocab_size == vocab_size
    return tokenizer
