"""What embeddings depend on that is not in the configuration: the files of an encoder."""

from collections.abc import Iterable
from pathlib import Path

from paribus.config.groups.embedding import EmbedderConfig, MiniLMEmbedder, StaticEmbedder, TransformersEmbedder
from paribus.ordering.embed.directory import embedder_directory, local_directory, minilm_directory, require_revision
from paribus.ordering.embed.layout import PoolingChoice, module_files, read_layout
from paribus.stage.context import JSON
from paribus.store.file_digests import FileDigests

SUFFIXES = (".json", ".safetensors", ".bin", ".txt", ".model")
"""Files that `transformers` may read: configuration, weights, tokenizer."""


def fingerprint(config: EmbedderConfig, digests: FileDigests) -> dict[str, JSON]:
    """SHA-256 of each file of the embedder's directory by name, or name and commit on the hub; empty without files.

    Raises as `embedder_directory` and `read_layout` do.
    """
    match config:
        case TransformersEmbedder():
            directory = local_directory(config)
            if directory is None:
                return {"hub": config.path, "revision": require_revision(config)}
            return _encoder_files(directory, config.pooling, digests)
        case MiniLMEmbedder():
            return _encoder_files(minilm_directory(), "auto", digests)
        case StaticEmbedder():
            directory = embedder_directory(config)
            return _digests(directory, [directory], digests)
        case _:
            return {}


def _encoder_files(directory: Path, pooling: PoolingChoice, digests: FileDigests) -> dict[str, JSON]:
    read_layout(directory, pooling)
    return _digests(directory, module_files(directory), digests)


def _digests(root: Path, directories: Iterable[Path], digests: FileDigests) -> dict[str, JSON]:
    found = {path for directory in directories if directory.is_dir() for path in directory.iterdir()}
    files = sorted(path for path in found if path.suffix in SUFFIXES and path.is_file())
    return {path.relative_to(root).as_posix(): digests.of(path) for path in files}
