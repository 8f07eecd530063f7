"""Files of groups and experiments that say nothing: what they would choose, nobody has chosen."""

from pathlib import Path

import pytest

from paribus.checks.command import compose_command
from paribus.config.arguments import parse
from paribus.errors import ConfigurationError

AN_EXPERIMENT = "an experiment gives values, or arms under hydra.sweeper.params, as demo.yaml does"
A_GROUP = "a file of a group gives the group's fields, such as kind"


def own(directory: Path, name: str, text: str) -> Path:
    path = directory / f"{name}.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def refusal(directory: Path, *words: str) -> str:
    with pytest.raises(ConfigurationError) as caught:
        compose_command(parse(["--config-dir", str(directory), "scale=tiny", *words]))
    return str(caught.value)


@pytest.mark.parametrize(
    "text",
    ["", "# @package _global_\n# What the table is to say.\n", "null\n", "{}\n", "# @package _global_\ndefaults: []\n"],
)
@pytest.mark.parametrize("flags", [(), ("-m",)])
def test_an_experiment_that_says_nothing_is_refused(tmp_path: Path, text: str, flags: tuple[str, ...]) -> None:
    path = own(tmp_path, "experiment/mine", text)
    assert f"{path} says nothing; {AN_EXPERIMENT}" in refusal(tmp_path, *flags, "experiment=mine")


def test_a_file_that_another_takes_its_values_from_is_refused_too(tmp_path: Path) -> None:
    path = own(tmp_path, "experiment/_common", "# later\n")
    own(tmp_path, "experiment/mine", "# @package _global_\ndefaults:\n  - /experiment/_common\n")
    assert f"{path} says nothing; {AN_EXPERIMENT}" in refusal(tmp_path, "experiment=mine")


@pytest.mark.parametrize("group", ["plan", "neighbours", "tokenizer"])
def test_an_option_that_says_nothing_is_refused(tmp_path: Path, group: str) -> None:
    path = own(tmp_path, f"{group}/mine", "# nothing yet\n")
    assert f"{path} says nothing; {A_GROUP}" in refusal(tmp_path, f"{group}=mine")


def test_an_experiment_of_nothing_but_defaults_says_something(tmp_path: Path) -> None:
    own(tmp_path, "experiment/mine", "# @package _global_\ndefaults:\n  - override /encoder: longest_first\n")
    words = ["--config-dir", str(tmp_path), "scale=tiny", "experiment=mine"]
    (job,) = compose_command(parse(words)).jobs
    assert job.config.encoder.kind == "longest_first"
