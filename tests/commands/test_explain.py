"""What the command line says about itself: help, `paribus explain` and what a shell completes."""

import re
import shlex

import pytest

from paribus.checks import compose_command
from paribus.cli import VERBS, main
from paribus.commands.explain import complete, explain
from paribus.commands.verbs import EXAMPLES, verb_help
from paribus.config.arguments import VERB_FLAGS, groups, options, parse
from paribus.config.explain import fields_of
from paribus.errors import ConfigurationError


@pytest.mark.parametrize("verb", VERBS)
def test_each_verb_has_a_help_with_its_flags_and_three_examples(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    for flag in ("--help", "-h"):
        assert main([verb, flag]) == 0
        printed = capsys.readouterr().out
    assert printed.startswith(f"usage: paribus {verb}")
    commands = re.findall(rf"^  .*\bparibus {verb}\b.*$", printed, flags=re.MULTILINE)
    assert len(set(commands)) >= 3
    flags = VERB_FLAGS.get(verb, ())
    assert [flag for flag in flags if f"  {flag} " not in printed or f"[{flag}" not in printed] == []


def test_the_help_of_run_names_every_option_of_every_group() -> None:
    explained = verb_help("run").split("groups, of which")[1]
    for group in groups():
        listed = re.search(rf"^  {group}: ((?:.*\n?)(?:    .*\n?)*)", explained, flags=re.MULTILINE)
        assert listed is not None
        assert re.split(r",\s+", listed[1].strip()) == [option.name for option in options(group)]


def test_the_examples_of_a_help_compose() -> None:
    for verb in ("run", "plan"):
        for example in EXAMPLES[verb]:
            words = shlex.split(example)
            assert words[:2] == ["paribus", verb]
            assert compose_command(parse(words[2:], verb)).jobs, example


def test_a_field_is_explained_with_its_choices_and_who_sets_it() -> None:
    explained = explain("training.precision")
    assert "type: auto, fp32, bf16" in explained
    assert "identity: " in explained
    assert "training=ott_2018 sets 14336" in explain("training.global_batch")
    assert "tokenizer=bpe|scaffold_bpe|wordpiece|unigram|words" in explain("tokenizer.vocab_size")
    assert "execution: " in explain("root")
    assert "default: paribus_runs" in explain("root")


def test_every_group_option_and_field_is_explained() -> None:
    for group in groups():
        explained = explain(group)
        for option in options(group):
            assert re.search(rf"^  {re.escape(option.name)}  +\S", explained, flags=re.MULTILINE), option
            assert option.path.read_text(encoding="utf-8").rstrip() in explain(f"{group}={option.name}")
    for path in {field.path for field in fields_of()}:
        assert explain(path)
    assert main(["explain"]) == 0


def test_an_unknown_path_is_refused_with_what_was_meant() -> None:
    meant = {
        "globalbatch": "training.global_batch",
        "layers": "model.layers",
        "training.layers": "model.layers",
        "tokeniser": "tokenizer",
        "tokenizer=scafold_bpe": "did you mean tokenizer=scaffold_bpe? options: bpe, bytes, existing",
    }
    for typed, message in meant.items():
        with pytest.raises(ConfigurationError, match=re.escape(message)):
            explain(typed)


def test_a_line_is_completed() -> None:
    completions = {
        "paribus ru": ["run "],
        "paribus run tokenizer=sc": ["tokenizer=scaffold_bpe"],
        "paribus run -m tokenizer=bpe,un": ["tokenizer=bpe,unigram"],
        "paribus run experiment=lbpe/table_1": ["experiment=lbpe/table_1"],
        "paribus run  model.wid": ["model.width="],
        "paribus run training.precision=b": ["training.precision=bf16"],
        "paribus report --w": ["--why "],
        "paribus tokens en": ["encode ", "entropy "],
        "paribus explain training.global_b": ["training.global_batch "],
        "paribus sync ro": [],
        "paribus nothing ro": [],
    }
    assert {line: complete(line) for line in completions} == completions
    assert [name.strip() for name in complete("paribus ")] == list(VERBS)
    assert main(["explain", "--completion", "tcsh"]) == 2
