"""A vocabulary with its settings on disk: `settings.json`, `vocabulary.json`, `merges.json`."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from paribus.errors import DataError, ParibusError
from paribus.tokenization.settings import Settings
from paribus.tokenization.vocabulary.vocabulary import ENTRY_KINDS, SPECIAL, Columns, Vocabulary

FORMAT = 2
SETTINGS, VOCABULARY, MERGES = "settings.json", "vocabulary.json", "merges.json"
FIELDS = ["bytes", "id", "kind", "frequency", "left", "right", "continuation", "score"]
"""A token is a row of these: its bytes in hexadecimal, -1 for what it has not (id, left, right)."""


def write(vocabulary: Vocabulary, settings: Settings, directory: Path) -> None:
    """Write the files into a directory that is there."""
    described = {name: getattr(settings, name) for name in sorted(Settings.__dataclass_fields__)}
    described |= {"format": FORMAT, "special_tokens": list(settings.special_tokens), "vocab_size": vocabulary.size}
    (directory / SETTINGS).write_text(json.dumps(described, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    _write_lines(directory / VOCABULARY, [json.dumps(FIELDS, separators=(",", ":")), *_rows(vocabulary.columns)])
    _write_lines(directory / MERGES, [f"[{left},{right},{result}]" for left, right, result in vocabulary.merges])


def read(directory: Path) -> tuple[Vocabulary, Settings]:
    """What `write` wrote; DataError names the file and what is wrong with it."""
    if not directory.is_dir():
        raise DataError(f"{directory}: no tokenizer directory; one is written by Tokenizer.save")
    settings, size = _settings(directory / SETTINGS)
    rows, merges = read_tokenizer_json(directory / VOCABULARY), read_tokenizer_json(directory / MERGES)
    try:
        vocabulary = Vocabulary(_columns(rows), _integers(merges, 3), settings.unit)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise DataError(f"{directory / VOCABULARY}: malformed ({type(error).__name__}: {error})") from error
    except ParibusError as error:
        raise DataError(f"{directory}: {error}") from error
    columns = vocabulary.columns
    special = {columns.spellings[rank].decode("utf-8", "replace") for rank in np.flatnonzero(columns.kinds == SPECIAL)}
    if vocabulary.size != size or special != set(settings.special_tokens):
        raise DataError(
            f"{directory}: {SETTINGS} says {size} tokens, {VOCABULARY} has {vocabulary.size} or other specials"
        )
    return vocabulary, settings


def _rows(columns: Columns) -> list[str]:
    cells = zip(
        columns.spellings,
        columns.ids.tolist(),
        columns.kinds.tolist(),
        columns.frequencies.tolist(),
        columns.parents.tolist(),
        columns.continuations.astype(int).tolist(),
        columns.scores.tolist(),
        strict=True,
    )
    return [
        f'["{token.hex()}",{identity},"{ENTRY_KINDS[kind]}",{frequency},{left},{right},{continuation},{score!r}]'
        for token, identity, kind, frequency, (left, right), continuation, score in cells
    ]


def _columns(rows: Any) -> Columns:
    if not isinstance(rows, list) or rows[:1] != [FIELDS]:
        raise DataError(f"{VOCABULARY} does not begin with the row {FIELDS}")
    wrong = next((number for number, row in enumerate(rows) if len(row) != len(FIELDS)), None)
    if wrong is not None:
        raise DataError(f"{VOCABULARY}: row {wrong} has {len(rows[wrong])} cells, not {len(FIELDS)}")
    spelled, ids, kinds, frequencies, left, right, continuations, scores = (
        zip(*rows[1:], strict=True) if len(rows) > 1 else ((),) * len(FIELDS)
    )
    codes = {kind: code for code, kind in enumerate(ENTRY_KINDS)}
    return Columns(
        ids=_integers(ids),
        spellings=tuple(map(bytes.fromhex, spelled)),
        frequencies=np.array(frequencies, dtype=np.int64),
        parents=np.column_stack([_integers(left), _integers(right)]),
        kinds=np.array([codes[kind] for kind in kinds], dtype=np.uint8),
        continuations=np.array(continuations, dtype=np.bool_),
        scores=np.array(scores, dtype=np.float64),
    )


def _integers(values: Any, width: int | None = None) -> Any:
    array = np.array(values, dtype=np.int32)
    return array if width is None else array.reshape(-1, width)


def _settings(path: Path) -> tuple[Settings, int]:
    described = read_tokenizer_json(path)
    if not isinstance(described, dict) or described.get("format") != FORMAT:
        raise DataError(f"{path}: not a paribus tokenizer of format {FORMAT}")
    size = described.pop("vocab_size", None)
    del described["format"]
    try:
        return Settings(**described | {"special_tokens": tuple(described.get("special_tokens", ()))}), size
    except (TypeError, ParibusError) as error:
        raise DataError(f"{path}: {error}") from error


def _write_lines(path: Path, rows: list[str]) -> None:
    lines = ",\n".join(rows)
    path.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


def read_tokenizer_json(path: Path) -> Any:
    """The JSON of one file of a tokenizer; DataError where it is missing or none."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise DataError(f"{path}: missing; a tokenizer has {SETTINGS}, {VOCABULARY} and {MERGES}") from error
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: unreadable JSON ({error})") from error
