"""Memory of training on a corpus that does not fit: copies of a corpus as one stream, in a limited address space.

python benchmarks/training_memory.py FILE [--copies 30]
"""

import argparse
import resource
import sys
import time
from pathlib import Path

from texts import documents

from paribus.tokenization import Tokenizer

LIMIT_GIB = 1.5


def main(path: Path, copies: int) -> None:
    """Print one line for one copy and one for all; copies change no merge."""
    resource.setrlimit(resource.RLIMIT_AS, (int(LIMIT_GIB * 2**30),) * 2)
    gigabytes = sum(len(text.encode()) for text in documents(path)) / 1e9
    merges = []
    for number in (1, copies):
        began = time.perf_counter()
        texts = (text for _ in range(number) for text in documents(path))
        merges.append(Tokenizer.train(texts, vocab_size=32_768, pretokenizer="gpt2").merges)
        seconds = time.perf_counter() - began
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        size = f"{number * gigabytes:.2f} GB of text in {LIMIT_GIB} GiB of address space"
        sys.stdout.write(f"{size}: {seconds:.1f} s, peak {peak:.0f} MiB\n")
    assert merges[0] == merges[1]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--copies", type=int, default=30)
    given = parser.parse_args()
    main(given.file, given.copies)
