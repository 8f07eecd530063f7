"""The files that a model directory is known by."""

import hashlib
from pathlib import Path

from paribus.errors import DataError

_SUFFIXES = frozenset((".json", ".safetensors", ".txt", ".model"))


def model_digest(directory: Path) -> str:
    """SHA-256 over names and contents of the files that make the model and its tokenizer: configuration, weights,
    vocabulary. DataError where there is no model."""
    if not (directory / "config.json").is_file():
        raise DataError(f"{directory}: no model directory; a Hugging Face directory has a config.json")
    files = {path.relative_to(directory).as_posix(): path for path in directory.rglob("*") if _counts(path)}
    digest = hashlib.sha256()
    for name in sorted(files):
        with files[name].open("rb") as file:
            digest.update(f"{name}\0{hashlib.file_digest(file, 'sha256').hexdigest()}\n".encode())
    return digest.hexdigest()


def _counts(path: Path) -> bool:
    return path.suffix in _SUFFIXES and path.is_file()
