"""Names of sweeps and runs: what each stands for, and what an unknown or ambiguous one is told."""

import json
import os
from pathlib import Path

import pytest

from paribus.checks import compose_command
from paribus.config.arguments import parse
from paribus.errors import ConfigurationError
from paribus.pipeline.prepare import prepare_runs
from paribus.pipeline.records import SWEEP_RECORD, find, find_run_id, is_reference, last_sweep, read_sweeps
from support.recorded_sweeps import OVERRIDES, identifiers, record, record_command

ARMS = ("-m", "tokenizer=bpe,scaffold_bpe", "encoder=merge_rank,longest_first", "seed=0,1")


@pytest.fixture(scope="module", name="directory")
def _directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("sweeps")
    (directory / "texts.txt").write_text("some text", encoding="utf-8")
    return directory


@pytest.fixture(scope="module", name="sweep")
def _sweep(directory: Path) -> tuple[Path, str, list[str]]:
    """Root, identifier and runs of a sweep of four arms with two seeds each."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(directory)
        identifier, runs = record(directory / "root", *ARMS)
    return directory / "root", identifier, identifiers(runs)


def test_identifiers_their_beginnings_names_and_last_mean_sweeps_and_runs(sweep: tuple[Path, str, list[str]]) -> None:
    root, identifier, runs = sweep
    for name in (identifier, identifier[:9], "last", "tokenizer-encoder"):
        assert (find(name, root).sweep.id, find(name, root).run) == (identifier, None)
    for run in runs:
        assert [one.run_id for one in find(run[:12], root).runs] == [run]
        assert find_run_id(run[:12], root) == run


@pytest.mark.parametrize("place", [None, 3])
def test_the_command_of_what_is_named_makes_the_same_runs(
    sweep: tuple[Path, str, list[str]], directory: Path, monkeypatch: pytest.MonkeyPatch, place: int | None
) -> None:
    monkeypatch.chdir(directory)
    root, _, runs = sweep
    found = find("last" if place is None else runs[place], root)
    made = prepare_runs(compose_command(found.command), tolerate_missing=True)
    assert identifiers(made) == [run.run_id for run in found.runs] == (runs if place is None else [runs[place]])


def test_what_names_nothing_or_several_is_refused_with_what_there_is(
    sweep: tuple[Path, str, list[str]], tmp_path: Path
) -> None:
    root, identifier, runs = sweep
    with pytest.raises(
        ConfigurationError, match=rf"no run or sweep 'nothing' below .*; there are\n  {identifier}  sweep"
    ):
        find("nothing", root)
    with pytest.raises(ConfigurationError, match="'' may be several things; name one:"):
        find("", root)
    with pytest.raises(ConfigurationError, match="is several runs; name one:") as raised:
        find_run_id(identifier, root)
    assert [line.split()[0] for line in str(raised.value).splitlines()[1:]] == runs
    with pytest.raises(ConfigurationError, match=r"no run 'last' below .*: nothing has run there"):
        find("last", tmp_path)


def test_the_same_run_in_two_sweeps_is_one_run_and_last_is_the_command_given_last(
    directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(directory)
    first, runs = record(tmp_path, "-m", "tokenizer=bpe,scaffold_bpe")
    second, _ = record(tmp_path, "tokenizer=bpe")
    last = last_sweep(tmp_path)
    assert last is not None
    assert last.sweep.id == second != first
    assert find(runs[0].run_id[:8], tmp_path).runs[0].run_id == runs[0].run_id
    record(tmp_path, "-m", "tokenizer=bpe,scaffold_bpe")
    assert [sweep.id for sweep in read_sweeps(tmp_path)] == [first, second]


def test_a_torn_record_of_a_sweep_hides_that_sweep_alone(
    directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(directory)
    kept, _ = record(tmp_path, "seed=1")
    torn, _ = record(tmp_path, "seed=2")
    (tmp_path / "sweeps" / torn / SWEEP_RECORD).write_text('{"id": 1', encoding="utf-8")
    assert [sweep.id for sweep in read_sweeps(tmp_path)] == [kept]


def test_no_password_of_a_tracker_is_written_down(
    directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(directory)
    uri = "tracking.uri='http://me:secret-word@localhost:5000'"
    words = [text for text in OVERRIDES if text != "tracking=none"]
    words += [f"root={tmp_path}", "tracking=mlflow", uri, "hydra.launcher.a=secret-word"]
    identifier, _ = record_command(parse([word for word in words if "hydra" not in word]))
    text = (tmp_path / "sweeps" / identifier / SWEEP_RECORD).read_text(encoding="utf-8")
    assert "secret-word" not in text
    assert "tracking.uri='http://localhost:5000'" in json.loads(text)["overrides"]


@pytest.mark.parametrize("word", ["last", "0123", "tokenizer-encoder"])
def test_names_are_told_from_overrides(word: str) -> None:
    assert is_reference(word)


@pytest.mark.parametrize(
    "word",
    [
        "seed=1",
        "+a.b=c d",
        "~tokenizer",
        "corpus.paths=[a b]",
        "--why",
        "-m",
    ],
)
def test_overrides_and_flags_are_no_names(word: str) -> None:
    assert not is_reference(word)


def test_in_the_root_of_a_rerun_which_has_no_sweep_runs_are_named_by_their_start_and_last(tmp_path: Path) -> None:
    for age, run_id in enumerate(("0123456789abcdef", "0124456789abcdef")):
        (tmp_path / "runs" / run_id).mkdir(parents=True)
        written = tmp_path / "runs" / run_id / "run.json"
        written.write_text("{}", encoding="utf-8")
        os.utime(written, (1_000_000 + age, 1_000_000 + age))
    assert find_run_id("0123", tmp_path) == "0123456789abcdef"
    assert find_run_id("last", tmp_path) == find_run_id("0124456789abcdef", tmp_path) == "0124456789abcdef"
    for text in ("012", "f"):
        with pytest.raises(ConfigurationError):
            find_run_id(text, tmp_path)
