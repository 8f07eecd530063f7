"""A trie of tokens: the longest token from a position, and the next shorter token that begins it."""

from collections.abc import Iterable


class Trie:
    """Tokens as unit strings with their ranks; every unit must be among them."""

    def __init__(self, tokens: Iterable[tuple[str, int]]) -> None:
        self._children: list[dict[str, int]] = [{}]
        self._ranks = [-1]
        self.length: dict[int, int] = {}
        """Units of each token by rank."""
        self.shorter: dict[int, int] = {}
        """Rank of the longest proper prefix that is a token, by rank."""
        for string, rank in sorted(tokens, key=lambda item: len(item[0])):
            self._insert(string, rank)
        self._longest = max(self.length.values(), default=0)

    def _insert(self, string: str, rank: int) -> None:
        node, prefix = 0, -1
        for unit in string:
            children = self._children[node]
            if unit not in children:
                children[unit] = len(self._children)
                self._children.append({})
                self._ranks.append(-1)
            node = children[unit]
            if self._ranks[node] >= 0:
                prefix = self._ranks[node]
        self._ranks[node] = rank
        self.length[rank], self.shorter[rank] = len(string), prefix

    def longest(self, units: str, start: int) -> int:
        """Rank of the longest token that begins at `start`."""
        children, ranks = self._children, self._ranks
        node, found = 0, -1
        for unit in units[start : start + self._longest]:
            following = children[node].get(unit)
            if following is None:
                break
            node = following
            if ranks[node] >= 0:
                found = ranks[node]
        return found
