"""Log-probabilities of continuations: against one forward pass a token."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

from paribus.config.groups.evaluation import EvaluationConfig
from paribus.config.groups.model import GPTNeoXModel, LlamaModel, ModelConfig
from paribus.config.groups.training import TrainingConfig
from paribus.errors import ConfigurationError, DataError, NumericalError
from paribus.evaluation.pairs import BranchBatch, Pair, encode_choices, fit_pair, group_pairs, make_batch, windows
from paribus.evaluation.scoring import Scorer, averaged_checkpoints, load_checkpoint_model
from paribus.evaluation.stage import build_scores, build_tasks
from paribus.modeling.device import batches
from paribus.modeling.models import build_model, load_model, save_model
from paribus.tokenization import Tokenizer
from paribus.training.distributed import ALONE
from support.evaluations import (
    STAGE_MODEL,
    WORDS,
    ByteEncoder,
    brute_force,
    evaluation_context,
    tiny_model,
    write_checkpoints,
    write_drawn_corpus,
)
from support.steps import make_stepper
from support.training_inputs import TRANSLATOR

CONTEXT_LENGTH = 64


def random_pairs(number: int, vocab_size: int = 40) -> list[Pair]:
    """Pairs of which some share contexts and some have empty or one-token continuations."""
    draw = np.random.default_rng(0)
    contexts = [draw.integers(0, vocab_size, size) for size in (1, 1, 5, 20, 40)]
    sizes = draw.integers(0, 20, number)
    return [Pair(contexts[i % 5], draw.integers(0, vocab_size, sizes[i])) for i in range(number)]


def pair_of(encoder: ByteEncoder, context: str, continuation: str) -> tuple[list[int], list[int]]:
    choices = encode_choices(encoder.encode, encoder.eos_id, context, [continuation])
    assert not choices.crossing
    return choices.context.tolist(), choices.continuations[0].tolist()


@pytest.mark.parametrize(("family", "number"), [(LlamaModel, 40), (GPTNeoXModel, 15)])
def test_scores_are_those_of_one_forward_pass_a_token_in_any_batch(family: Any, number: int) -> None:
    model, pairs = tiny_model(40, CONTEXT_LENGTH, family=family), random_pairs(number)
    expected = [brute_force(model, pair.context.tolist(), pair.continuation.tolist()) for pair in pairs]
    for batch_tokens in (1, 96, 2000):
        scores = Scorer(model, batch_tokens).score(pairs)
        assert scores.log_probability == pytest.approx([score for score, _ in expected], abs=1e-4)
        assert scores.greedy.tolist() == [greedy for _, greedy in expected]


@pytest.mark.parametrize("sequences", [1, 3])
def test_a_batch_that_does_not_fit_is_halved_and_scores_the_same(
    sequences: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, pairs, counts = tiny_model(40, CONTEXT_LENGTH), random_pairs(23), list[int]()
    expected = Scorer(model, batch_tokens=200).score(pairs)
    whole, refused = Scorer._hidden, []

    def short_of_memory(self: Scorer, batch: BranchBatch, device: torch.device) -> torch.Tensor:
        if len(batch.ids) > sequences:
            refused.append(len(batch.ids))
            raise torch.OutOfMemoryError("CUDA out of memory")
        return whole(self, batch, device)

    monkeypatch.setattr(Scorer, "_hidden", short_of_memory)
    scores = Scorer(model, batch_tokens=200).score(pairs, counts.append)
    assert refused and sum(counts) == len(pairs)
    assert scores.log_probability == pytest.approx(expected.log_probability, abs=1e-5)
    assert scores.greedy.tolist() == expected.greedy.tolist()
    spoken = [pair for pair in pairs if len(pair.continuation)]
    places = sorted(place for place, _ in Scorer(model, batch_tokens=200).predictions(spoken))
    assert places == list(range(len(spoken)))


def test_a_context_is_computed_once_for_its_choices() -> None:
    context = np.arange(30)
    pairs = [Pair(context, np.arange(size)) for size in (1, 5, 9, 12)] + [Pair(context[1:], np.arange(3))]
    groups = group_pairs(pairs)
    assert sorted(len(group.members) for group in groups) == [1, 4]
    assert max(group.length for group in groups) == 30 + 0 + 4 + 8 + 11
    batch = make_batch(groups)
    assert batch.positions.max() == 30 + 11 - 1


def test_a_continuation_is_greedy_if_every_token_is_the_most_probable() -> None:
    model, ids = tiny_model(40, CONTEXT_LENGTH), [3, 1, 4]
    for _ in range(6):
        with torch.inference_mode():
            ids.append(int(model.logits(torch.tensor([ids]))[0, -1].argmax()))
    last_differs = [*ids[3:-1], (ids[-1] + 1) % 40]
    pairs = [Pair(np.array(ids[:3]), np.array(continuation)) for continuation in (ids[3:], last_differs)]
    assert Scorer(model, 256).score(pairs).greedy.tolist() == [True, False]


def test_a_model_that_gives_no_number_is_an_error() -> None:
    model = tiny_model(40, CONTEXT_LENGTH)
    model.output.weight.data.fill_(float("nan"))
    with pytest.raises(NumericalError, match="not a number"):
        Scorer(model, 256).score(random_pairs(3))


def test_a_context_ends_before_its_whitespace_and_an_empty_one_is_the_end_of_document() -> None:
    cases = {("", "a"): ([256], [97]), (" ", "a"): ([256], [32, 97]), ("a", ""): ([97], []), ("", ""): ([256], [])}
    assert {texts: pair_of(ByteEncoder(), *texts) for texts in cases} == cases
    crossing = ByteEncoder(crossing=(b" y",))
    assert pair_of(crossing, "no ", "yes") == pair_of(crossing, "no", " yes")


@pytest.mark.parametrize("length", [1, 63, 64, 65, 96, 97, 200])
def test_windows_score_each_token_once_after_the_tokens_before_it(length: int) -> None:
    ids = np.arange(1, length + 1)
    parts = windows(ids, 0, CONTEXT_LENGTH)
    assert np.concatenate([part.continuation for part in parts]).tolist() == ids.tolist()
    for part in parts:
        whole = np.concatenate([part.context, part.continuation])
        assert np.array_equal(whole, np.arange(whole[0], whole[0] + len(whole)))
        assert len(part.context)
        assert len(whole) - 1 <= CONTEXT_LENGTH
        assert part.context[0] == 0 or len(part.context) > CONTEXT_LENGTH // 2


def test_a_context_too_long_loses_its_beginning_by_whole_eighths() -> None:
    pairs = [Pair(np.arange(500), np.arange(size)) for size in (9, 12, 16)]
    parts = [fit_pair(pair, CONTEXT_LENGTH)[0] for pair in pairs]
    assert [part.context[0] for part in parts] == [444, 452, 452]
    assert all(part.context[-1] == 499 for part in parts)
    assert all(len(part.context) + len(part.continuation) - 1 <= CONTEXT_LENGTH for part in parts)


def test_a_continuation_longer_than_the_context_length_is_scored_whole() -> None:
    parts = fit_pair(Pair(np.arange(10), np.arange(150)), CONTEXT_LENGTH)
    assert sum(len(part.continuation) for part in parts) == 150
    assert parts[0].context.tolist() == [9]


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    save_model(tiny_model(257), tmp_path)
    return tmp_path


def test_tf32_is_refused_on_a_cpu_and_set_on_a_gpu_for_scores_alone(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigurationError, match=r"evaluation\.precision is tf32, which GPUs have, .* take fp32"):
        load_checkpoint_model(checkpoint, "cpu", "tf32")
    precisions: list[str] = []
    monkeypatch.setattr("paribus.evaluation.scoring.resolve_device", lambda *_: torch.device("cuda", 0))
    monkeypatch.setattr(torch.nn.Module, "to", lambda model, device: model)
    monkeypatch.setattr(torch, "set_float32_matmul_precision", precisions.append)
    for precision in ("tf32", "fp32"):
        load_checkpoint_model(checkpoint, "cuda", precision)
    assert precisions == ["high", "highest"]
    monkeypatch.undo()
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        make_stepper(tiny_model(40), TrainingConfig(device="cpu", precision="fp32"))
        assert torch.get_float32_matmul_precision() == "highest"
    finally:
        torch.set_float32_matmul_precision(before)


def test_a_padded_batch_has_at_most_so_many_tokens_or_one_item() -> None:
    lengths = [9, 7, 5, 5, 1]
    cases = {1: [1] * 5, 9: [1] * 5, 18: [2, 3], 20: [2, 3], 27: [3, 2], 100: [5]}
    for tokens, sizes in cases.items():
        parts = batches(lengths, lambda length: length, tokens)
        assert [len(part) for part in parts] == sizes, tokens
        assert [length for part in parts for length in part] == lengths


EVALUATION = EvaluationConfig(continuation_items=12, heldout_documents=10, shots=(0,), average_checkpoints=3)
STEPS = (10, 20, 30, 40)


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.train([" ".join(WORDS)] * 3, vocab_size=320, special_tokens=["<|endoftext|>"])


@pytest.fixture
def root(tokenizer: Tokenizer, tmp_path: Path) -> Path:
    """A folder with corpus, tasks and checkpoints of unlike weights."""
    write_drawn_corpus(tmp_path)
    build_tasks(evaluation_context(tmp_path, EVALUATION, "tasks", "corpus"))
    write_checkpoints(tmp_path, tokenizer, STEPS)
    return tmp_path


def scored(root: Path, name: str, evaluation: EvaluationConfig) -> tuple[dict[int, dict[str, float]], dict[str, Any]]:
    """Bits of each held-out document by checkpoint, and what is said of the embeddings."""
    context = evaluation_context(root, evaluation, name, "training", "tasks", "corpus")
    training = replace(context.config.training, checkpoints=len(STEPS))
    build_scores(replace(context, config=replace(context.config, training=training)))
    bits: dict[int, dict[str, float]] = {}
    for row in pq.read_table(root / name / "heldout.parquet").to_pylist():
        bits.setdefault(row["checkpoint"], {})[row["document"]] = row["bits"]
    return bits, json.loads((root / name / "statistics.json").read_text())["embeddings"]


def test_each_scored_model_is_the_mean_of_the_checkpoints_up_to_it(root: Path) -> None:
    single = replace(EVALUATION, average_checkpoints=1)
    bits, embeddings = scored(root, "averaged", replace(EVALUATION, last_checkpoints=2))
    of_last, embeddings_of_last = scored(root, "last", single)
    paths = {step: root / "training" / f"step_{step:08d}" for step in STEPS}
    means = averaged_checkpoints(paths, 3, root / "work", ALONE)
    paths[40].rename(root / "last_checkpoint")
    shutil.copytree(means[40], paths[40])
    of_mean, _ = scored(root, "mean", single)
    assert list(bits) == list(means) == [30, 40]
    assert bits[40] == of_mean[40] != bits[30]
    assert bits[40] != pytest.approx(of_last[40], rel=1e-2)
    assert embeddings["uniformity"] != embeddings_of_last["uniformity"]


@pytest.mark.parametrize("config", [STAGE_MODEL, TRANSLATOR])
def test_every_parameter_of_an_average_is_the_mean_of_those_of_its_models(config: ModelConfig, tmp_path: Path) -> None:
    models = [build_model(config, 257, seed, eos_id=256) for seed in (1, 2, 3)]
    paths = {step: tmp_path / f"step_{step:08d}" for step in (1, 2, 3)}
    for model, path in zip(models, paths.values(), strict=True):
        save_model(model, path)
    averaged = load_model(averaged_checkpoints(paths, 3, tmp_path / "work", ALONE)[3])
    parameters = [dict(model.named_parameters()) for model in models]
    for name, parameter in averaged.named_parameters():
        mean = torch.stack([each[name] for each in parameters]).double().mean(dim=0)
        assert torch.allclose(parameter.double(), mean, atol=1e-7), name


def test_checkpoints_of_different_models_are_refused(root: Path, tokenizer: Tokenizer) -> None:
    first = root / "training" / "step_00000020"
    save_model(build_model(replace(STAGE_MODEL, ffn_width=16), tokenizer.vocab_size, 1, eos_id=0), first)
    with pytest.raises(DataError, match=r"step_00000020 and .*step_00000030 are no checkpoints of one model"):
        scored(root, "averaged", EVALUATION)
