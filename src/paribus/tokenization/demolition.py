"""What each token of the expanded vocabulary becomes in the end: itself, or the normal tokens of a scaffold.

Scaffold-BPE, equation 6: a scaffold token is replaced by its parents, recursively, down to the first normal tokens.
"""

from typing import Literal

from paribus.tokenization.vocabulary import Entry, Vocabulary

Demolish = Literal["parents", "shortest"]


def child_sequences(vocabulary: Vocabulary, demolish: Demolish) -> list[tuple[int, ...]]:
    """Dense ids for each rank: `parents` is equation 6, `shortest` the fewest normal tokens."""
    if demolish == "shortest":
        return _shortest(vocabulary)
    children: list[tuple[int, ...]] = []
    for entry in vocabulary:
        if entry.id is not None:
            children.append((entry.id,))
        elif entry.parents is not None:
            left, right = entry.parents
            children.append(children[left] + children[right])
    return children


def _shortest(vocabulary: Vocabulary) -> list[tuple[int, ...]]:
    normal = {
        string: entry.id
        for entry, string in zip(vocabulary, vocabulary.strings, strict=True)
        if string is not None and entry.id is not None
    }
    return [_child(entry, string, normal) for entry, string in zip(vocabulary, vocabulary.strings, strict=True)]


def _child(entry: Entry, string: str | None, normal: dict[str, int]) -> tuple[int, ...]:
    return (entry.id,) if entry.id is not None else fewest(string or "", normal)


def fewest(string: str, normal: dict[str, int]) -> tuple[int, ...]:
    """Ids of the fewest tokens that spell `string`; among equally few, the longest first token, and so on."""
    best: list[tuple[int, ...]] = [()] * (len(string) + 1)
    for start in range(len(string) - 1, -1, -1):
        options = [
            (normal[string[start:end]], *best[end])
            for end in range(len(string), start, -1)
            if string[start:end] in normal and (best[end] or end == len(string))
        ]
        best[start] = min(options, key=len)
    return best[0]
