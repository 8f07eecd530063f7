"""The traversal rule of the released code of In-Context Pretraining, as plainly as it is written there.

Sets and dictionaries of Python, one document after the other.
"""

from collections.abc import Iterable, Sequence


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
