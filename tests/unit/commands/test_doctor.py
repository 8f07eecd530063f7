"""What `paribus doctor` checks of a directory that is an output root, holds some, or neither."""

from pathlib import Path

import pytest

from paribus.cli import main
from paribus.store.artifact import Store


@pytest.fixture
def reruns(tmp_path: Path) -> Path:
    """A directory of two output roots with an artefact each, one with a run that made none, and what is no root."""
    directory = tmp_path / "paribus_runs/reruns"
    for name, content in {"a-1": "sound", "a-2": "sound"}.items():
        publish(Store(directory / name / "artifacts"), content)
    (directory / "a-3/runs/0123456789abcdef").mkdir(parents=True)
    (directory / "a-3/runs/0123456789abcdef/run.json").write_text("{}", encoding="utf-8")
    (directory / "notes/runs/of_another_tool").mkdir(parents=True)
    return directory


def publish(store: Store, content: str) -> None:
    held = store.claim("tokens", "f" * 64)
    assert held is not None
    with held:
        (store.empty_output(held, "tokens", "f" * 64) / "data").write_text(content, encoding="utf-8")
        store.publish(held, "tokens", "f" * 64, {"result": {}})


def doctor(root: Path) -> int:
    return main(["doctor", "scale=tiny", f"root={root}"])


def test_every_output_root_of_a_directory_is_checked_and_named(
    reruns: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert doctor(reruns) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[::2] == [f"{reruns / name}:" for name in ("a-1", "a-2", "a-3")]
    assert [line.partition(",")[0] for line in lines[1::2]] == [f"artefacts checked: {count}" for count in (1, 1, 0)]


def test_damage_in_one_of_them_is_the_exit_status(reruns: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (reruns / "a-1/artifacts/tokens" / ("f" * 64) / "data").write_text("other", encoding="utf-8")
    assert doctor(reruns) == 1
    assert "artefacts checked: 1, damaged: 1" in capsys.readouterr().out


def test_of_an_output_root_itself_nothing_else_is_said(reruns: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert doctor(reruns / "a-2") == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("artefacts checked: 1, damaged: 0")


@pytest.mark.parametrize("name", ["notes", "a-1/artifacts"])
def test_what_is_no_output_root_is_not_found_sound(name: str, reruns: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert doctor(reruns / name) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert f"root: '{reruns / name}' is no output root and holds none" in told.err
