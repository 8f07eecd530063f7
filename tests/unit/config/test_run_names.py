"""What a run is called: arms that differ in a field alone must not share a name."""

import pytest

from paribus.config.groups.corpus import PydocsCorpus
from paribus.config.groups.execution import SweepConfig
from paribus.config.groups.experiment import ExperimentConfig
from paribus.config.groups.tokenization import BPETokenizer, BytesTokenizer, TokenizerConfig
from paribus.pipeline.prepare import run_name
from support.run_config import run_config


def name_of(factors: tuple[str, ...], tokenizer: TokenizerConfig) -> str:
    sweep = SweepConfig(id="0" * 64, name="sizes", invocation="1", jobs=2, factors=factors)
    experiment = ExperimentConfig(name="demo", title="A table")
    return run_name(run_config(sweep=sweep, tokenizer=tokenizer, experiment=experiment))


def test_a_run_outside_a_sweep_has_its_kinds_and_its_seed() -> None:
    assert run_name(run_config(tokenizer=BPETokenizer(vocab_size=400))) == "bpe-merge_rank-standard-seed0"


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
def test_what_a_sweep_compares_stands_in_the_names_of_its_runs(
    factors: tuple[str, ...], tokenizer: TokenizerConfig, expected: str
) -> None:
    assert name_of(factors, tokenizer) == expected


def test_a_long_value_is_cut() -> None:
    corpus = PydocsCorpus(packages=tuple(f"package-{number}" for number in range(20)))
    sweep = SweepConfig(id="0" * 64, name="sizes", invocation="1", jobs=2, factors=("corpus.packages",))
    name = run_name(run_config(sweep=sweep, corpus=corpus))
    assert name.endswith("…-seed0")
    assert len(name) < 120
