"""Short names of sweeps, arms and runs: what each stands for, and what an unknown or ambiguous one is told."""

import json
import os
from pathlib import Path

import pytest

from paribus.checks.command import compose_command
from paribus.config.arguments import parse
from paribus.errors import ConfigurationError
from paribus.pipeline.prepare import prepare
from paribus.pipeline.record.references import find, find_run, find_run_id, is_reference, last_sweep
from paribus.pipeline.record.sweep_record import SWEEP_RECORD, read_sweeps
from support.finished_runs import finish
from support.recorded_sweeps import OVERRIDES, identifiers, record, record_command

ARMS = ("-m", "tokenizer=bpe,scaffold_bpe", "encoder=merge_rank,longest_first", "seed=0,1")

SEEDS_FIRST = """# @package _global_
hydra:
  mode: MULTIRUN
  sweeper:
    params:
      seed: 0,1
      tokenizer: bpe,scaffold_bpe
      tokenizer.vocab_size: 300,512
"""


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


def test_whole_identifiers_their_starts_and_last_name_sweeps_and_runs(sweep: tuple[Path, str, list[str]]) -> None:
    root, identifier, runs = sweep
    for name in (identifier, identifier[:9], "last", "tokenizer-encoder", "tokenizer-enc"):
        assert (find(name, root).sweep.id, find(name, root).whole) == (identifier, True)
    for run in runs:
        found = find(run[:12], root)
        assert ([one.run_id for one in found.runs], found.whole) == ([run], False)
        assert find_run(run[:12], root).run_id == run


@pytest.mark.parametrize(
    ("name", "places"),
    [
        ("bpe merge_rank", [0, 1]),
        ("bpe-merge_rank", [0, 1]),
        ("bpe, merge_rank", [0, 1]),
        ("bpe-merge_rank-standard", [0, 1]),
        ("scaffold_bpe longest", [6, 7]),
        ("scaffold_bpe longest_first seed=1", [7]),
        ("bpe-longest_first-standard-seed0", [2]),
    ],
)
def test_names_as_lists_and_reports_show_them_are_arms_and_runs(
    sweep: tuple[Path, str, list[str]], name: str, places: list[int]
) -> None:
    root, _, runs = sweep
    assert [run.run_id for run in find(name, root).runs] == [runs[place] for place in places]


@pytest.mark.parametrize(
    ("name", "places"),
    [
        ("bpe tokenizer.vocab_size=300", [0, 4]),
        ("bpe, 300", [0, 4]),
        ("scaffold_bpe 512", [3, 7]),
        ("seed=1 bpe tokenizer.vocab_size=300", [4]),
        ("seed=1 bpe 300", [4]),
        ("bpe tokenizer.vocab_size=300 seed=1", [4]),
        ("bpe, 300 seed=1", [4]),
        ("bpe-merge_rank-standard-vocab_size=512-seed1", [5]),
    ],
)
def test_names_have_their_seed_anywhere_and_their_fields_by_value(
    directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, places: list[int]
) -> None:
    monkeypatch.chdir(directory)
    experiment = tmp_path / "experiment" / "seeds_first.yaml"
    experiment.parent.mkdir()
    experiment.write_text(SEEDS_FIRST, encoding="utf-8")
    runs = identifiers(record(tmp_path, "--config-dir", str(tmp_path), "experiment=seeds_first")[1])
    assert is_reference(name)
    assert [run.run_id for run in find(name, tmp_path).runs] == [runs[place] for place in places]


@pytest.mark.parametrize(
    ("name", "places"),
    [
        ("tokenizer.vocab_size=300 seed=1", [1]),
        ("seed=1 tokenizer.vocab_size=300", [1]),
        ("seed=0 400", [2]),
        ("tokenizer.vocab_size=400 seed=0", [2]),
    ],
)
def test_names_that_begin_with_a_field_are_names(
    directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, places: list[int]
) -> None:
    monkeypatch.chdir(directory)
    runs = identifiers(record(tmp_path, "-m", "tokenizer.vocab_size=300,400", "seed=0,1")[1])
    assert is_reference(name)
    assert [run.run_id for run in find(name, tmp_path).runs] == [runs[place] for place in places]


@pytest.mark.parametrize(("name", "places"), [("bpe", [0, 1]), ("scaffold_bpe seed=1", [3])])
def test_seeds_that_two_pluses_set_are_seeds(
    directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, places: list[int]
) -> None:
    monkeypatch.chdir(directory)
    _, runs = record(tmp_path, "-m", "tokenizer=bpe,scaffold_bpe", "++seed=0,1")
    found = find(name, tmp_path)
    assert [run.run_id for run in found.runs] == [identifiers(runs)[place] for place in places]
    made = prepare(compose_command(found.command), tolerate_missing=True)
    assert identifiers(made) == [run.run_id for run in found.runs]


