"""BPE-dropout drawn anew every epoch: the tokens of each draw, which epoch reads which, and what is counted."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paribus.config.groups.tokenization import DropoutEncoder, MergeRankEncoder
from paribus.config.groups.training import BudgetConfig, EqualStepsBudget, EqualTextBudget, EqualTokensBudget
from paribus.config.schema import RunConfig
from paribus.corpus.artifact import CorpusArtifact, CorpusWriter
from paribus.ordering.orders import write_order
from paribus.stage import JSON, SilentListener
from paribus.tokenization import Tokenizer
from paribus.tokenization.build import build_tokens
from paribus.tokenization.encoded_corpus import EncodedCorpus
from paribus.training.train import Data, open_data
from support.stages import context_at, files
from support.training_inputs import context, execute, pair_config

DRAWS, PAIRS = 3, 20
WORDS = ["the", "cat", "sat", "on", "a", "mat", "and", "dog", "that", "ran", "to", "other", "house"]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Artefacts `corpus` and `vocabulary` of pairs that share words, and their order."""
    root = tmp_path_factory.mktemp("pairs")
    random = np.random.default_rng(0)
    with CorpusWriter(root / "corpus", heldout=0.2, pairs=True) as writer:
        for number in range(PAIRS + 5):
            source, target = (" ".join(random.choice(WORDS, 4)) for _ in range(2))
            writer.add(f"pair{number}", f"{number} {source}", "test", target)
    texts = [f"{each.text} {each.target}" for each in CorpusArtifact(root / "corpus").documents("train")]
    Tokenizer.train(texts, algorithm="bpe", vocab_size=320, special_tokens=("<|endoftext|>",)).save(
        root / "vocabulary" / "tokenizer"
    )
    (root / "order").mkdir()
    number = len(texts)
    write_order(root / "order", np.random.default_rng(3).permutation(number), kept=number, removed=0)
    return root


def config(draws: int, budget: BudgetConfig | None = None, **changes: object) -> RunConfig:
    encoder = DropoutEncoder(probability=0.3, draws=draws) if draws else MergeRankEncoder()
    run = replace(pair_config(), encoder=encoder, **changes)  # type: ignore[arg-type]
    return replace(run, model=replace(run.model, context_length=64, positions=64), budget=budget or run.budget)


def encode(corpus: Path, root: Path, draws: int) -> dict[str, JSON]:
    """Write the tokens of so many draws, none of which is BPE without dropout, and return the stage's result."""
    given = {name: corpus / name for name in ("corpus", "vocabulary")}
    return build_tokens(context_at(root / "tokens", root / "work", config(draws), given))


