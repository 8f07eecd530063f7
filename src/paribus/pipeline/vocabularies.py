"""The vocabularies of a comparison's runs, set side by side."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from paribus.reporting.figures_data import OverlapMatrix
    from paribus.reporting.runs import RunRecord
    from paribus.tokenization.statistics import Counts, Spellings

_COUNTED = 100_000_000
"""Tokens of an encoded corpus that are counted, from its beginning."""


def compare_vocabularies(
    records: Sequence["RunRecord"], said: Mapping[str, str] | None = None
) -> "OverlapMatrix | None":
    """The overlap of the different vocabularies of these runs; None where there are not two.

    `said` is what the table says for labels (`experiment.table.names`).
    """
    from paribus.tokenization import Tokenizer
    from paribus.tokenization.statistics import spellings

    users: dict[Path, list[RunRecord]] = {}
    for record in records:
        if record.vocabulary is not None:
            users.setdefault(record.vocabulary, []).append(record)
    if len(users) < 2:
        return None
    tokenizers = [Tokenizer.load(path / "tokenizer") for path in users]
    counts = [_counts(group[0].tokens, tok.vocab_size) for group, tok in zip(users.values(), tokenizers, strict=True)]
    spelled = [spellings(tok) for tok in tokenizers]
    own = {
        record.run_id: alone for group, alone in zip(users.values(), _alone(spelled), strict=True) for record in group
    }
    groups = list(users.values())
    return replace(overlap_matrix(_names(groups, {}), spelled, counts), own=own, shown=_names(groups, said or {}))


def overlap_matrix(
    names: Sequence[str], spelled: Sequence["Spellings"], counts: Sequence["Counts | None"]
) -> "OverlapMatrix":
    """The overlap of vocabularies by name, with how often each of their tokens occurs where that was counted."""
    from paribus.reporting.figures_data import OverlapMatrix
    from paribus.tokenization.statistics import overlap_shares, tokens_of

    frequencies = [
        [None if mine is theirs else _frequency(mine, theirs, counted) for theirs in spelled]
        for mine, counted in zip(spelled, counts, strict=True)
    ]
    return OverlapMatrix(names, [tokens_of(mine) for mine in spelled], overlap_shares(spelled), frequencies)


def _alone(spelled: Sequence["Spellings"]) -> list[frozenset[int]]:
    """Of each vocabulary the ids of the tokens that none of the others has."""
    counts = Counter(spelling for mine in spelled for spelling in mine)
    return [
        frozenset(identity for spelling, ids in mine.items() if counts[spelling] == 1 for identity in ids)
        for mine in spelled
    ]


def _counts(path: Path | None, size: int) -> "Counts | None":
    """Occurrences of each token (size,) at the beginning of an encoded corpus."""
    from paribus.tokenization.encoded_corpus import EncodedCorpus
    from paribus.tokenization.statistics import count_ids

    return None if path is None else count_ids(EncodedCorpus(path), size, _COUNTED)


def _frequency(mine: "Spellings", theirs: "Spellings", counts: "Counts | None") -> float | None:
    """How often, in a million tokens, a token occurs on average that only one has."""
    from paribus.tokenization.statistics import spelled_only_in

    if counts is None or not counts.sum():
        return None
    own = spelled_only_in(mine, theirs, counts)
    return 1e6 * own.mean_frequency / float(counts.sum()) if own.tokens else None


def _names(groups: Sequence[Sequence["RunRecord"]], said: Mapping[str, str]) -> list[str]:
    """What the runs of each group have in common and not all runs have, as `said`.

    Numbered where that is not enough.
    """
    everyone = [record for group in groups for record in group]
    telling = [name for name in everyone[0].factors if len({record.factors[name] for record in everyone}) > 1]
    names = []
    for group in groups:
        shared = [name for name in telling if len({record.factors[name] for record in group}) == 1]
        names.append(" · ".join(said.get(label, label) for label in (group[0].factors[name] for name in shared)))
    return [
        name if name and names.count(name) == 1 else f"{name or 'vocabulary'} ({place})"
        for place, name in enumerate(names, start=1)
    ]
