"""Files of a user's own: what they may say, look up and refer to."""

from pathlib import Path

import pytest
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.utils import create_config_search_path
from hydra.types import RunMode
from omegaconf import OmegaConf

from paribus.checks import compose_command
from paribus.config.arguments import parse
from paribus.config.hydra_session import Loader
from paribus.errors import ConfigurationError

FILES = {
    "main.yaml": "defaults:\n  - animal: cat\n  - food: fish\n  - _self_\n  - meal: ${animal}_${food}\nseed: 1\n",
    "animal/cat.yaml": "legs: 4\n",
    "animal/duck.yaml": "defaults:\n  - /food@side: ${food}\nlegs: 2\n",
    "food/fish.yaml": "price: 3\n",
    "food/bread.yaml": "price: 1\n",
    "meal/cat_fish.yaml": "good: true\n",
    "meal/duck_bread.yaml": "good: false\n",
}


@pytest.mark.parametrize("overrides", [[], ["animal=duck", "food=bread"], ["animal=duck", "food=bread", "seed=2"]])
def test_choices_in_lists_of_defaults_are_looked_up(tmp_path: Path, overrides: list[str]) -> None:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    path = create_config_search_path(str(tmp_path))
    hydras, ours = (
        loader.load_configuration("main", overrides, RunMode.RUN) for loader in (ConfigLoaderImpl(path), Loader(path))
    )
    # Unresolved, since some of Hydra's own values are the time.
    assert OmegaConf.to_container(ours, resolve=False) == OmegaConf.to_container(hydras, resolve=False)
    assert ours.meal.good == (not overrides)


@pytest.mark.parametrize(
    "value", ["${oc.env:HOME}", "${oc.select:seed,${oc.env:HOME}}", "${oc.decode:'[1]'}", "${oc.create:{a:1}}"]
)
def test_values_that_read_the_environment_are_refused_by_their_path(value: str) -> None:
    with pytest.raises(ConfigurationError, match=r"tracking\.experiment: "):
        compose_command(parse(["scale=tiny", f'tracking.experiment="{value}"']))


def test_a_value_may_refer_to_another() -> None:
    job = compose_command(parse(["scale=tiny", "seed=7", "tracking.experiment=of_${oc.select:seed}"])).jobs[0]
    assert job.config.tracking.experiment == "of_7"
