"""What was found before, for a page of runs that code of several versions made: each finds the runs of its own."""

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from claims.claim import Claim, Claimed, Found
from paribus.store import atomic
from paribus.store.json_file import read_object


def remembered(found: Iterable[Claimed], file: Path | None) -> list[Claimed]:
    """`found`, and what `file` has of claims without runs; the file then has all of it. None remembers nothing."""
    if file is None:
        return list(found)
    before = read_object(file) if file.is_file() else {}
    both = [(claim, now or _read(before.get(_name(claim)))) for claim, now in found]
    kept = {_name(claim): asdict(one) for claim, one in both if one is not None}
    atomic.write_json(file, before | kept)
    return both


def _name(claim: Claim) -> str:
    """What was measured, whatever a paper says of it."""
    rows = [claim.row, claim.against] if claim.against else [claim.row]
    told = [", ".join(f"{factor}={label}" for factor, label in sorted(row.items())) for row in rows]
    return f"{claim.number} in {claim.experiment}, {' against '.join(told)}"


def _read(value: dict[str, object] | None) -> Found | None:
    if value is None:
        return None
    interval = value["interval"]
    return Found(**value | {"interval": tuple(interval) if isinstance(interval, list) else None})  # type: ignore[arg-type]