@pytest.fixture(scope="module")
def drawn(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """What a training on several draws reads."""
    root = tmp_path_factory.mktemp("drawn")
    encode(corpus, root, DRAWS)
    return {"tokens": root / "tokens", "order": corpus / "order"}


def test_each_draw_spells_the_same_texts_otherwise_and_the_first_is_that_of_one(corpus: Path, tmp_path: Path) -> None:
    many, one = (encode(corpus, tmp_path / str(draws), draws) for draws in (DRAWS, 1))
    tokens, once = (EncodedCorpus(tmp_path / str(draws) / "tokens") for draws in (DRAWS, 1))
    assert (tokens.draws, once.draws, len(tokens)) == (DRAWS, 1, len(once))
    assert tokens.first_draw.tolist() == once.ids.tolist() == once.first_draw.tolist()
    ids = [tokens.document(number) for number in range(DRAWS * len(tokens))]
    by_draw = [np.concatenate(ids[draw * len(tokens) : (draw + 1) * len(tokens)]) for draw in range(DRAWS)]
    assert len({draw.tobytes() for draw in by_draw}) == DRAWS
    pairs = list(CorpusArtifact(corpus / "corpus").documents("train")) * DRAWS
    for spelled, source, pair in zip(ids, np.asarray(tokens.source_lengths), pairs, strict=True):
        assert tokens.tokenizer.decode(spelled[:source]) == pair.text
        assert tokens.tokenizer.decode(spelled[source:]) == pair.target
    assert many["tokens"] == tokens.tokens > 2.5 * one["tokens"]  # type: ignore[operator]
    assert [many[name] for name in ("bytes", "documents", "draws")] == [3 * one["bytes"], 3 * one["documents"], 3]  # type: ignore[operator]
    assert tokens.bytes_per_token == pytest.approx(once.bytes_per_token, rel=0.05)


def test_encoding_that_was_killed_between_draws_goes_on(corpus: Path, tmp_path: Path) -> None:
    encode(corpus, tmp_path, DRAWS)
    whole = files(tmp_path / "tokens")
    (later,) = (tmp_path / "work" / "parts" / f"draw-{DRAWS - 1:06d}").iterdir()
    later.unlink()
    shutil.rmtree(tmp_path / "tokens")
    encode(corpus, tmp_path, DRAWS)
    assert files(tmp_path / "tokens") == whole


def opened(root: Path, inputs: dict[str, Path], run: RunConfig) -> Data:
    return open_data(context(root, "opened", inputs, run, SilentListener()))


def test_epochs_read_the_draws_in_turn_and_pairs_when_one_draw_does(
    corpus: Path, drawn: dict[str, Path], tmp_path: Path
) -> None:
    encode(corpus, tmp_path, 0)
    of_draws = opened(tmp_path / "drawn", drawn, config(DRAWS))
    alone = opened(tmp_path / "alone", {"tokens": tmp_path / "tokens", "order": corpus / "order"}, config(0))
    pairs = alone.contexts.count
    assert of_draws.contexts.count == of_draws.traversal.count == DRAWS * pairs
    places = np.arange(DRAWS * pairs)
    for epoch in range(7):
        here = np.arange(pairs) + pairs * (epoch % DRAWS)
        read = of_draws.traversal.at(here, epoch // DRAWS)
        assert np.array_equal(read // pairs, np.full(pairs, epoch % DRAWS))
        assert np.array_equal(read % pairs, alone.traversal.at(np.arange(pairs), epoch))
        assert np.array_equal(of_draws.traversal.places_of(read, epoch // DRAWS), here)
    assert sorted(of_draws.traversal.at(places, 5).tolist()) == places.tolist()
    # The bytes that are looked at are the same, and every draw has them all.
    assert of_draws.measured.corpus_bytes == alone.measured.corpus_bytes
    held = of_draws.measured.sampled
    for draw in range(DRAWS):
        chosen = held[held[:, 1] // pairs == draw]
        assert np.array_equal(np.sort(chosen[:, 0]), np.sort(alone.measured.sampled[:, 0]))
    assert np.array_equal(of_draws.measured.text_bytes, np.tile(alone.measured.text_bytes, DRAWS))


@pytest.mark.parametrize(
    "budget", [EqualStepsBudget(steps=25), EqualTextBudget(text=4_000), EqualTokensBudget(tokens=900)]
)
def test_training_counts_what_it_reads_by_draws_and_epochs_by_text(
    budget: BudgetConfig, corpus: Path, drawn: dict[str, Path], tmp_path: Path
) -> None:
    run, tokens = config(DRAWS, budget), EncodedCorpus(drawn["tokens"])
    result: dict[str, Any] = execute(tmp_path, "run", drawn, run)
    assert result["epochs"] == result["steps"] * 4 / len(tokens)
    record = json.loads((tmp_path / "run" / "output" / "contexts.json").read_text())
    assert record["contexts"] == len(tokens)
    whole, traversal = DRAWS * len(tokens), opened(tmp_path, drawn, run).traversal
    read = [int(traversal.at(np.array([n % whole]), n // whole)[0]) for n in range(result["steps"] * 4)]
    order = np.load(corpus / "order" / "order.npy").tolist()
    numbers = [n // len(tokens) * len(tokens) + order[n % len(tokens)] for n in read]
    sources = np.asarray(tokens.source_lengths)[numbers]
    assert result["tokens"] == (np.diff(tokens.offsets)[numbers] - sources + 1).sum()
    assert result["source_tokens"] == (sources + 1).sum()
    if result["epochs"] > DRAWS:
        (message,) = json.loads((tmp_path / "run" / "messages.json").read_text())
        assert message.startswith(f"BPE-dropout drew the tokens {DRAWS} times for {result['epochs']:.3g} epochs")
