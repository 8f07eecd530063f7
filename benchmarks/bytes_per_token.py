"""Bytes a token by the size of a vocabulary, and the rule that `paribus plan` estimates them by.

python benchmarks/bytes_per_token.py --corpus english=FILE [--corpus NAME=FILE] [--megabytes 100]

A corpus is a file that `corpus=files` reads. A tokenizer of each kind and size is trained on its first megabytes and
encodes the same text, as a run does with its training split. The rule is fitted on byte-level BPE of the first corpus;
in brackets stands by how much the rule of the code is off. NAME= without a file is docstrings of installed packages.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import numpy as np
from tables import table
from texts import documents

from paribus.planning.length import bytes_by_rule
from paribus.tokenization import Tokenizer
from paribus.tokenization.settings import Algorithm

SIZES = (300, 512, 1_024, 2_048, 4_096, 8_192, 16_384, 32_768, 65_536)
DEGREE = 3
"""Of the polynomial in the logarithm of the size."""


def main(given: argparse.Namespace) -> None:
    """Measure every corpus, then fit the rule on the first and say how far off it is everywhere."""
    rows, fitted = [], {}
    for name, path in given.corpus:
        texts = beginning(path, given.megabytes * 1e6)
        megabytes = sum(len(text.encode()) for text in texts) / 1e6
        for algorithm in given.algorithms:
            found = {size: bytes_a_token(texts, algorithm, size) for size in given.sizes}
            full = {size: value for size, value in found.items() if value is not None}
            fitted = fitted or full
            told = [f"{value:.2f} ({bytes_by_rule(size) / value - 1:+.0%})" for size, value in full.items()]
            rows.append([name, algorithm, f"{megabytes:.1f}", *told, *["-"] * (len(found) - len(full))])
    rule = np.polyfit(np.log(list(fitted)), list(fitted.values()), DEGREE)
    factors = ", ".join(f"{factor:.5f}" for factor in rule)
    head = ["corpus", "tokenizer", "MB", *(f"{size:,}" for size in given.sizes)]
    sys.stdout.write(f"fitted, highest power of ln(size) first: {factors}\n{table(head, rows)}")


def beginning(path: Path | None, size: float) -> list[str]:
    """The first documents, of so many bytes together at most."""
    texts = []
    for text in documents(path):
        size -= len(text.encode())
        if size < 0:
            break
        texts.append(text)
    return texts


def bytes_a_token(texts: Sequence[str], algorithm: Algorithm, size: int) -> float | None:
    """Bytes of text a token; None where the vocabulary was not full."""
    tokenizer = Tokenizer.train(texts, algorithm=algorithm, vocab_size=size, special_tokens=("<|endoftext|>",))
    if tokenizer.vocab_size < size:
        return None
    return sum(len(text.encode()) for text in texts) / len(tokenizer.encode_batch(list(texts))[0])


def named_file(text: str) -> tuple[str, Path | None]:
    """NAME=FILE."""
    name, _, path = text.partition("=")
    return name, Path(path) if path else None


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", action="append", type=named_file, required=True, help="NAME=FILE; several may be")
    parser.add_argument("--megabytes", type=float, default=100)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--algorithms", nargs="+", choices=get_args(Algorithm), default=["bpe"])
    main(parser.parse_args())
