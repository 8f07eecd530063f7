"""The loader composes what Hydra's own composes, also where lists of defaults look up what was chosen."""

from pathlib import Path

import pytest
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.utils import create_config_search_path
from hydra.errors import ConfigCompositionException
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from paribus.config.composing.loader import Loader

FILES = {
    "main.yaml": "defaults:\n  - animal: cat\n  - food: fish\n  - _self_\n  - meal: ${animal}_${food}\nseed: 1\n",
    "animal/cat.yaml": "legs: 4\n",
    "animal/duck.yaml": "defaults:\n  - /food@side: ${food}\nlegs: 2\n",
    "food/fish.yaml": "price: 3\n",
    "food/bread.yaml": "price: 1\n",
    "meal/cat_fish.yaml": "good: true\n",
    "meal/duck_bread.yaml": "good: false\n",
    "several.yaml": "defaults:\n  - animal: cat\n  - optional ${animal}: [tail, fur]\n  - _self_\nseed: 1\n",
    "torn.yaml": "defaults:\n  - animal: cat\n  - meal: ${animal}_${drink}\n",
}


@pytest.fixture
def loaders(tmp_path: Path) -> tuple[ConfigLoaderImpl, Loader]:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    path = create_config_search_path(str(tmp_path))
    return ConfigLoaderImpl(path), Loader(path)


def as_written(config: DictConfig) -> object:
    """Without asking for the time, which some of Hydra's own values do when they are compared."""
    return OmegaConf.to_container(config, resolve=False)


@pytest.mark.parametrize("overrides", [[], ["animal=duck", "food=bread"], ["animal=duck", "food=bread", "seed=2"]])
def test_choices_in_lists_of_defaults_are_looked_up(
    loaders: tuple[ConfigLoaderImpl, Loader], overrides: list[str]
) -> None:
    hydras, ours = (loader.load_configuration("main", overrides, RunMode.RUN) for loader in loaders)
    assert as_written(ours) == as_written(hydras)
    assert ours.meal.good == (not overrides)


def test_choices_in_the_name_of_a_group_of_optional_files_are_looked_up(
    loaders: tuple[ConfigLoaderImpl, Loader],
) -> None:
    hydras, ours = (loader.load_configuration("several", [], RunMode.RUN) for loader in loaders)
    assert as_written(ours) == as_written(hydras)


def test_a_choice_that_is_not_there_is_told_as_hydra_tells_it(loaders: tuple[ConfigLoaderImpl, Loader]) -> None:
    told = []
    for loader in loaders:
        with pytest.raises(ConfigCompositionException) as raised:
            loader.load_configuration("torn", [], RunMode.RUN)
        told.append(str(raised.value))
    assert told[0] == told[1] and "drink" in told[0]
