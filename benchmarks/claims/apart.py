"""Two rows of which only the difference of each from a third was kept."""

from collections.abc import Mapping, Sequence
from functools import cache

from claims.claim import Claim, Claimed, Found
from paribus.checks.command import compose_command
from paribus.config.arguments import parse


def apart(found: Sequence[Claimed]) -> list[Claimed]:
    """`found`, with the difference of differences where a row of `against` and its own have the same baseline.

    It has no interval: how the two vary together was not kept.
    """
    kept = {_place(claim, claim.row): one for claim, one in found if one is not None and not claim.against}
    return [(claim, one or _between(claim, kept)) for claim, one in found]


def _between(claim: Claim, kept: Mapping[str, Found]) -> Found | None:
    ours, other = (kept.get(_place(claim, row)) for row in (claim.row, claim.against))
    if not claim.against or ours is None or other is None or not _alike(claim):
        return None
    return Found(ours.difference - other.difference, seeds=min(ours.seeds, other.seeds), apart=True)


def _place(claim: Claim, row: Mapping[str, str]) -> str:
    return f"{claim.number} in {claim.experiment}, {sorted(row.items())}"


def _alike(claim: Claim) -> bool:
    """Whether the table of the experiment compares both rows with one."""
    baseline = _baseline(claim.experiment)
    return not baseline or {**claim.row, **baseline} == {**claim.against, **baseline}


@cache
def _baseline(experiment: str) -> Mapping[str, str]:
    described = compose_command(parse([f"experiment={experiment}"])).jobs[0].config.experiment
    table = described.table if described else None
    return (table.baseline if table else None) or {}
