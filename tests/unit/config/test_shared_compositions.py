"""The compositions that the tests of a process share."""

from dataclasses import replace
from pathlib import Path

import pytest

from paribus.checks.command import compose_command
from paribus.config.arguments import parse
from support import compositions


def test_the_same_choices_are_composed_once_and_every_command_has_its_own_values(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    composed: list[list[str]] = []

    def compose(name: str, overrides: list[str], **options: bool) -> object:
        composed.append(overrides)
        return hydra_compose(name, overrides=overrides, **options)

    hydra_compose = compositions.hydra_compose
    compositions._composed.cache_clear()
    monkeypatch.setattr(compositions, "hydra_compose", compose)
    first, second = (
        compose_command(parse(["scale=tiny", "arm=bpe", f"seed={seed}"])).jobs[0].config for seed in (1, 2)
    )
    assert composed == [["arm=bpe", "scale=tiny"]]
    assert (first.seed, second.seed) == (1, 2)
    assert replace(first, seed=2, seeds=second.seeds) == second


def test_files_of_a_test_s_own_are_read_by_every_command(tmp_path: Path) -> None:
    (tmp_path / "experiment").mkdir()
    for words in ("one", "two"):
        text = f"# @package _global_\nexperiment:\n  name: own\n  title: {words}\n"
        (tmp_path / "experiment" / "own.yaml").write_text(text, encoding="utf-8")
        (job,) = compose_command(parse(["--config-dir", str(tmp_path), "experiment=own", "scale=tiny"])).jobs
        assert job.config.experiment is not None and job.config.experiment.title == words
