"""The files of a checkpoint: weights in safetensors, `config.json`, tokenizer. Their digests are its identity."""

from pathlib import Path
from typing import Any

from paribus.config.groups.start import CheckpointStart, StartConfig
from paribus.errors import DataError
from paribus.stage.context import JSON
from paribus.store.file_digests import FileDigests
from paribus.store.json_file import read_object
from paribus.training.start.locate import CONFIG, checkpoint_directory

WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"


def fingerprint(config: StartConfig, digests: FileDigests) -> dict[str, JSON]:
    """SHA-256 of every file of the checkpoint by name; nothing for random weights.

    DataError where files are missing.
    """
    if not isinstance(config, CheckpointStart):
        return {}
    from paribus.tokenization.interchange import existing

    directory = checkpoint_directory(config)
    found: dict[str, JSON] = {path.name: digests.of(path) for path in (directory / CONFIG, *weight_files(directory))}
    return found | {"tokenizer": existing.fingerprint(directory, digests)}


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
