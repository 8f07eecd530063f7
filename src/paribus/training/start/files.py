"""The files of a checkpoint: weights in safetensors, `config.json`, tokenizer. Their digests are its identity."""

import json
from pathlib import Path
from typing import Any

from paribus.config.groups.start import CheckpointStart, StartConfig
from paribus.corpus.fingerprint import file_digest
from paribus.errors import DataError
from paribus.pipeline.context import JSON
from paribus.training.start.locate import CONFIG, checkpoint_directory

WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"


def fingerprint(config: StartConfig, cache: Path) -> dict[str, JSON]:
    """SHA-256 of every file of the checkpoint by name; nothing for random weights.

    `cache` is a directory that remembers digests of files that have not changed. DataError where files are missing.
    """
    if not isinstance(config, CheckpointStart):
        return {}
    from paribus.tokenization import existing

    directory = checkpoint_directory(config)
    digests: dict[str, JSON] = {
        path.name: file_digest(path, cache) for path in (directory / CONFIG, *weight_files(directory))
    }
    return digests | {"tokenizer": existing.fingerprint(directory, cache)}


def read_config(directory: Path) -> dict[str, Any]:
    """`config.json` of a checkpoint."""
    return _read(directory / CONFIG)


def weight_files(directory: Path) -> list[Path]:
    """The safetensors files, sharded or not. DataError where there are none or one is missing."""
    if (directory / WEIGHTS).is_file():
        return [directory / WEIGHTS]
    if not (directory / INDEX).is_file():
        raise DataError(
            f"{directory}: no {WEIGHTS}; weights of other formats are not read, so save them as safetensors"
        )
    shards = _read(directory / INDEX).get("weight_map", {})
    files = [directory / name for name in sorted(set(shards.values()))]
    missing = [path.name for path in files if not path.is_file()]
    if missing or not files:
        raise DataError(f"{directory / INDEX} names files that are not there: {', '.join(missing) or 'none at all'}")
    return [*files, directory / INDEX]


def _read(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: missing or no JSON ({error})") from error
    if not isinstance(content, dict):
        raise DataError(f"{path}: not a JSON object")
    return content
