"""How an encoder's directory is laid out: plain `transformers`, or `sentence-transformers` with its modules.

A sentence-transformers directory lists its modules in modules.json. An encoder, a pooling by mean or first token, and a
normalization are what paribus computes; whatever else a directory asks for is refused, not left out.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from paribus.errors import ConfigurationError, DataError

Pooling = Literal["mean", "cls"]
PoolingChoice = Literal["auto", "mean", "cls"]
FLAGS: dict[str, Pooling] = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "cls"}


@dataclass(frozen=True)
class EncoderLayout:
    """Where weights and tokenizer are, and what is done with the states."""

    directory: Path
    """With config.json, weights and tokenizer.json."""
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
    _refuse_others(path, modules)
    _refuse_prompt(path)
    directory = _with_config(path / modules[0]["path"])
    settings = _optional_json(directory / "sentence_bert_config.json") or {}
    stored = _stored_pooling(path, modules) if pooling == "auto" else pooling
    return EncoderLayout(directory, stored, bool(settings.get("do_lower_case")))


def module_files(path: Path) -> list[Path]:
    """Directories of an encoder whose files decide its vectors: its own and those of its modules."""
    return [path, *(path / module["path"] for module in _modules(path) if module["path"])]


def _modules(path: Path) -> list[dict[str, str]]:
    """Modules in order, each with the last part of its type and its directory; none for plain `transformers`."""
    content = _optional_json(path / "modules.json") or []
    try:
        ordered = sorted(content, key=lambda module: module["idx"])
        return [{"type": module["type"].rsplit(".", 1)[-1], "path": module["path"]} for module in ordered]
    except (KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{path / 'modules.json'}: no list of modules with idx, type and path") from error


def _refuse_others(path: Path, modules: list[dict[str, str]]) -> None:
    kinds = [module["type"] for module in modules]
    if kinds not in (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"]):
        raise ConfigurationError(
            f"`embedder.path` = {path}: modules.json lists {', '.join(kinds)}; paribus computes Transformer, Pooling "
            "and Normalize, in that order"
        )


def _refuse_prompt(path: Path) -> None:
    settings = _optional_json(path / "config_sentence_transformers.json") or {}
    if settings.get("default_prompt_name"):
        raise ConfigurationError(
            f"`embedder.path` = {path}: config_sentence_transformers.json puts the prompt "
            f"{settings['default_prompt_name']!r} before every text, which paribus does not do; "
            "choose an encoder without a default prompt"
        )


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
        raise DataError(f"{path}: not JSON ({error})") from error
