"""What a run is called: arms that differ in a field alone must not share a name."""

from collections.abc import Sequence

import pytest

from paribus.config.compose import Job
from paribus.config.groups.evaluation import ExperimentConfig
from paribus.config.groups.tokenization import BPETokenizer, BytesTokenizer, ExistingTokenizer, TokenizerConfig
from paribus.pipeline.prepared import PreparedRun, labels, run_names
from support.run_config import run_config


def prepared(
    tokenizer: TokenizerConfig, *overrides: str, factors: tuple[str, ...] = (), **groups: object
) -> PreparedRun:
    experiment = ExperimentConfig(name="demo", title="A table")
    config = run_config(tokenizer=tokenizer, experiment=experiment, **groups)
    return PreparedRun(Job(overrides, config), {}, factors)


def own_tokenizers(paths: Sequence[str]) -> list[str]:
    """Names of runs of which each has a tokenizer of its own."""
    factors = ("tokenizer.path",)
    runs = [prepared(ExistingTokenizer(path=path), f"tokenizer.path={path}", factors=factors) for path in paths]
    return run_names(runs)


@pytest.mark.parametrize(
    ("factors", "tokenizer", "expected"),
    [
        (("tokenizer",), BPETokenizer(vocab_size=400), "bpe-merge_rank-standard-seed0"),
        (
            ("tokenizer.vocab_size",),
            BPETokenizer(vocab_size=400),
            "bpe-merge_rank-standard-vocab_size=400-seed0",
        ),
        (("tokenizer.vocab_size",), BytesTokenizer(), "bytes-merge_rank-standard-seed0"),
        (("budget", "experiment"), BytesTokenizer(), "bytes-merge_rank-standard-equal_tokens-seed0"),
    ],
)
def test_the_factors_of_a_sweep_stand_in_the_names_of_its_runs(
    factors: tuple[str, ...], tokenizer: TokenizerConfig, expected: str
) -> None:
    assert run_names([prepared(tokenizer, factors=factors)]) == [expected]


def test_two_options_of_one_kind_are_called_as_they_were_chosen() -> None:
    options = {"mine_a": 400, "mine_b": 500}
    runs = [
        prepared(BPETokenizer(vocab_size=size), f"tokenizer={option}", factors=("tokenizer",))
        for option, size in options.items()
    ]
    assert run_names(runs) == ["mine_a-merge_rank-standard-seed0", "mine_b-merge_rank-standard-seed0"]


def test_arms_of_other_kinds_have_these_and_arms_of_one_kind_their_words() -> None:
    bpe, other, own = (
        prepared(tokenizer, f"arm={arm}", factors=("arm",))
        for arm, tokenizer in (
            ("bpe", BPETokenizer(vocab_size=400)),
            ("bytes", BytesTokenizer()),
            ("mine", BPETokenizer(vocab_size=500)),
        )
    )
    assert run_names([bpe, other]) == ["bpe-merge_rank-standard-seed0", "bytes-merge_rank-standard-seed0"]
    assert run_names([bpe, own]) == ["bpe-merge_rank-standard-bpe-seed0", "bpe-merge_rank-standard-mine-seed0"]


@pytest.mark.parametrize("seed_first", [True, False])
def test_a_label_begins_with_what_arms_differ_in(seed_first: bool) -> None:
    words = [("tokenizer=bytes", "encoder=merge_rank", f"seed={seed}", "scale=tiny") for seed in (0, 1)]
    words += [("tokenizer=bpe", "encoder=merge_rank", "seed=0", "scale=tiny")]
    runs = [prepared(BytesTokenizer(), *(reversed(each) if seed_first else each)) for each in words]
    assert labels(runs) == ["bytes seed=0", "bytes seed=1", "bpe seed=0"]


def test_long_paths_of_own_tokenizers_are_told_apart_by_their_ends() -> None:
    home = "/data/of/a/group/with/a/long/name/and/its/tokenizers"
    first, second = own_tokenizers([f"{home}/first", f"{home}/second"])
    assert first.endswith("/tokenizers/first-seed0")
    assert second.endswith("/tokenizers/second-seed0")
