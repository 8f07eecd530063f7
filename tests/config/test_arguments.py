"""Flags: those that are known do what they say, and any other is refused with what was meant before anything runs."""

import shlex
from pathlib import Path

import pytest

from paribus.checks import compose_command
from paribus.cli import VERBS, main
from paribus.config.arguments import broken_lists, parse, read_options
from paribus.errors import ConfigurationError

TINY = ("scale=tiny", "corpus=pydocs_small", "tracking=none")
WITH_CONFIGURATION = ("run", "plan", "status", "report", "orders")
UNKNOWN = [
    (("--seed=3",), "say seed=3"),
    (("--seed", "3"), "say seed=3"),
    (("--root=DIR",), "say root=DIR"),
    (("--tokenizer=bpe",), "say tokenizer=bpe"),
    (("--max-epochs", "2"), "say budget.max_epochs=2"),
    (("--resume",), "known: --"),
    (("-j", "4"), "known: --"),
    (("--multi-run",), "did you mean --multirun"),
    (("--nothing-like-it",), "known: --"),
    (("--",), "known: --"),
    (("--run",), "is no flag"),
]


@pytest.mark.parametrize("verb", WITH_CONFIGURATION)
def test_unknown_flags_are_refused_at_once(verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for flags, meant in UNKNOWN:
        assert main([verb, *TINY, f"root={tmp_path}/root", *flags]) == 2
        captured = capsys.readouterr()
        assert meant in captured.err
        assert captured.out == ""
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--cfg",), "--cfg needs a value: job, hydra or all"),
        (("-m", "--config-dir"), "--config-dir needs a value: a directory"),
        (("--config-dir", "seed=3"), "--config-dir needs a value"),
        (("--config-dir=",), "--config-dir needs a value"),
        (("--multirun=yes",), "--multirun has no value; leave =yes away"),
        (("--resolve",), "--resolve goes with --cfg only"),
        (("--resume", "--seed=3"), "--resume is no flag of paribus run.*\n.*say seed=3"),
    ],
)
def test_a_flag_used_wrongly_is_refused_by_name(arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(ConfigurationError, match=f"(?s){message}"):
        parse(arguments)


@pytest.mark.parametrize(
    "arguments", [("--cfg", "job"), ("--cfg=job",), ("-c", "job"), ("-c=job",), ("-m", "--cfg", "job")]
)
def test_each_spelling_of_a_flag_that_shows_something_runs_nothing(
    arguments: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", *TINY, f"root={tmp_path}/root", "seed=7", *arguments]) == 0
    assert "seed: 7" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("verb", "flag"), [("run", "--why"), ("status", "--why")])
def test_a_flag_of_another_verb_is_refused_with_that_verb(verb: str, flag: str) -> None:
    with pytest.raises(ConfigurationError, match="it is one of paribus report"):
        parse([flag], verb)


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb not in WITH_CONFIGURATION])
def test_verbs_of_their_own_arguments_refuse_unknown_flags_too(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = {"rerun": ["0123456789abcdef"]}.get(verb, [])
    assert main([verb, *words, "--force"]) == 2
    assert "--force" in capsys.readouterr().err


def test_short_options_are_refused_by_what_is_wrong_with_them() -> None:
    known = ("root", "tracking.uri")
    assert read_options(["root=a", "root=a", "tracking.uri=b=c"], known) == {"root": "a", "tracking.uri": "b=c"}
    for arguments, message in {
        ("--root=a",): "did you mean root=a",
        ("--uri=a",): "did you mean tracking.uri=a",
        ("rot=a",): "did you mean root=a",
        ("root",): "did you mean root=...",
        ("root=",): "names no value",
        ("root=a", "root=b"): "given twice, as 'a' and as 'b'",
    }.items():
        with pytest.raises(ConfigurationError, match=message):
            read_options(arguments, known)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("-m arm=bpe, lbpe", "'arm=bpe, lbpe' has a space, where the shell ends a word; leave it out: arm=bpe,lbpe"),
        ("-m arm=bpe , lbpe, unigram seed=0,1", "leave it out: arm=bpe,lbpe,unigram"),
        ("-m arm= bpe", "leave it out: arm=bpe"),
        ("corpus.paths=[a, b]", "leave it out: corpus.paths=[a,b]"),
        ("-m arm=bpe, seed=1", "'arm=bpe,' ends in a comma; name what follows, or leave it out: arm=bpe"),
    ],
)
def test_a_list_that_the_shell_has_torn_is_shown_whole(typed: str, meant: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        compose_command(parse(typed.split(" ")))
    assert str(refused.value).endswith(meant)


@pytest.mark.parametrize(
    "typed",
    ["last tracking.uri=", "corpus.paths=[a,b] last", "corpus.paths='[a, b]'", "experiment.title= ~corpus.limit"],
)
def test_a_word_of_its_own_is_no_part_of_a_list(typed: str) -> None:
    assert broken_lists(shlex.split(typed)) == []
