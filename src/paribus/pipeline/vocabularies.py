"""The vocabularies of a comparison's runs, set side by side."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from paribus.reporting.frame import RunRecord
    from paribus.reporting.shared_tokens import SharedTokens


def compare_vocabularies(records: Sequence["RunRecord"]) -> "SharedTokens | None":
    """What the different vocabularies of these runs share; None where there are not two."""
    from paribus.reporting.shared_tokens import SharedTokens
    from paribus.tokenization import Tokenizer
    from paribus.tokenization.vocabulary_overlap import overlap_shares

    users: dict[Path, list[RunRecord]] = {}
    for record in records:
        if record.vocabulary is not None:
            users.setdefault(record.vocabulary, []).append(record)
    if len(users) < 2:
        return None
    sizes, shares = overlap_shares([Tokenizer.load(path / "tokenizer") for path in users])
    return SharedTokens(_names(list(users.values())), sizes, shares)


def _names(groups: Sequence[Sequence["RunRecord"]]) -> list[str]:
    """What the runs of each group have in common and not all runs have, numbered where that is not enough."""
    everyone = [record for group in groups for record in group]
    telling = [name for name in everyone[0].factors if len({record.factors[name] for record in everyone}) > 1]
    names = []
    for group in groups:
        shared = [name for name in telling if len({record.factors[name] for record in group}) == 1]
        names.append(" · ".join(group[0].factors[name] for name in shared))
    return [
        name if name and names.count(name) == 1 else f"{name or 'vocabulary'} ({place})"
        for place, name in enumerate(names, start=1)
    ]
