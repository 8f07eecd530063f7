"""Where tokens that were added to a tokenizer of transformers stand in a text, as the library `tokenizers` finds them.

The leftmost comes first, of those that begin at one place the longest; tokens with `normalized=True` are looked for in
what the others leave. `single_word` wants no letter, number or underscore beside it; `lstrip` and `rstrip` take the
white space beside it along.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import regex
from tokenizers import AddedToken

_WORD = regex.compile(r"[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}]")
_SPACE = regex.compile(r"\p{White_Space}")
"""As Unicode has them (UTS 18, annex C), and with it the library; Python's own differ in marks, digits and controls."""


@dataclass(frozen=True)
class Segment:
    """Characters `begin` to `end` of a text: an added token, or what stands between two."""

    begin: int
    end: int
    token: str | None
    """The content of the added token, or None."""


class AddedTokens:
    """Finds a fixed set of added tokens; special ones can be left as text."""

    def __init__(self, tokens: Iterable[AddedToken]) -> None:
        self._tokens: Mapping[str, AddedToken] = {token.content: token for token in tokens}
        self._patterns = [_pattern(self._contents(normalized=normalized)) for normalized in (False, True)]

    def segments(self, text: str, *, split_special: bool) -> list[Segment]:
        """The text in order; with `split_special`, special tokens are text like any other."""
        found = [Segment(0, len(text), None)] if text else []
        for pattern in self._patterns:
            if pattern is not None:
                found = [part for segment in found for part in self._cut(text, segment, pattern, split_special)]
        return found

    def _contents(self, *, normalized: bool) -> list[str]:
        return [content for content, token in self._tokens.items() if token.normalized == normalized]

    def _cut(self, text: str, segment: Segment, pattern: re.Pattern[str], split_special: bool) -> Iterator[Segment]:
        if segment.token is not None:
            yield segment
            return
        part, place = text[segment.begin : segment.end], 0
        for match in pattern.finditer(part):
            token = self._tokens[match.group()]
            begin, end = match.span()
            alone = not _WORD.match(part[begin - 1 : begin]) and not _WORD.match(part[end : end + 1])
            if (split_special and token.special) or (token.single_word and not alone):
                continue
            while token.lstrip and begin > place and _SPACE.match(part[begin - 1]):
                begin -= 1
            while token.rstrip and end < len(part) and _SPACE.match(part[end]):
                end += 1
            if place < begin:
                yield Segment(segment.begin + place, segment.begin + begin, None)
            yield Segment(segment.begin + begin, segment.begin + end, token.content)
            place = end
        if place < len(part):
            yield Segment(segment.begin + place, segment.end, None)


def _pattern(contents: list[str]) -> re.Pattern[str] | None:
    """The longest first, since the first alternative that matches is taken."""
    longest_first = sorted(contents, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest_first))) if contents else None
