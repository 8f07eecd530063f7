"""The characters of a text that each of its tokens stands for."""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from paribus.errors import ConfigurationError
from paribus.tokenization.pretokenize.cutter import NORMALIZING
from paribus.tokenization.pretokenize.patterns import Pretokenizer
from paribus.tokenization.pretokenize.unicode_classes import CODES, class_table
from paribus.tokenization.text_tokenizer import TextTokenizer
from paribus.tokenization.vocabulary.units import utf8
from paribus.tokenization.vocabulary.vocabulary import UNKNOWN

_WHOLE = ("left_to_right", "whole")
"""Encoders that give up a whole pre-token for an unknown one; to others a character of it is unknown."""


class Offsets:
    """Finds the tokens of one tokenizer in texts.

    Raises ConfigurationError for an imported pre-tokenizer that normalizes text: its tokens have no places there.
    """

    def __init__(self, tok: TextTokenizer) -> None:
        settings = tok.settings
        if settings.pretokenizer in NORMALIZING:
            raise ConfigurationError(
                f"return_offsets_mapping: pretokenizer={settings.pretokenizer} normalizes a text before it cuts it, so "
                "tokens have no places in the text; take the offsets of the tokenizer that this one was imported from, "
                "as transformers reads its file, or leave return_offsets_mapping out"
            )
        self._stripped = settings.pretokenizer == "stripped"
        self._whole = settings.encoder in _WHOLE
        self._cutter = tok.cutter or Pretokenizer(settings.pretokenizer)
        self._lengths = tok.token_byte_lengths()
        columns = tok.vocabulary.columns
        self._unknown = int(next(iter(columns.ids[columns.kinds == UNKNOWN]), -1))

    def spans(self, text: str, ids: Sequence[int]) -> list[tuple[int, int]]:
        """(first character, the one after the last) of each of the `ids` that `text` was encoded to.

        Of a character that several tokens share, each has the whole span.
        """
        if not ids:
            return []
        characters = self._characters(text)
        lengths = self._lengths[np.array(ids, dtype=np.int64)]
        if self._unknown in ids:
            lengths = np.fromiter(self._resolved(text, ids, characters), dtype=np.int64, count=len(ids))
        ends = np.cumsum(lengths)
        begins = characters[ends - lengths].tolist()
        return list(zip(begins, (characters[ends - 1] + 1).tolist(), strict=True))

    def _characters(self, text: str) -> npt.NDArray[np.int64]:
        """The character of each byte of the text that tokens stand for."""
        data = np.frombuffer(utf8(text), dtype=np.uint8)
        characters: npt.NDArray[np.int64] = np.cumsum((data & 0xC0) != 0x80) - 1
        if not self._stripped:
            return characters
        codepoints = np.frombuffer(text.encode("utf-32-le"), dtype="<u4")
        lost = class_table()[codepoints] == CODES["spaces"]
        kept: npt.NDArray[np.int64] = characters[~lost[characters]]
        return kept

    def _resolved(self, text: str, ids: Sequence[int], characters: npt.NDArray[np.int64]) -> Iterator[int]:
        """Bytes that each token stands for, where some are unknown: to the end of the pre-token, or one character."""
        pieces = self._cutter.pieces(text) if self._whole else ()
        ends = np.cumsum([len(utf8(piece)) for piece in pieces]) if self._whole else _last_bytes(characters)
        place = 0
        for identity in ids:
            known = int(self._lengths[identity])
            size = int(ends[np.searchsorted(ends, place, side="right")]) - place if identity == self._unknown else known
            yield size
            place += size


def _last_bytes(characters: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Where each character ends."""
    return np.append(np.flatnonzero(np.diff(characters)) + 1, len(characters))
