"""Fields that other kinds of a group have: a refusal says which, so that nobody looks for a slip of the pen."""

import pytest

from paribus.checks.command import compose_command
from paribus.config.arguments import parse
from paribus.config.schema import has_field, kinds_with
from paribus.errors import ConfigurationError


@pytest.mark.parametrize(
    ("override", "told"),
    [
        (
            "budget.text=20K",
            "budget.text: 'text' is unknown; known: kind, tokens, max_epochs (in budget); budget of kind",
        ),
        (
            "tokenizer=bytes tokenizer.vocab_size=512",
            "tokenizer of kind bpe or scaffold_bpe or wordpiece or unigram or words has",
        ),
    ],
)
def test_a_field_of_another_kind_is_told_with_that_kind(override: str, told: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        compose_command(parse(["scale=tiny", "corpus=pydocs_small", *override.split()]))
    assert told in str(raised.value)


def test_a_field_that_no_kind_has_names_none() -> None:
    assert kinds_with("budget", "tokns") == [] == kinds_with("nothing", "tokens") == kinds_with("seeds", "order")
    assert kinds_with("budget", "text") == ["equal_text"]


def test_a_field_that_no_file_gives_is_told_with_the_plus_it_takes() -> None:
    with pytest.raises(ConfigurationError, match=r"so it takes a plus: \+experiment\.table\.primary=\[continuation\]"):
        compose_command(parse(["experiment=demo", "experiment.table.primary=[continuation]"]))
    assert has_field("experiment.table.primary") and has_field("seed")
    assert not has_field("experiment.tabel") and not has_field("tokenizer.vocab_size") and not has_field("nothing.text")
