"""What was found before, for a page of runs that code of several versions made: each finds the runs of its own."""

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from claims.claim import Claim, Found
from paribus.store import atomic
from paribus.store.json_file import read_object


def remembered(found: Iterable[tuple[Claim, Found | None]], file: Path | None) -> list[tuple[Claim, Found | None]]:
    """`found`, and what `file` has of claims without runs; the file then has all of it. None remembers nothing."""
    if file is None:
        return list(found)
    before = read_object(file) if file.is_file() else {}
    both = [(claim, now or _read(before.get(_name(claim)))) for claim, now in found]
    kept = {_name(claim): asdict(one) for claim, one in both if one is not None}
    atomic.write_json(file, before | kept)
    return both


def _name(claim: Claim) -> str:
    row = ", ".join(f"{factor}={label}" for factor, label in sorted(claim.row.items()))
    return f"{claim.paper}: {claim.where}: {claim.says}: {claim.number} in {claim.experiment}, {row}"


def _read(value: dict[str, object] | None) -> Found | None:
    if value is None:
        return None
    interval = value["interval"]
    return Found(**value | {"interval": tuple(interval) if isinstance(interval, list) else None})  # type: ignore[arg-type]