@pytest.mark.parametrize("name", ["my own", "a=b", "甲", "x,y"])
def test_names_of_choices_that_are_quoted_in_an_override_are_without_quotes(
    directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(directory)
    (tmp_path / "tokenizer").mkdir()
    text = "defaults:\n  - /tokenizer/bpe@_here_\nvocab_size: 300\n"
    (tmp_path / "tokenizer" / f"{name}.yaml").write_text(text, encoding="utf-8")
    words = ("--config-dir", str(tmp_path), "-m", f"tokenizer='{name}',bpe", "seed=0,1")
    runs = identifiers(record(tmp_path / "root", *words)[1])
    for text in (f"{name} seed=1", f"seed=1 {name}"):
        assert is_reference(text)
        assert [run.run_id for run in find(text, tmp_path / "root").runs] == [runs[1]]


@pytest.mark.parametrize("name", ["bpe merge_rank", "scaffold_bpe longest_first seed=1", "last"])
def test_the_command_of_what_is_named_makes_the_same_runs(
    sweep: tuple[Path, str, list[str]], directory: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(directory)
    found = find(name, sweep[0])
    made = prepare(compose_command(found.command), tolerate_missing=True)
    assert identifiers(made) == [run.run_id for run in found.runs]


def test_an_ambiguous_name_lists_what_it_may_be(sweep: tuple[Path, str, list[str]]) -> None:
    with pytest.raises(ConfigurationError) as raised:
        find("bpe", sweep[0])
    lines = str(raised.value).splitlines()
    assert lines[0] == "'bpe' may be several things; name one:"
    assert [line.split("'")[1] for line in lines[1:]] == ["bpe merge_rank", "bpe longest_first"]


def test_a_verb_of_one_run_lists_the_runs_of_an_arm(sweep: tuple[Path, str, list[str]]) -> None:
    root, _, runs = sweep
    with pytest.raises(ConfigurationError, match="is several runs; name one:") as raised:
        find_run("bpe merge_rank", root)
    assert [line.split()[0] for line in str(raised.value).splitlines()[1:]] == runs[:2]


def test_an_unknown_name_lists_what_there_is_and_an_empty_root_says_so(
    sweep: tuple[Path, str, list[str]], tmp_path: Path
) -> None:
    root, identifier, _ = sweep
    with pytest.raises(ConfigurationError, match=rf"no run, arm or sweep 'nothing' below [^?]*\n  {identifier}  sweep"):
        find("nothing", root)
    with pytest.raises(ConfigurationError, match=r"no run 'last' below .*: nothing has run there"):
        find("last", tmp_path)
    with pytest.raises(ConfigurationError, match=r"'x{60}\.\.\.'"):
        find("x" * 500, root)


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("bpe merge_rank in_context seed=1", "bpe merge_rank seed=1"),
        ("bpee merge_rank", "bpe merge_rank"),
        ("bpe-longest_frist-standard-seed0", "bpe longest_first seed=0"),
        ("tokenizer=scaffold_bpe longest_first seed=0", "scaffold_bpe longest_first seed=0"),
        ("tokeniser-encoder", "tokenizer-encoder"),
    ],
)
def test_an_unknown_name_is_told_the_nearest_as_lists_show_it(
    sweep: tuple[Path, str, list[str]], name: str, nearest: str
) -> None:
    with pytest.raises(ConfigurationError) as raised:
        find(name, sweep[0])
    assert str(raised.value).splitlines()[0].endswith(f"; did you mean {nearest!r}? there are")
    assert find(nearest, sweep[0]).label == nearest


def test_an_arm_of_one_seed_is_its_run(directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(directory)
    _, runs = record(tmp_path, "-m", "tokenizer=bpe,scaffold_bpe")
    assert find_run("scaffold_bpe", tmp_path).run_id == runs[1].run_id


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


def test_the_run_that_is_last_is_that_whose_record_was_written_last(
    directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(directory)
    _, runs = record(tmp_path, "-m", "seed=0,1,2")
    for place, when in ((0, 100), (1, 300), (2, 200)):
        path = tmp_path / "runs" / runs[place].run_id / "run.json"
        path.parent.mkdir(parents=True)
        path.write_text("{}", encoding="utf-8")
        os.utime(path, (when, when))
    assert find_run("last", tmp_path).run_id == runs[1].run_id


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


@pytest.mark.parametrize("word", ["last", "0123", "bpe merge_rank seed=0", "bpe-merge_rank"])
def test_names_are_told_from_overrides(word: str) -> None:
    assert is_reference(word)


@pytest.mark.parametrize(
    "word",
    [
        "seed=1",
        "+a.b=c d",
        "+a.b=c d=e",
        "~tokenizer",
        "corpus.paths=[a b]",
        "corpus.name='a b=c'",
        "a.b={c: d, e: f=g}",
        "a.b=c, d=e",
        "experiment.name=a-seed1",
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


def test_of_runs_of_one_name_the_one_that_is_done_is_meant(directory: Path, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(directory)
        found = [record(tmp_path, "-m", "arm=bpe,lbpe", *more)[1] for more in ((), ("evaluation=heldout",))]
    with pytest.raises(ConfigurationError, match="may be several things"):
        find_run("lbpe", tmp_path)
    finish(found[1][1], 0, tmp_path / "made")
    assert find_run("lbpe", tmp_path).run_id == found[1][1].run_id
