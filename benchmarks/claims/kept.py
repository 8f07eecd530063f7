"""Measurements that docs/findings.json keeps: code finds runs of its own version alone, and a page may have several."""

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from claims.claim import Claim, Measured, Measurement
from paribus.store import files
from paribus.store.files import read_object


def with_kept(measured: Iterable[Measured], file: Path) -> list[Measured]:
    """`measured`, with measurements from `file` where there is none; `file` is then of these claims alone."""
    before = read_object(file) if file.is_file() else {}
    both = [(claim, now or _read(before.get(_name(claim)))) for claim, now in measured]
    files.write_json(file, {_name(claim): asdict(one) for claim, one in both if one is not None})
    return both


def _name(claim: Claim) -> str:
    """What was measured, whatever a paper says of it."""
    rows = [claim.row, claim.against] if claim.against else [claim.row]
    told = [", ".join(f"{factor}={label}" for factor, label in sorted(row.items())) for row in rows]
    return f"{claim.number} in {claim.experiment}, {' against '.join(told)}"


def _read(value: dict[str, object] | None) -> Measurement | None:
    if value is None:
        return None
    interval = value["interval"]
    return Measurement(**value | {"interval": tuple(interval) if isinstance(interval, list) else None})  # type: ignore[arg-type]
