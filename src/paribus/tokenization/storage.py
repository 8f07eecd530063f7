"""A tokenizer on disk: `settings.json`, `vocabulary.json` and `merges.json`, the same bytes for the same tokenizer."""

import json
from pathlib import Path
from typing import Any

from paribus.errors import DataError, ParibusError
from paribus.tokenization.settings import Settings
from paribus.tokenization.vocabulary import Entry, Vocabulary

FORMAT = 1
SETTINGS, VOCABULARY, MERGES = "settings.json", "vocabulary.json", "merges.json"


def save(vocabulary: Vocabulary, settings: Settings, path: Path) -> None:
    """Write the three files into directory `path`, which is made if need be."""
    path.mkdir(parents=True, exist_ok=True)
    described = {name: getattr(settings, name) for name in sorted(Settings.__dataclass_fields__)}
    described |= {"format": FORMAT, "special_tokens": list(settings.special_tokens), "vocab_size": vocabulary.size}
    (path / SETTINGS).write_text(json.dumps(described, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    _write_rows(path / VOCABULARY, [_row(entry) for entry in vocabulary])
    _write_rows(path / MERGES, [list(merge) for merge in vocabulary.merges])


def load(path: Path) -> tuple[Vocabulary, Settings]:
    """Read what `save` wrote; DataError names the file and what is wrong with it."""
    if not path.is_dir():
        raise DataError(f"{path}: no tokenizer directory; one is written by Tokenizer.save")
    settings, size = _settings(path / SETTINGS)
    rows, merges = _read(path / VOCABULARY), _read(path / MERGES)
    try:
        entries = [_entry(rank, row) for rank, row in enumerate(rows)]
        vocabulary = Vocabulary(entries, [_triple(merge) for merge in merges], settings.unit)
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"{path / VOCABULARY}: malformed ({type(error).__name__}: {error})") from error
    except ParibusError as error:
        raise DataError(f"{path}: {error}") from error
    special = {entry.bytes.decode("utf-8", "replace") for entry in vocabulary if entry.kind == "special"}
    if vocabulary.size != size or special != set(settings.special_tokens):
        raise DataError(f"{path}: {SETTINGS} says {size} tokens, {VOCABULARY} has {vocabulary.size} or other specials")
    return vocabulary, settings


def _row(entry: Entry) -> dict[str, Any]:
    parents = None if entry.parents is None else list(entry.parents)
    return {
        "bytes": entry.bytes.hex(),
        "id": entry.id,
        "kind": entry.kind,
        "frequency": entry.frequency,
        "parents": parents,
    }


def _entry(rank: int, row: dict[str, Any]) -> Entry:
    identity, parents = row["id"], row["parents"]
    return Entry(
        rank=rank,
        id=None if identity is None else int(identity),
        bytes=bytes.fromhex(row["bytes"]),
        frequency=int(row["frequency"]),
        parents=None if parents is None else (int(parents[0]), int(parents[1])),
        scaffold=identity is None,
        kind=row["kind"],
    )


def _triple(merge: Any) -> tuple[int, int, int]:
    left, right, result = map(int, merge)
    return left, right, result


def _settings(path: Path) -> tuple[Settings, int]:
    described = _read(path)
    if not isinstance(described, dict) or described.get("format") != FORMAT:
        raise DataError(f"{path}: not a paribus tokenizer of format {FORMAT}")
    size = described.pop("vocab_size", None)
    del described["format"]
    try:
        return Settings(**described | {"special_tokens": tuple(described.get("special_tokens", ()))}), size
    except (TypeError, ParibusError) as error:
        raise DataError(f"{path}: {error}") from error


def _write_rows(path: Path, rows: list[Any]) -> None:
    lines = ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows)
    path.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise DataError(f"{path}: missing; a tokenizer has {SETTINGS}, {VOCABULARY} and {MERGES}") from error
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: unreadable JSON ({error})") from error
