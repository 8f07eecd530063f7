"""tiktoken vocabularies: tokens by rank, and no merge rules, with the ids that tiktoken gives.

tiktoken merges the two neighbours whose joined bytes have the lowest rank, leftmost first, and takes a pre-token that
is a token whole. Whatever stands around it, a token is always made from the same two: a stretch of text that ends as
one token went through the same merges as it does alone. So one rule a token, in order of rank, says the same. Tokens
that merging their own bytes does not lead to have no rule; only a whole pre-token becomes one.
"""

import base64
import binascii
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

from paribus.errors import ConfigurationError, DataError
from paribus.tokenization.interchange.byte_level_import import ByteLevelImport
from paribus.tokenization.interchange.foreign_patterns import PRETOKENIZER_OF_PATTERN
from paribus.tokenization.interchange.huggingface_import import imported_settings
from paribus.tokenization.pretokenize.patterns import PATTERNS
from paribus.tokenization.settings import Settings
from paribus.tokenization.vocabulary.vocabulary import Vocabulary

Ranks = Mapping[bytes, int]


def from_tiktoken(
    source: str | Path | Ranks, pattern: str, special_tokens: Mapping[str, int]
) -> tuple[Vocabulary, Settings]:
    """Read a file of lines `base64 rank`, or take `mergeable_ranks`; `pattern` is tiktoken's or one of our names."""
    name = pattern if pattern in PATTERNS else PRETOKENIZER_OF_PATTERN.get(pattern)
    if name is None or name == "stripped":
        raise ConfigurationError(
            f"pattern: no pre-tokenizer here cuts like {pattern}; it must be one of "
            f"{', '.join(name for name in PATTERNS if name != 'stripped')} or a pattern that is the same as theirs"
        )
    ranks = source if isinstance(source, Mapping) else read_ranks(Path(source))
    origin = "mergeable_ranks" if isinstance(source, Mapping) else str(source)
    importing = ByteLevelImport(ranks, special_tokens, origin)
    ordered = sorted((token for token in ranks if len(token) > 1), key=ranks.__getitem__)
    pairs = (final_pair(token, ranks) for token in ordered)
    vocabulary = importing.vocabulary(pair for pair in pairs if pair is not None)
    names = tuple(sorted(special_tokens, key=special_tokens.__getitem__))
    return vocabulary, imported_settings(name, names, whole_pretokens=True)


def read_ranks(path: Path) -> dict[bytes, int]:
    """Tokens and ranks of a `.tiktoken` file. DataError with the line that is wrong."""
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise DataError(f"{path}: unreadable ({error})") from error
    ranks: dict[bytes, int] = {}
    for number, line in enumerate(lines, start=1):
        cells = line.split()
        if not cells:
            continue
        try:
            encoded, rank = cells
            token = base64.b64decode(encoded, validate=True)
            value = int(rank)
        except (ValueError, binascii.Error) as error:
            raise DataError(f"{path}, line {number}: not a token in base64 and its rank ({error})") from error
        if not token or token in ranks:
            raise DataError(f"{path}, line {number}: token {token!r} is {'there twice' if token else 'empty'}")
        ranks[token] = value
    return ranks


def final_pair(token: bytes, ranks: Ranks) -> tuple[bytes, bytes] | None:
    """The two tokens whose merge makes `token` out of its own bytes, or None where merging ends before."""
    parts = [bytes([byte]) for byte in token]
    last = None
    while len(parts) > 1:
        joined = [ranks.get(left + right) for left, right in pairwise(parts)]
        known = [rank for rank in joined if rank is not None]
        if not known:
            return None
        place = joined.index(min(known))
        last = parts[place], parts[place + 1]
        parts[place : place + 2] = [last[0] + last[1]]
    return last
