"""Bytes a token by the size of a vocabulary, and the rule that `paribus plan` estimates them by.

python benchmarks/bytes_per_token.py --corpus english=FILE [--corpus NAME=FILE] [--fit english] [--megabytes 100]

A corpus is a file that `corpus=files` reads. A tokenizer of each kind and size is trained on its first megabytes and
encodes the same text, as a run does with its training split. The rule is fitted on byte-level BPE of one corpus; in
brackets stands by how much the rule of the code is off. NAME= without a file is docstrings of installed packages.
"""

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import get_args

import numpy as np
from texts import documents

from paribus.planning.length import bytes_by_rule
from paribus.tokenization import Tokenizer
from paribus.tokenization.settings import Algorithm

SIZES = (300, 512, 1_024, 2_048, 4_096, 8_192, 16_384, 32_768, 65_536)
DEGREE = 3
"""Of the polynomial in the logarithm of the size."""


def main(given: argparse.Namespace) -> None:
    """Measure every corpus, then fit the rule on one of them and say how far off it is everywhere."""
    corpora = {name: list(_first(documents(path), given.megabytes * 10**6)) for name, path in given.corpus}
    measured = {
        (name, algorithm): dict(_measured(texts, algorithm, given.sizes))
        for name, texts in corpora.items()
        for algorithm in given.algorithms
    }
    fitted = measured[given.fit, "bpe"]
    rule = np.polyfit(np.log(list(fitted)), list(fitted.values()), DEGREE)
    _say("fitted, highest power of ln(size) first: " + ", ".join(f"{factor:.5f}" for factor in rule))
    _say(_row(["corpus", "tokenizer", "MB", *(f"{size:,}" for size in given.sizes)]))
    _say(_row(["---"] * (3 + len(given.sizes))))
    for (name, algorithm), found in measured.items():
        size = sum(len(text.encode()) for text in corpora[name]) / 1e6
        told = [
            f"{found[size]:.2f} ({bytes_by_rule(size) / found[size] - 1:+.0%})" if size in found else "-"
            for size in given.sizes
        ]
        _say(_row([name, algorithm, f"{size:.1f}", *told]))


def _first(texts: Iterator[str], size: int) -> Iterator[str]:
    for text in texts:
        size -= len(text.encode())
        if size < 0:
            return
        yield text


def _measured(texts: Sequence[str], algorithm: Algorithm, sizes: Sequence[int]) -> Iterator[tuple[int, float]]:
    """Size of a vocabulary that was full -> bytes of text a token."""
    total = sum(len(text.encode()) for text in texts)
    for size in sizes:
        started = time.monotonic()
        tokenizer = Tokenizer.train(texts, algorithm=algorithm, vocab_size=size, special_tokens=("<|endoftext|>",))
        if tokenizer.vocab_size < size:
            return
        tokens = len(tokenizer.encode_batch(list(texts))[0])
        sys.stderr.write(f"{algorithm} {size}: {total / tokens:.4f}, {time.monotonic() - started:.0f} s\n")
        yield size, total / tokens


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _named(text: str) -> tuple[str, Path | None]:
    name, _, path = text.partition("=")
    return name, Path(path) if path else None


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", action="append", type=_named, required=True, help="NAME=FILE; several may be given")
    parser.add_argument("--fit", default="english", help="the corpus that the rule is fitted on")
    parser.add_argument("--megabytes", type=float, default=100)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--algorithms", nargs="+", choices=get_args(Algorithm), default=["bpe"])
    main(parser.parse_args())
