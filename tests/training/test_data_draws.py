"""BPE-dropout drawn anew every epoch: the tokens of each draw, which epoch reads which, and what is counted."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from paribus.config.groups.tokenization import DropoutEncoder, MergeRankEncoder
from paribus.config.groups.training import BudgetConfig, EqualStepsBudget, EqualTextBudget, EqualTokensBudget
from paribus.config.schema import RunConfig
from paribus.corpus.artifact import CorpusArtifact, CorpusWriter
from paribus.ordering.orders import write_order
from paribus.stage import SilentListener
from paribus.tokenization import Tokenizer
from paribus.tokenization.build import build_tokens
from paribus.tokenization.encoded_corpus import EncodedCorpus
from paribus.training.data import BatchReader
from paribus.training.train import build, open_data
from support.stages import context_at, files
from support.training_inputs import context, execute, pair_config
from support.training_inputs import measure_contexts as measured

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


def encoded(corpus: Path, root: Path, draws: int) -> dict[str, Path]:
    """The artefacts that a training with so many draws reads; none is BPE without dropout."""
    run, output = config(draws), root / f"tokens{draws}"
    given = {name: corpus / name for name in ("corpus", "vocabulary")}
    result = build_tokens(context_at(output, root / f"work{draws}", run, given))
    (root / f"result{draws}.json").write_text(json.dumps(result))
    return {"tokens": output, "order": corpus / "order"}


def ids_of(tokens: EncodedCorpus, draw: int) -> Iterator[list[int]]:
    for document in range(len(tokens)):
        yield tokens.document(draw * len(tokens) + document).tolist()


def test_each_draw_spells_the_same_texts_otherwise_and_the_first_is_that_of_one(corpus: Path, tmp_path: Path) -> None:
    tokens, once = (EncodedCorpus(encoded(corpus, tmp_path, draws)["tokens"]) for draws in (DRAWS, 1))
    assert (tokens.draws, once.draws, len(tokens)) == (DRAWS, 1, len(once))
    assert tokens.first_draw.tolist() == once.ids.tolist() == once.first_draw.tolist()
    draws = [list(ids_of(tokens, draw)) for draw in range(DRAWS)]
    assert len({json.dumps(draw) for draw in draws}) == DRAWS
    assert tokens.source_lengths is not None
    for document, pair in enumerate(CorpusArtifact(corpus / "corpus").documents("train")):
        for draw in range(DRAWS):
            spelled, source = draws[draw][document], int(tokens.source_lengths[draw * len(tokens) + document])
            assert tokens.tokenizer.decode(spelled[:source]) == pair.text
            assert tokens.tokenizer.decode(spelled[source:]) == pair.target
    many, one = (json.loads((tmp_path / f"result{draws}.json").read_text()) for draws in (DRAWS, 1))
    assert many["tokens"] == tokens.tokens > 2.5 * one["tokens"]
    assert (many["bytes"], many["documents"], many["draws"]) == (3 * one["bytes"], 3 * one["documents"], 3)
    assert tokens.bytes_per_token == pytest.approx(once.bytes_per_token, rel=0.05)


def test_an_encoding_that_was_killed_between_draws_goes_on(corpus: Path, tmp_path: Path) -> None:
    whole = files(encoded(corpus, tmp_path, DRAWS)["tokens"])
    (later,) = (tmp_path / f"work{DRAWS}" / "parts" / f"draw-{DRAWS - 1:06d}").iterdir()
    later.unlink()
    given = {name: corpus / name for name in ("corpus", "vocabulary")}
    build_tokens(context_at(tmp_path / "again", tmp_path / f"work{DRAWS}", config(DRAWS), given))
    assert files(tmp_path / "again") == whole


def test_epochs_read_the_draws_in_turn_and_pairs_when_one_draw_does(corpus: Path, tmp_path: Path) -> None:
    several, once = (encoded(corpus, tmp_path, draws) for draws in (DRAWS, 0))
    of_draws, alone = (
        open_data(
            context_at(
                tmp_path / f"o{draws}", tmp_path / f"w{draws}", config(draws),
                inputs | {"contexts": measured(tmp_path / f"c{draws}", inputs, config(draws))},
            )
        )
        for draws, inputs in ((DRAWS, several), (0, once))
    )  # fmt: skip
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
def test_what_a_training_reads_is_counted_by_its_draws_and_epochs_by_its_text(
    budget: BudgetConfig, corpus: Path, tmp_path: Path
) -> None:
    inputs = encoded(corpus, tmp_path, DRAWS)
    result = execute(tmp_path, "run", inputs, config(DRAWS, budget))
    tokens = EncodedCorpus(inputs["tokens"])
    assert tokens.source_lengths is not None
    assert result["epochs"] == result["steps"] * 4 / len(tokens)  # type: ignore[operator]
    record = json.loads((tmp_path / "run" / "output" / "contexts.json").read_text())
    assert record["contexts"] == len(tokens)
    whole = DRAWS * len(tokens)
    data = open_data(context(tmp_path, "opened", inputs, config(DRAWS, budget), SilentListener()))
    read = [int(data.traversal.at(np.array([n % whole]), n // whole)[0]) for n in range(result["steps"] * 4)]  # type: ignore[operator]
    order = np.load(corpus / "order" / "order.npy").tolist()
    lengths, sources = np.diff(tokens.offsets), tokens.source_lengths
    numbers = [n // len(tokens) * len(tokens) + order[n % len(tokens)] for n in read]
    assert result["tokens"] == sum(int(lengths[n] - sources[n]) + 1 for n in numbers)
    assert result["source_tokens"] == sum(int(sources[n]) + 1 for n in numbers)
    if result["epochs"] > DRAWS:  # type: ignore[operator]
        (said,) = json.loads((tmp_path / "run" / "said.json").read_text())
        assert said.startswith(f"BPE-dropout drew the tokens {DRAWS} times for {result['epochs']:.3g} epochs")


def test_a_training_that_goes_on_in_another_draw_ends_with_the_same_weights(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs, run = encoded(corpus, tmp_path, DRAWS), config(DRAWS, EqualStepsBudget(steps=14))
    execute(tmp_path, "whole", inputs, run)
    read = BatchReader.read

    def stopping(self: BatchReader, step: int, indices: np.ndarray) -> object:
        if step == 11:
            raise KeyboardInterrupt
        return read(self, step, indices)

    monkeypatch.setattr(BatchReader, "read", stopping)
    with pytest.raises(KeyboardInterrupt):
        build(context(tmp_path, "stopped", inputs, run, SilentListener()))
    monkeypatch.setattr(BatchReader, "read", read)
    build(context(tmp_path, "stopped", inputs, run, SilentListener()))
    whole, stopped = (
        tmp_path / name / "output" / "step_00000014" / "model.safetensors" for name in ("whole", "stopped")
    )
    assert whole.read_bytes() == stopped.read_bytes()
