"""Compositions of Hydra that the commands of a test process share: reading and merging groups takes it a while."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import hydra
from hydra.core.config_loader import ConfigLoader
from hydra.core.global_hydra import GlobalHydra
from omegaconf import DictConfig

from paribus.config.arguments import configuration_directory

COMPOSING = (
    "config/test_experiment_files.py",
    "config/test_compose.py",
    "reporting/test_paper.py",
    "test_documentation.py",
    "test_generated_pages.py",
)
"""Test files that compose most, and much of it the same."""
hydra_compose = hydra.compose
_readers: list[ConfigLoader] = []
"""The loader of the first command, which has read the files that the others need."""


def compose_once(name: str, overrides: Sequence[str], **options: Any) -> DictConfig:
    """Like `hydra.compose`, but cached where only paribus' own groups, which no test changes, are used.

    `paribus.config.compose` changes nothing of it, since the jobs of a sweep share it as well.
    """
    loader = GlobalHydra.instance().config_loader()
    places = {element.path for element in loader.get_search_path().get_path()}
    own = {"pkg://hydra.conf", "structured://", str(configuration_directory())}
    elsewhere = any(text.lstrip("+~").startswith("hydra") for text in overrides)
    if elsewhere or not places <= own:
        return hydra_compose(name, overrides=list(overrides), **options)
    return _composed(name, tuple(overrides), tuple(sorted(options.items())))


@cache
def _composed(name: str, overrides: tuple[str, ...], options: tuple[tuple[str, Any], ...]) -> DictConfig:
    begun = GlobalHydra.instance().hydra
    assert begun is not None
    if not _readers:
        _readers.append(begun.config_loader)
    begun.config_loader = _readers[0]  # type: ignore[assignment]
    return hydra_compose(name, overrides=list(overrides), **dict(options))
