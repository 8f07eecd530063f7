"""Input artefacts of a run, with random tokens, and the same contexts packed in advance for those who want them so."""

from pathlib import Path

import numpy as np

from paribus.config.schema import RunConfig
from paribus.engine.local import LocalEngine
from paribus.ordering.contexts import build, open_contexts
from paribus.ordering.orders import write_order
from paribus.ordering.shuffle import traverse
from paribus.stage import SilentListener, StageContext
from paribus.tokenization import Tokenizer
from paribus.tokenization.encoded_corpus import EncodedCorpusWriter
from paribus.training.data import Batches

LONGEST = 1000
EOS = "<|endoftext|>"
ROWS = "rows.npy"


def write_inputs(root: Path, config: RunConfig, vocab_size: int, steps: int) -> None:
    """Artefacts `tokens`, `order` and `contexts` of documents of 1 to 1,000 tokens in random order, for `steps` steps.

    `rows.npy` holds the contexts of those steps in the order they are read, context length + 1 tokens each.
    """
    generator, length = np.random.default_rng(0), config.model.context_length
    needed = (steps + 2) * config.training.global_batch * (length + 1) + LONGEST
    tokenizer, documents = random_tokenizer(vocab_size), 0
    with EncodedCorpusWriter(root / "tokens", tokenizer) as writer:
        while writer.tokens < needed:
            size = int(generator.integers(1, LONGEST))
            ids = generator.integers(0, vocab_size - 1, size)
            writer.append(ids, np.array([size]), np.array([4 * size]))
            documents += 1
    (root / "order").mkdir()
    write_order(root / "order", generator.permutation(documents), kept=documents, removed=0)
    _measure(root, config)
    _write_rows(root, config, steps)


def _measure(root: Path, config: RunConfig) -> None:
    """The artefact `contexts`."""
    (root / "contexts").mkdir()
    artefacts = {name: root / name for name in ("tokens", "order")}
    build(StageContext(config, artefacts, root / "contexts", root / "work", SilentListener(), LocalEngine(1)))


def _write_rows(root: Path, config: RunConfig, steps: int) -> None:
    opened, measured = open_contexts(config, {name: root / name for name in ("tokens", "order", "contexts")})
    corpus, contexts = opened.corpus, opened.contexts
    traversal = traverse(config.packing, measured, config.seed_of("contexts"))
    batches = Batches(contexts, config.training.global_batch, traversal)
    assert contexts.full and contexts.count >= steps * batches.global_batch
    read = (batches.rows(step) for step in range(steps))
    whole = [np.concatenate([inputs, targets[:, -1:]], axis=1) for inputs, targets in read]
    np.save(root / ROWS, np.concatenate(whole).astype(corpus.ids.dtype))


def random_tokenizer(vocab_size: int) -> Tokenizer:
    """BPE with exactly that many tokens, of words of random letters."""
    generator = np.random.default_rng(1)
    letters = generator.integers(ord("a"), ord("z") + 1, (max(40_000, vocab_size), 12), dtype=np.uint8)
    text = " ".join(word.tobytes().decode()[: 4 + number % 9] for number, word in enumerate(letters))
    tokenizer = Tokenizer.train([text], vocab_size=vocab_size, pretokenizer="gpt2", special_tokens=(EOS,))
    assert tokenizer.vocab_size == vocab_size
    return tokenizer
