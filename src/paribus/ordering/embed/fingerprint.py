"""What embeddings depend on that is not in the configuration: the files of an encoder."""

from paribus.config.groups.embedding import EmbedderConfig, MiniLMEmbedder, TransformersEmbedder
from paribus.ordering.embed.directory import local_directory, minilm_directory, require_revision
from paribus.ordering.embed.layout import module_files, read_layout
from paribus.stage import JSON
from paribus.store.files import FileDigests

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
            pooling = config.pooling
        case MiniLMEmbedder():
            directory, pooling = minilm_directory(), "auto"
        case _:
            return {}
    read_layout(directory, pooling)
    found = {path for folder in module_files(directory) if folder.is_dir() for path in folder.iterdir()}
    files = sorted(path for path in found if path.suffix in SUFFIXES and path.is_file())
    return {path.relative_to(directory).as_posix(): digests.of(path) for path in files}
