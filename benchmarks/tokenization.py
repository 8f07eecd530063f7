"""Training and encoding speed beside Hugging Face `tokenizers`, on the same text, results compared.

python benchmarks/tokenization.py CORPUS [--vocabulary 8192] [--repeats 3]

CORPUS is a corpus artefact, such as paribus_runs/artifacts/corpus/KEY; its training documents are taken. Times are CPU
seconds of this process and its threads, medians over the repeats; the peer is held to one thread. Both must cut every
document into the same number of tokens, and the ids of every document must decode to it.
"""

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["RAYON_NUM_THREADS"] = "1"

import tokenizers
from tokenizers import models, pre_tokenizers, trainers

from paribus.corpus.artifact import CorpusArtifact
from paribus.tokenization import Tokenizer


def median_seconds(function: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """Median CPU seconds and the last result."""
    taken, result = [], None
    for _ in range(repeats):
        started = time.process_time()
        result = function()
        taken.append(time.process_time() - started)
    return statistics.median(taken), result


def peer(documents: list[str], vocab_size: int) -> tokenizers.Tokenizer:
    """Byte-level BPE of `tokenizers` with the pre-tokens of GPT-2."""
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=vocab_size, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(documents, trainer)
    return tokenizer


def main(corpus: Path, vocab_size: int, repeats: int) -> None:
    """Print a Markdown table."""
    documents = list(CorpusArtifact(corpus).texts("train"))
    size = sum(len(text.encode()) for text in documents) / 1e6
    options = {"vocab_size": vocab_size, "pretokenizer": "gpt2"}
    rows = []
    seconds, theirs = median_seconds(lambda: peer(documents, vocab_size), repeats)
    rows.append(("tokenizers: train BPE", seconds))
    seconds, ours = median_seconds(lambda: Tokenizer.train(documents, algorithm="bpe", **options), repeats)
    rows.append(("paribus: train BPE", seconds))
    seconds, scaffold = median_seconds(lambda: Tokenizer.train(documents, algorithm="scaffold_bpe", **options), repeats)
    rows.append(("paribus: train Scaffold-BPE", seconds))
    seconds, batch = median_seconds(lambda: theirs.encode_batch(documents), repeats)
    rows.append(("tokenizers: encode, merge rank", seconds))
    for name, tokenizer in (("BPE", ours), ("Scaffold-BPE", scaffold)):
        for encoder in ("merge_rank", "longest_first"):
            chosen = tokenizer.with_encoder(encoder)
            seconds, (ids, offsets) = median_seconds(lambda chosen=chosen: chosen.encode_batch(documents), repeats)
            rows.append((f"paribus: encode, {name}, {encoder}", seconds))
            assert all(chosen.decode(ids[a:b]) == t for a, b, t in zip(offsets, offsets[1:], documents, strict=False))
            if (name, encoder) == ("BPE", "merge_rank"):
                assert [len(item.ids) for item in batch] == list(offsets[1:] - offsets[:-1])
    sys.stdout.write(
        f"{size:.1f} MB, vocabulary {vocab_size}, medians of {repeats}\n\n| what | CPU s | MB/s |\n|---|---|---|\n"
    )
    sys.stdout.write("".join(f"| {what} | {seconds:.2f} | {size / seconds:.1f} |\n" for what, seconds in rows))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--vocabulary", type=int, default=8192)
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    main(given.corpus, given.vocabulary, given.repeats)
