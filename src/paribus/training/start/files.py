"""The files of a checkpoint: weights in safetensors, `config.json`, tokenizer. Their digests are its identity."""

from pathlib import Path
from typing import Any

from paribus.config.groups.model import CheckpointStart, StartConfig
from paribus.modeling.architecture import INDEX, weight_files
from paribus.stage import JSON
from paribus.store.files import FileDigests, read_object
from paribus.training.start.locate import CONFIG, checkpoint_directory
from paribus.training.start.resumed import state_fingerprint


def fingerprint(config: StartConfig, digests: FileDigests) -> dict[str, JSON]:
    """SHA-256 of every file of the checkpoint, and of the state that is resumed, by name; nothing for random weights.

    DataError where files are missing.
    """
    if not isinstance(config, CheckpointStart):
        return {}
    from paribus.tokenization import existing

    directory = checkpoint_directory(config)
    index = [directory / INDEX] if (directory / INDEX).is_file() else []
    files = (directory / CONFIG, *weight_files(directory), *index)
    found: dict[str, JSON] = {path.name: digests.of(path) for path in files}
    return found | {"tokenizer": existing.fingerprint(directory, digests)} | state_fingerprint(config, digests)


def read_config(directory: Path) -> dict[str, Any]:
    """`config.json` of a checkpoint."""
    return read_object(directory / CONFIG)
