"""The traversal rule of the released code of In-Context Pretraining, as plainly as it is written there.

Sets and dictionaries of Python, one document after the other: what `paribus.ordering.in_context_released` is
checked against and timed beside.

python benchmarks/released_rule.py [--documents 100000] [--neighbours 9]
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from paribus.ordering.arrays import JUMPS, NeighbourLists, permutation, write_neighbours
from paribus.ordering.in_context_released import in_chains


def released_order(neighbours: Sequence[Sequence[int]], chain: int, random: Iterable[int]) -> list[int]:
    """Documents chain by chain, short chains dissolved.

    `neighbours` are the ones of each document that are looked at, the nearest first; `random` is a permutation of all
    documents whose first unseen one begins the next chain.
    """
    chains = walk(neighbours, chain, random)
    dissolve(chains, neighbours, chain)
    return [document for documents in chains.values() for document in documents]


def walk(neighbours: Sequence[Sequence[int]], chain: int, random: Iterable[int]) -> dict[int, list[int]]:
    """Documents of each chain by its number."""
    unseen, landings = set(range(len(neighbours))), iter(random)
    chains: dict[int, list[int]] = {}
    while unseen:
        last = chains[len(chains) - 1] if chains else []
        open_neighbours = [near for near in neighbours[last[-1]] if near in unseen] if 0 < len(last) < chain else []
        if open_neighbours:
            last.append(open_neighbours[0])
        else:
            last = chains[len(chains)] = [next(document for document in landings if document in unseen)]
        unseen.remove(last[-1])
    return chains


def dissolve(chains: dict[int, list[int]], neighbours: Sequence[Sequence[int]], chain: int) -> None:
    """Put each document of a chain that is not full before its nearest neighbour in another chain."""
    chain_of = {document: number for number, documents in chains.items() for document in documents}
    for number in list(chains):
        if len(chains[number]) >= chain:
            continue
        staying = []
        for document in chains[number]:
            elsewhere = [near for near in neighbours[document] if chain_of[near] != number]
            if elsewhere:
                target = chains[chain_of[elsewhere[0]]]
                target.insert(target.index(elsewhere[0]), document)
                chain_of[document] = chain_of[elsewhere[0]]
            else:
                staying.append(document)
        chains[number] = staying


def main(documents: int, neighbours: int, seed: int = 0) -> None:
    """Print the seconds of both and check that their orders are equal."""
    generator = np.random.default_rng(seed)
    ids = (np.arange(documents)[:, None] + generator.integers(1, 1000, (documents, neighbours))) % documents
    with tempfile.TemporaryDirectory() as directory:
        write_neighbours(Path(directory), ids, np.tile(np.linspace(1, 0, neighbours), (documents, 1)))
        lists = NeighbourLists(Path(directory))
        started = time.perf_counter()
        ours = in_chains(lists, np.ones(documents, dtype=bool), neighbours, 21, seed=seed)
        ours_seconds = time.perf_counter() - started
    plain = ids.tolist()
    random = permutation(documents, JUMPS, seed).tolist()
    started = time.perf_counter()
    theirs = released_order(plain, 21, random)
    seconds = time.perf_counter() - started
    assert ours.documents.tolist() == theirs
    sys.stdout.write(f"{documents:,} documents x {neighbours}: {ours_seconds:.1f} s, plain Python {seconds:.1f} s\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--neighbours", type=int, default=9)
    given = parser.parse_args()
    main(given.documents, given.neighbours)
