"""Arms: one word for a tokenizer with its encoder, one factor of a sweep."""

import re
from pathlib import Path

import pytest
import yaml

from paribus.checks import compose_command
from paribus.config.arguments import options, parse
from paribus.config.compose import Composition
from paribus.config.fields import ARM, CHOSEN
from paribus.errors import ConfigurationError
from paribus.pipeline.prepare import prepare_runs
from paribus.pipeline.prepared import factor_labels, undeclared

ARMS = options(ARM)
ROOT = Path(__file__).parents[2]


def compose(*arguments: str) -> Composition:
    return compose_command(parse(("scale=tiny", *arguments)))


def test_an_arm_is_a_valid_run_that_chooses_what_its_page_says() -> None:
    page = (ROOT / "docs" / "tokenization.md").read_text(encoding="utf-8")
    for arm in ARMS:
        content = yaml.safe_load(arm.path.read_text(encoding="utf-8"))
        assert content.keys() == {"defaults"}
        chosen = {
            group.removeprefix("override /"): name for line in content["defaults"] for group, name in line.items()
        }
        assert {"tokenizer", "encoder"} <= chosen.keys() <= set(CHOSEN)
        config = compose(f"{ARM}={arm.name}").jobs[0].config
        assert config == compose(*(f"{group}={name}" for group, name in chosen.items())).jobs[0].config
        assert prepare_runs(compose(f"{ARM}={arm.name}"), tolerate_missing=True)
        row = re.search(rf"^\| `{arm.name}` \| `(\w+)`.* \| `(\w+)` \|$", page, re.MULTILINE)
        assert row and (row[1], row[2]) == (config.tokenizer.kind, config.encoder.kind), arm.name


def test_arms_are_one_factor_whose_rows_have_their_names() -> None:
    composition = compose("-m", "arm=bpe,unigram,entropy_bpe", "seed=0,1")
    runs = prepare_runs(composition, tolerate_missing=True)
    assert composition.factors == (ARM,)
    assert undeclared(runs) is None
    assert [factor_labels(run, composition.factors)[ARM] for run in runs[::2]] == ["bpe", "unigram", "entropy_bpe"]


def test_arms_do_not_excuse_what_they_do_not_choose() -> None:
    error = undeclared(
        prepare_runs(compose("-m", "arm=bpe,unigram", "ordering=standard,in_context"), tolerate_missing=True)
    )
    assert error is not None
    assert {difference.path.split(".")[0] for difference in error.differences} == {"duplicates"}


def test_a_field_is_set_where_an_arm_has_it() -> None:
    jobs = compose("-m", "arm=bytes,bpe,unigram", "tokenizer.vocab_size=300,400", "tokenizer.prune=0.5").jobs
    made = [(job.config.tokenizer.kind, getattr(job.config.tokenizer, "vocab_size", None)) for job in jobs]
    assert made == [("bytes", None), ("bpe", 300), ("bpe", 400), ("unigram", 300), ("unigram", 400)]
    assert [getattr(job.config.tokenizer, "prune", None) for job in jobs] == [None, None, None, 0.5, 0.5]


def test_a_row_is_not_named_by_what_it_is_not() -> None:
    refusals = {
        "-m arm=bpe,lbpe encoder=merge_rank": "encoder: arm=lbpe chooses encoder=longest_first",
        "arm=lbpe tokenizer=wordpiece": "tokenizer: arm=lbpe chooses tokenizer=bpe",
        "-m arm=bpe,entropy_bpe pretokenizer=gpt4": "pretokenizer: arm=entropy_bpe chooses pretokenizer=spans",
        "arm=[bpe,lbpe]": "arm: takes one choice; -m arm=bpe,lbpe makes a run of each",
        "tokenizer=[bpe,unigram]": "tokenizer: takes one choice",
    }
    for words, message in refusals.items():
        with pytest.raises(ConfigurationError, match=re.escape(message)):
            compose(*words.split())
