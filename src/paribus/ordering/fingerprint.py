"""What an order depends on that is not in the configuration: the files of a local encoder."""

from pathlib import Path

from paribus.config.groups.ordering import InContextOrdering, OrderingConfig, TransformersEmbedder
from paribus.corpus.fingerprint import file_digest
from paribus.errors import DataError
from paribus.pipeline.context import JSON

SUFFIXES = (".json", ".safetensors", ".bin", ".txt", ".model")
"""Files that `transformers` may read: configuration, weights, tokenizer."""


def fingerprint(config: OrderingConfig, cache: Path) -> dict[str, JSON]:
    """SHA-256 of each file of the encoder's directory by name; empty where there is no encoder.

    `cache` is a directory that remembers digests of files that have not changed. Raises DataError as
    `encoder_directory` does.
    """
    if not isinstance(config, InContextOrdering) or not isinstance(config.embedder, TransformersEmbedder):
        return {}
    directory = encoder_directory(config.embedder)
    files = sorted(path for path in directory.iterdir() if path.suffix in SUFFIXES and path.is_file())
    return {path.name: file_digest(path, cache) for path in files}


def encoder_directory(embedder: TransformersEmbedder) -> Path:
    """The encoder's directory. Raises DataError if it is not there or has no config.json."""
    directory = Path(embedder.path).expanduser()
    if not directory.is_dir():
        raise DataError(
            f"`ordering.embedder.path` = {embedder.path} is not a directory: it must be a local `transformers` encoder "
            "(config.json, weights, tokenizer); names on a hub are not downloaded"
        )
    if not (directory / "config.json").is_file():
        raise DataError(
            f"`ordering.embedder.path` = {embedder.path} has no config.json: it is not an encoder's directory"
        )
    return directory
