"""A plan on terminals of several widths: one table of runs, whose words and numbers are whole."""

from pathlib import Path

import pytest

from paribus.checks.command import compose_command
from paribus.config.arguments import parse
from paribus.config.units import format_count, format_size
from paribus.pipeline.prepare import prepare
from paribus.planning.plan import Plan, make_plan
from support.plans import shown

SIZES = ("tokenizer=bpe,scaffold_bpe", "tokenizer.vocab_size=300,512", "training.learning_rate=1e-3,2e-3")


def plan_of(root: Path, *overrides: str) -> Plan:
    command = ["scale=tiny", "corpus=pydocs_small", f"root={root}", *overrides]
    return make_plan(prepare(compose_command(parse(command)), tolerate_missing=True))


@pytest.mark.parametrize("width", [80, 140])
def test_every_run_stands_once_with_whole_words_and_numbers(tmp_path: Path, width: int) -> None:
    plan = plan_of(tmp_path, "-m", *SIZES)
    text = shown(plan, width)
    table = text.partition("Runs")[2].partition("memory: of one")[0]
    assert all(len(line) <= width for line in table.splitlines())
    words = table.split()
    assert len(plan.runs) == 8
    for word, times in (("tokenizer.vocab_size=300", 4), ("training.learning_rate=0.002", 4), ("scaffold_bpe", 4)):
        assert words.count(word) == times
    for run in plan.runs:
        assert f"~{format_count(run.parameters)}" in words
        assert f"~{format_size(run.disk_bytes)}" in " ".join(words)


def test_a_run_alone_has_a_line(tmp_path: Path) -> None:
    text = shown(plan_of(tmp_path), 80)
    assert text.count("bpe-merge_rank-standard-seed0") == 1
    assert "bpe-merge_rank-standard-seed0: tokens 64.0K, text ~118.1 KiB, steps 125," in text
