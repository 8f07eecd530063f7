"""A tokenizer on disk, the same bytes for the same tokenizer.

Its vocabulary and settings (`vocabulary/files.py`), and `pretokenizer.json` where the pre-tokenizer was made from data.
"""

import json
from pathlib import Path

from paribus.errors import DataError, ParibusError, is_full_disk
from paribus.tokenization.pretokenize.cutter import Cutter
from paribus.tokenization.pretokenize.patterns import PATTERNS
from paribus.tokenization.pretokenize.pretokenization import cutter_from_state
from paribus.tokenization.settings import Settings
from paribus.tokenization.vocabulary import files
from paribus.tokenization.vocabulary.vocabulary import Vocabulary

PRETOKENIZER = "pretokenizer.json"


def save(vocabulary: Vocabulary, settings: Settings, cutter: Cutter | None, path: Path) -> None:
    """Write the files into directory `path`, which is made if need be; DataError where none can be there."""
    _make_directory(path)
    files.write(vocabulary, settings, path)
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


def load(path: Path, device: str = "cpu") -> tuple[Vocabulary, Settings, Cutter | None]:
    """Read what `save` wrote; `device` is where a pre-tokenizer's model computes.

    DataError names the file and what is wrong with it.
    """
    vocabulary, settings = files.read(path)
    return vocabulary, settings, _cutter(settings.pretokenizer, path / PRETOKENIZER, device)


def _cutter(kind: str, path: Path, device: str) -> Cutter | None:
    if kind in PATTERNS:
        return None
    try:
        return cutter_from_state(kind, files.read_tokenizer_json(path), device)
    except ParibusError as error:
        raise DataError(f"{path}: {error}") from error
