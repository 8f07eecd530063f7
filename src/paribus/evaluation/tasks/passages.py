"""Cut a document into a context and the text that follows it, and sample documents evenly over a corpus.

Everything is counted in characters, so every tokenizer of a sweep gets the same passages. A continuation ends at a
number of characters, before the document does: how it ends tells nothing about whether it is the true one.
"""

import hashlib
import unicodedata
from dataclasses import dataclass

SHORTEST = 40
"""Shorter documents make no passage (characters)."""
JOINER = "\N{ZERO WIDTH JOINER}"


@dataclass(frozen=True)
class Passage:
    """The beginning of a document, in two parts; at a word boundary the second begins with the whitespace."""

    document: str
    context: str
    continuation: str

    @property
    def digest(self) -> str:
        """Hexadecimal digest of the text; it depends on nothing else."""
        return text_digest(self.context + "\0" + self.continuation)

    @property
    def spaced(self) -> bool:
        """Whether the split is at whitespace."""
        return self.continuation[0].isspace()


def text_digest(text: str) -> str:
    """A hexadecimal digest that orders texts evenly, whatever corpus they come from."""
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def cut_passage(document: str, text: str, lengths: tuple[int, int]) -> Passage | None:
    """The passage of a document, or None where the text is too short or its continuation mostly blank.

    `lengths` are the largest numbers of characters of the context and of the continuation.
    """
    longest_context, longest_continuation = lengths
    text = text.strip()
    if len(text) < SHORTEST:
        return None
    split = _boundary(text, min(longest_context, len(text) * 6 // 10))
    continuation = text[split : split + min(longest_continuation, len(text) * 3 // 10)]
    if 2 * sum(not character.isspace() for character in continuation) < len(continuation):
        return None
    return Passage(document, text[:split], continuation)


def _boundary(text: str, target: int) -> int:
    """The last start of whitespace in the second half before `target`, else the character boundary there."""
    for i in range(target, target // 2, -1):
        if text[i].isspace() and not text[i - 1].isspace():
            return i
    boundary = target
    while boundary > 1 and not _between_characters(text, boundary):
        boundary -= 1
    return boundary


def _between_characters(text: str, i: int) -> bool:
    """Whether what follows is no mark or joiner that belongs to the character before it, and that is no space."""
    after = text[i]
    joined = unicodedata.category(after).startswith("M") or JOINER in (after, text[i - 1])
    return not joined and not text[i - 1].isspace()


class PassageSample:
    """The passages of smallest digest, distinct, at most `size`: an even sample in one pass and bounded memory.

    `lengths` are the largest numbers of characters of a context and of a continuation.
    """

    def __init__(self, size: int, lengths: tuple[int, int]) -> None:
        self.size, self.lengths = size, lengths
        self.documents = 0
        self._passages: dict[str, Passage] = {}

    def add(self, document: str, text: str) -> None:
        """Consider a document; of equal passages the first stays."""
        self.documents += 1
        passage = cut_passage(document, text, self.lengths)
        if passage is None:
            return
        self._passages.setdefault(passage.digest, passage)
        if len(self._passages) > 2 * self.size + 1024:
            self._passages = dict(self._smallest())

    def passages(self) -> list[Passage]:
        """The sample in order of digest."""
        return [passage for _, passage in self._smallest()]

    def _smallest(self) -> list[tuple[str, Passage]]:
        return sorted(self._passages.items())[: self.size]
