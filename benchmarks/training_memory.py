"""Memory of training on a corpus that does not fit: copies of a corpus as one stream, in a limited address space.

python benchmarks/training_memory.py FILE [--copies 30] [--limit-gib 1.5]
"""

import argparse
import hashlib
import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from texts import documents

from paribus.tokenization import Tokenizer


class Copies:
    """The documents of a file again and again; `read` counts their bytes."""

    def __init__(self, path: Path, copies: int) -> None:
        self._path, self._copies = path, copies
        self.read = 0

    def __iter__(self) -> Iterator[str]:
        for _ in range(self._copies):
            for text in documents(self._path):
                self.read += len(text.encode())
                yield text


def main(path: Path, copies: int, limit_gib: float) -> None:
    """Print one line for one copy and one for all; copies change no merge."""
    limit = int(limit_gib * 2**30)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    merges = set[str]()
    for number in (1, copies):
        texts, began = Copies(path, number), time.perf_counter()
        tok = Tokenizer.train(texts, vocab_size=32_768, pretokenizer="gpt2")
        seconds = time.perf_counter() - began
        merges.add(hashlib.sha256(repr(tok.merges).encode()).hexdigest())
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        size = f"{texts.read / 1e9:.2f} GB of text in {limit_gib} GiB of address space"
        sys.stdout.write(f"{size}: {seconds:.1f} s, peak {peak:.0f} MiB\n")
    assert len(merges) == 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("file", type=Path)
    parser.add_argument("--copies", type=int, default=30)
    parser.add_argument("--limit-gib", type=float, default=1.5)
    given = parser.parse_args()
    main(given.file, given.copies, given.limit_gib)
