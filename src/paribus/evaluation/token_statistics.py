"""The stage `token_statistics`: what a tokenizer does with the corpus, as numbers and curves, without any model.

No run needs it; `paribus tokens statistics` asks for it. It leaves `statistics.json` and `counts.npy` (int64, shape
(vocab_size,): how often each id occurs in the encoded training text).
"""

from dataclasses import asdict
from pathlib import Path

import numpy as np

from paribus.corpus.artifact import CorpusArtifact, read_shard
from paribus.evaluation.data_files import segmented
from paribus.evaluation.prompts import evaluation_tokenizer
from paribus.evaluation.segmentation import read_segmented, tokenizer_scores
from paribus.evaluation.tasks import SEGMENTED
from paribus.ordering.arrays import save_array
from paribus.stage import JSON, StageContext
from paribus.store import files
from paribus.tokenization.encoded_corpus import EncodedCorpus
from paribus.tokenization.statistics import (
    CorpusStatistics,
    TokenCounts,
    character_lengths,
    corpus_statistics,
    count_ids,
    count_statistics,
    length_buckets,
    ordinary_tokens,
    own_shares,
)

STATISTICS, COUNTS = "statistics.json", "counts.npy"
SHARE_BINS = np.linspace(0, 1, 11)
"""Bins of the histogram of tokens by the share of their text that is their own."""


def build(context: StageContext) -> dict[str, JSON]:
    """Count the encoded training text, encode the held-out text, cut the sentences; return the single numbers."""
    words, listener = segmented(context.config.evaluation.tasks), context.listener
    steps = 2 + len(words)
    listener.progress(0, steps, unit="parts", doing="counting the tokens of the training text")
    corpus = EncodedCorpus(context.inputs["tokens"])
    tokenizer = corpus.tokenizer
    source = CorpusArtifact(context.inputs["corpus"])
    # Of the text itself: a token for what a tokenizer does not know, or leaves out, does not say where words begin.
    words_of_text = sum(context.engine.map(count_words, source.shards("train")))
    ids = count_ids(corpus, tokenizer.vocab_size, len(corpus.first_draw))
    train = count_statistics(tokenizer, TokenCounts(ids, len(corpus), int(corpus.source_bytes.sum()), words_of_text))
    own = own_shares(tokenizer, ids)
    known = own[np.isfinite(own)]
    listener.progress(1, steps, unit="parts", doing="encoding the held-out text")
    texts = (text for document in source.documents("heldout") for text in document.texts)
    heldout = corpus_statistics(evaluation_tokenizer(corpus.tokenizer_path), texts)
    scores: dict[str, JSON] = {}
    for number, name in enumerate(words, start=2):
        listener.progress(number, steps, unit="parts", doing=f"cutting the sentences of {name}")
        sentences = read_segmented(context.inputs["tasks"] / f"{name}{SEGMENTED}")
        measured = tokenizer_scores(evaluation_tokenizer(corpus.tokenizer_path), sentences)
        scores |= {
            f"{name}_precision": measured.precision,
            f"{name}_recall": measured.recall,
            f"{name}_f1": measured.f1,
        }
    columns = tokenizer.vocabulary.columns
    lengths = character_lengths([columns.spellings[rank] for rank in tokenizer.vocabulary.rank_of_id.tolist()])
    by_length = length_buckets(lengths, ordinary_tokens(tokenizer).astype(np.int64))
    save_array(context.output / COUNTS, ids)
    content: dict[str, JSON] = {
        "train": asdict(train),
        "heldout": asdict(heldout),
        "vocabulary_lengths": {**by_length},  # tokens by length in characters, special ones left out
        "own_share": float(known.mean()) if len(known) else None,
        "own_shares": np.histogram(known, bins=SHARE_BINS)[0].tolist(),
        "words": scores,
    }
    files.write_json(context.output / STATISTICS, content)
    return {
        "vocab_size": tokenizer.vocab_size,
        "own_share": content["own_share"],
        **_numbers(train),
        **{f"heldout_{name}": value for name, value in _numbers(heldout).items()},
        **scores,
    }


def count_words(shard: Path) -> int:
    """Words of a shard of the corpus, both sides of pairs: what ASCII whitespace separates."""
    return sum(len(text.encode().split()) for document in read_shard(shard) for text in document.texts)


def _numbers(statistics: CorpusStatistics) -> dict[str, JSON]:
    return {name: value for name, value in asdict(statistics).items() if isinstance(value, int | float)}
