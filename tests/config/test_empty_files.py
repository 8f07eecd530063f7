"""Files of groups and experiments that say nothing: what they would choose, nobody has chosen."""

from pathlib import Path

import pytest

from paribus.checks.command import compose_command
from paribus.config.arguments import parse
from paribus.errors import ConfigurationError


@pytest.mark.parametrize("text", ["# @package _global_\n# What the table is to say.\n", "{}\n"])
@pytest.mark.parametrize("group", ["experiment", "tokenizer"])
def test_a_file_that_says_nothing_is_refused(tmp_path: Path, group: str, text: str) -> None:
    path = tmp_path / group / "mine.yaml"
    path.parent.mkdir()
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationError, match=f"{path} says nothing; an? (experiment|file of a group) gives"):
        compose_command(parse(["--config-dir", str(tmp_path), "scale=tiny", f"{group}=mine"]))


def test_an_experiment_of_nothing_but_defaults_says_something(tmp_path: Path) -> None:
    path = tmp_path / "experiment" / "mine.yaml"
    path.parent.mkdir()
    path.write_text("# @package _global_\ndefaults:\n  - override /encoder: longest_first\n", encoding="utf-8")
    (job,) = compose_command(parse(["--config-dir", str(tmp_path), "scale=tiny", "experiment=mine"])).jobs
    assert job.config.encoder.kind == "longest_first"
