"""Time of the traversal of In-Context Pretraining on a random neighbour graph, with its promises checked.

python benchmarks/ordering.py [--documents 100000] [--neighbours 20]
"""

import argparse
import sys
import time

import numpy as np

from paribus.ordering import traverse


def main(documents: int, neighbours: int) -> None:
    """Print one line."""
    generator = np.random.default_rng(0)
    near = generator.integers(0, documents, (documents, neighbours))
    similarities = generator.random((documents, neighbours), dtype=np.float32)
    started = time.perf_counter()
    order = traverse(near, similarities, seed=0)
    seconds = time.perf_counter() - started
    assert np.array_equal(np.sort(order), np.arange(documents))
    sys.stdout.write(f"{documents:,} documents x {neighbours} neighbours: {seconds:.1f} s\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--neighbours", type=int, default=20)
    given = parser.parse_args()
    main(given.documents, given.neighbours)
