"""The files of a checkpoint: weights in safetensors, `config.json`, tokenizer. Their digests are its identity."""

from pathlib import Path
from typing import Any

from paribus.config.groups.start import CheckpointStart, StartConfig
from paribus.corpus.fingerprint import file_digest
from paribus.errors import DataError
from paribus.pipeline.context import JSON
from paribus.store.json_file import read_object
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
    return read_object(directory / CONFIG)


def weight_files(directory: Path) -> list[Path]:
    """The safetensors files, sharded or not. DataError where there are none or one is missing."""
    if (directory / WEIGHTS).is_file():
        return [directory / WEIGHTS]
    if not (directory / INDEX).is_file():
        raise DataError(
            f"{directory}: no {WEIGHTS}; weights of other formats are not read, so save them as safetensors"
        )
    shards = read_object(directory / INDEX).get("weight_map", {})
    files = [directory / name for name in sorted(set(shards.values()))]
    missing = [path.name for path in files if not path.is_file()]
    if missing or not files:
        raise DataError(f"{directory / INDEX} names files that are not there: {', '.join(missing) or 'none at all'}")
    return [*files, directory / INDEX]
