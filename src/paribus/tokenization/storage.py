"""A tokenizer on disk, the same bytes for the same tokenizer.

`settings.json`, `vocabulary.json`, `merges.json`; and `pretokenizer.json` where the pre-tokenizer was made from data.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

from paribus.errors import DataError, ParibusError, is_full_disk
from paribus.tokenization.pretokenization import Cutter, cutter_from_state
from paribus.tokenization.pretokenizers import PATTERNS
from paribus.tokenization.settings import Settings
from paribus.tokenization.vocabulary import ENTRY_KINDS, SPECIAL, Columns, Vocabulary

FORMAT = 2
SETTINGS, VOCABULARY, MERGES, PRETOKENIZER = "settings.json", "vocabulary.json", "merges.json", "pretokenizer.json"
FIELDS = ["bytes", "id", "kind", "frequency", "left", "right", "continuation", "score"]
"""A token is a row of these: its bytes in hexadecimal, -1 for what it has not (id, left, right)."""


def save(vocabulary: Vocabulary, settings: Settings, cutter: Cutter | None, path: Path) -> None:
    """Write the files into directory `path`, which is made if need be; DataError where none can be there."""
    _make_directory(path)
    described = {name: getattr(settings, name) for name in sorted(Settings.__dataclass_fields__)}
    described |= {"format": FORMAT, "special_tokens": list(settings.special_tokens), "vocab_size": vocabulary.size}
    (path / SETTINGS).write_text(json.dumps(described, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    _write_lines(path / VOCABULARY, [json.dumps(FIELDS, separators=(",", ":")), *_rows(vocabulary.columns)])
    _write_lines(path / MERGES, [f"[{left},{right},{result}]" for left, right, result in vocabulary.merges])
    if cutter is not None:
        state = json.dumps(cutter.to_state(), ensure_ascii=False, indent=1, sort_keys=True)
        (path / PRETOKENIZER).write_text(state + "\n", encoding="utf-8")


def _make_directory(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        if is_full_disk(error):  # no fault of the path
            raise
        why = "it is a file" if isinstance(error, FileExistsError) else error.strerror
        raise DataError(f"{path}: no directory can be made there ({why}); name another for Tokenizer.save") from error


def load(path: Path) -> tuple[Vocabulary, Settings, Cutter | None]:
    """Read what `save` wrote; DataError names the file and what is wrong with it."""
    if not path.is_dir():
        raise DataError(f"{path}: no tokenizer directory; one is written by Tokenizer.save")
    settings, size = _settings(path / SETTINGS)
    rows, merges = _read(path / VOCABULARY), _read(path / MERGES)
    try:
        vocabulary = Vocabulary(_columns(rows), _integers(merges, 3), settings.unit)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise DataError(f"{path / VOCABULARY}: malformed ({type(error).__name__}: {error})") from error
    except ParibusError as error:
        raise DataError(f"{path}: {error}") from error
    columns = vocabulary.columns
    special = {columns.spellings[rank].decode("utf-8", "replace") for rank in np.flatnonzero(columns.kinds == SPECIAL)}
    if vocabulary.size != size or special != set(settings.special_tokens):
        raise DataError(f"{path}: {SETTINGS} says {size} tokens, {VOCABULARY} has {vocabulary.size} or other specials")
    return vocabulary, settings, _cutter(settings.pretokenizer, path / PRETOKENIZER)


def _cutter(kind: str, path: Path) -> Cutter | None:
    if kind in PATTERNS:
        return None
    try:
        return cutter_from_state(kind, _read(path))
    except ParibusError as error:
        raise DataError(f"{path}: {error}") from error


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
    described = _read(path)
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


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise DataError(f"{path}: missing; a tokenizer has {SETTINGS}, {VOCABULARY} and {MERGES}") from error
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: unreadable JSON ({error})") from error
