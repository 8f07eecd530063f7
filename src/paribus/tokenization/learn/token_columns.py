"""Trained tokens as the columns of a vocabulary."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from paribus.tokenization.vocabulary.units import UNKNOWN_TOKEN, utf8
from paribus.tokenization.vocabulary.vocabulary import FALLBACK, SPECIAL, TOKEN, UNIT, UNKNOWN, Columns

Integers = npt.NDArray[np.int64]
_BYTES = 256


@dataclass(frozen=True, eq=False)
class Alphabet:
    """The units a trainer numbers: bytes, or characters and then perhaps the 256 bytes that others fall back to.

    With continuation marks all of them follow a second time, as they are inside a word.
    """

    characters: Integers | None
    """Codepoints in order; None where units are bytes."""
    fallback: bool = False
    marked: bool = False

    @property
    def single(self) -> int:
        """Units without the second forms."""
        return _BYTES if self.characters is None else len(self.characters) + _BYTES * self.fallback

    @property
    def size(self) -> int:
        """All units."""
        return self.single * (1 + self.marked)

    def spell(self, units: npt.NDArray[np.int32], offsets: Integers) -> tuple[bytes, ...]:
        """The bytes of tokens given by their units. Fallback bytes are spelled where they stand alone."""
        plain = units % self.single
        if self.characters is None:
            return _cut(plain.astype(np.uint8).tobytes(), offsets)
        fallen = plain >= len(self.characters)
        codepoints = np.append(self.characters, np.zeros(_BYTES, np.int64))[plain].astype("<u4")
        lengths = 1 + (codepoints >= 0x80).astype(np.int64) + (codepoints >= 0x800) + (codepoints >= 0x10000)
        ends = np.zeros(len(units) + 1, np.int64)
        np.cumsum(lengths, out=ends[1:])
        spelled = np.frombuffer(codepoints.tobytes().decode("utf-32-le").encode("utf-8"), np.uint8).copy()
        spelled[ends[:-1][fallen]] = plain[fallen] - len(self.characters)
        return _cut(spelled.tobytes(), ends[offsets])

    def kinds(self) -> npt.NDArray[np.uint8]:
        """Kind of each unit."""
        kinds = np.full(self.single, UNIT, np.uint8)
        if self.fallback:
            kinds[-_BYTES:] = FALLBACK
        return np.tile(kinds, 1 + self.marked)


@dataclass(frozen=True, eq=False)
class TrainedTokens:
    """What every trainer's result comes down to: n tokens, units first, each given by its units."""

    units: npt.NDArray[np.int32]
    offsets: Integers
    frequencies: Integers
    parents: npt.NDArray[np.int32]
    """Shape (n, 2), -1 where there are none."""
    scaffold: npt.NDArray[np.bool_]
    scores: npt.NDArray[np.float64]


def columns(tokens: TrainedTokens, alphabet: Alphabet, special: Sequence[str], *, unknown: bool) -> Columns:
    """The tokens, then the unknown one if it is wanted, then the special ones; ids count those that are normal."""
    count, extra = len(tokens.scaffold), len(special) + unknown
    kinds = np.full(count + extra, TOKEN, np.uint8)
    kinds[: alphabet.size] = alphabet.kinds()
    kinds[count : count + unknown] = UNKNOWN
    kinds[count + unknown :] = SPECIAL
    ids = np.full(count + extra, -1, np.int32)
    normal = np.append(~tokens.scaffold, np.ones(extra, np.bool_))
    ids[normal] = np.arange(normal.sum(), dtype=np.int32)
    inside = tokens.units[tokens.offsets[:-1]] >= alphabet.single
    return Columns(
        ids=ids,
        spellings=(
            *alphabet.spell(tokens.units, tokens.offsets),
            *((utf8(UNKNOWN_TOKEN),) if unknown else ()),
            *map(utf8, special),
        ),
        frequencies=np.append(tokens.frequencies, np.zeros(extra, np.int64)),
        parents=np.concatenate([tokens.parents, np.full((extra, 2), -1, np.int32)]),
        kinds=kinds,
        continuations=np.append(inside, np.zeros(extra, np.bool_)),
        scores=np.append(tokens.scores, np.zeros(extra)),
    )


def _cut(spelled: bytes, offsets: Integers) -> tuple[bytes, ...]:
    return tuple([spelled[begin:end] for begin, end in pairwise(offsets.tolist())])
