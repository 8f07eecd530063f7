"""What values of a configuration may ask for, and that composing changes nothing for others in the process."""

import pytest
from omegaconf import OmegaConf

from paribus.checks.command import compose_command
from paribus.config.arguments import parse
from paribus.errors import ConfigurationError


@pytest.mark.parametrize(
    "value", ["${oc.env:HOME}", "${oc.select:seed,${oc.env:HOME}}", "${oc.decode:'[1]'}", "${oc.create:{a:1}}"]
)
def test_what_could_bring_in_the_environment_is_refused_by_its_path(value: str) -> None:
    with pytest.raises(ConfigurationError, match=r"tracking\.experiment: "):
        compose_command(parse(["scale=tiny", f'tracking.experiment="{value}"']))


def test_a_value_may_refer_to_another() -> None:
    job = compose_command(parse(["scale=tiny", "seed=7", "tracking.experiment=of_${oc.select:seed}"])).jobs[0]
    assert job.config.tracking.experiment == "of_7"


def test_a_value_of_another_choice_is_refused_with_that_choice() -> None:
    told = "corpus.sample: Interpolation key 'budget.text' not found: only budget=equal_text has it; give a size such "
    with pytest.raises(ConfigurationError, match=told):
        compose_command(parse(["scale=tiny", "corpus.sample=${budget.text}"]))


def test_composing_leaves_the_resolvers_of_the_process_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    command = parse(["scale=tiny"])
    compose_command(command)

    def registered(name: str, *arguments: object, **options: object) -> None:
        assert name in ("hydra", "now", "python_version"), f"{name} is another one now, for all threads"

    monkeypatch.setattr(OmegaConf, "register_new_resolver", registered)
    compose_command(command)
