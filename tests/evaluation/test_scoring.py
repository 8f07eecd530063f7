"""Log-probabilities of continuations: against one forward pass a token."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import load_file

from paribus.checks import check_combinations
from paribus.config.groups.evaluation import EvaluationConfig
from paribus.config.groups.model import GPTNeoXModel, LlamaModel
from paribus.errors import ConfigurationError, DataError, InfrastructureError, NumericalError
from paribus.evaluation.pairs import BranchBatch, Pair, encode_choices, fit_pair, group_pairs, make_batch, windows
from paribus.evaluation.scoring import Scorer, averaged_checkpoints, computed, load_checkpoint_model
from paribus.evaluation.stage import build_scores, build_tasks
from paribus.modeling.device import batches
from paribus.modeling.models import build_model, load_model, save_model
from paribus.stage import StageContext
from paribus.tokenization import Tokenizer
from paribus.training.distributed import ALONE
from support.evaluations import (
    STAGE_MODEL,
    WORDS,
    ByteEncoder,
    brute_force,
    stage_context,
    tiny_model,
    write_checkpoints,
    write_drawn_corpus,
)
from support.models import ENCODER_DECODER
from support.run_config import run_config
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
def test_scores_are_those_of_one_forward_pass_a_token(family: Any, number: int) -> None:
    model, pairs = tiny_model(40, CONTEXT_LENGTH, family=family), random_pairs(number)
    scores = Scorer(model, batch_tokens=96).score(pairs)
    for place, pair in enumerate(pairs):
        expected, greedy = brute_force(model, pair.context.tolist(), pair.continuation.tolist())
        assert scores.log_probability[place] == pytest.approx(expected, abs=1e-4)
        assert bool(scores.greedy[place]) == greedy


def test_scores_do_not_depend_on_the_batch_or_on_shared_contexts() -> None:
    model, pairs = tiny_model(40, CONTEXT_LENGTH), random_pairs(40)
    together = Scorer(model, batch_tokens=2000).score(pairs).log_probability
    alone = [Scorer(model, batch_tokens=1).score([pair]).log_probability[0] for pair in pairs]
    np.testing.assert_allclose(together, alone, atol=1e-4)


@pytest.mark.parametrize("sequences", [1, 3])
def test_a_batch_that_does_not_fit_is_halved_and_scores_the_same(
    sequences: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, pairs, counts = tiny_model(40, CONTEXT_LENGTH), random_pairs(23), list[int]()
    expected = Scorer(model, batch_tokens=200).score(pairs)
    whole, refused = Scorer._hidden, []

    def short(self: Scorer, batch: BranchBatch, device: torch.device) -> torch.Tensor:
        if len(batch.ids) > sequences:
            refused.append(len(batch.ids))
            raise torch.OutOfMemoryError("CUDA out of memory")
        return whole(self, batch, device)

    monkeypatch.setattr(Scorer, "_hidden", short)
    found = Scorer(model, batch_tokens=200).score(pairs, counts.append)
    assert refused and sum(counts) == len(pairs)
    assert found.log_probability == pytest.approx(expected.log_probability, abs=1e-5)
    assert found.greedy.tolist() == expected.greedy.tolist()
    asked = [pair for pair in pairs if len(pair.continuation)]
    assert sorted(place for place, _ in Scorer(model, batch_tokens=200).predictions(asked)) == list(range(len(asked)))


def test_a_context_is_computed_once_for_its_choices() -> None:
    context = np.arange(30)
    pairs = [Pair(context, np.arange(size)) for size in (1, 5, 9, 12)] + [Pair(context[1:], np.arange(3))]
    groups = group_pairs(pairs)
    assert sorted(len(group.members) for group in groups) == [1, 4]
    assert max(group.length for group in groups) == 30 + 0 + 4 + 8 + 11
    batch = make_batch(groups)
    assert batch.positions.max() == 30 + 11 - 1


def test_greedy_says_whether_every_token_is_the_most_probable() -> None:
    model, ids = tiny_model(40, CONTEXT_LENGTH), [3, 1, 4]
    for _ in range(6):
        with torch.inference_mode():
            ids.append(int(model.logits(torch.tensor([ids]))[0, -1].argmax()))
    other = [*ids[:-1], (ids[-1] + 1) % 40]
    pairs = [Pair(np.array(ids[:3]), np.array(ids[3:])), Pair(np.array(ids[:3]), np.array(other[3:]))]
    assert Scorer(model, 256).score(pairs).greedy.tolist() == [True, False]


def test_a_model_that_gives_no_number_is_an_error() -> None:
    model = tiny_model(40, CONTEXT_LENGTH)
    model.output.weight.data.fill_(float("nan"))
    with pytest.raises(NumericalError, match="not a number"):
        Scorer(model, 256).score(random_pairs(3))


def test_whitespace_at_the_end_of_a_context_goes_to_the_continuation() -> None:
    encoder = ByteEncoder(crossing=(b" y",))
    assert pair_of(encoder, "no ", "yes") == pair_of(encoder, "no", " yes")


def test_an_empty_context_is_the_end_of_document_token_and_nothing_crashes() -> None:
    encoder = ByteEncoder()
    assert pair_of(encoder, "", "a") == ([256], [97])
    assert pair_of(encoder, " ", "a") == ([256], [32, 97])
    assert pair_of(encoder, "a", "") == ([97], [])
    assert pair_of(encoder, "", "") == ([256], [])


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
    kept = [fit_pair(pair, CONTEXT_LENGTH)[0] for pair in pairs]
    assert [part.context[0] for part in kept] == [444, 452, 452]
    assert all(part.context[-1] == 499 for part in kept)
    assert all(len(part.context) + len(part.continuation) - 1 <= CONTEXT_LENGTH for part in kept)


def test_a_continuation_longer_than_the_context_length_is_scored_whole() -> None:
    parts = fit_pair(Pair(np.arange(10), np.arange(150)), CONTEXT_LENGTH)
    assert sum(len(part.continuation) for part in parts) == 150
    assert parts[0].context.tolist() == [9]


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    save_model(tiny_model(257), tmp_path)
    return tmp_path


def test_bfloat16_scores_are_those_of_float32_up_to_its_rounding_and_not_the_same(checkpoint: Path) -> None:
    pairs = [Pair(np.arange(5, 5 + size), np.arange(size, size + 4)) for size in range(1, 20)]
    exact, half = (
        Scorer(load_checkpoint_model(checkpoint, "cpu", precision), 128).score(pairs).log_probability
        for precision in ("fp32", "bf16")
    )
    assert 1e-4 < np.abs(half / exact - 1).max() < 0.05


def test_tf32_is_refused_on_a_cpu_and_set_on_a_gpu(checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigurationError, match=r"evaluation\.precision is tf32, which GPUs have, .* take fp32"):
        load_checkpoint_model(checkpoint, "cpu", "tf32")
    told: list[str] = []
    module = "paribus.evaluation.scoring"
    monkeypatch.setattr(f"{module}.resolve_device", lambda *_: torch.device("cuda", 0))
    monkeypatch.setattr(torch.nn.Module, "to", lambda model, device: model)
    monkeypatch.setattr(torch, "set_float32_matmul_precision", told.append)
    for precision in ("tf32", "fp32"):
        load_checkpoint_model(checkpoint, "cuda", precision)
    assert told == ["high", "highest"]


def test_an_encoder_decoder_is_scored_in_float32_only() -> None:
    config = run_config(model=ENCODER_DECODER, evaluation=EvaluationConfig(precision="bf16", tasks=()))
    assert ("evaluation.precision", "bf16, but an encoder_decoder is scored in fp32 only") in check_combinations(config)


def test_a_training_after_scores_in_tf32_multiplies_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    from paribus.config.groups.training import TrainingConfig
    from support.steps import make_stepper

    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        make_stepper(tiny_model(40), TrainingConfig(device="cpu", precision="fp32"))
        assert torch.get_float32_matmul_precision() == "highest"
    finally:
        torch.set_float32_matmul_precision(before)


class Meeting:
    """Threads in the place of processes: what each tells is gathered when all have."""

    def __init__(self, size: int) -> None:
        self.told: list[list[Any]] = []
        self.barrier = Barrier(size, timeout=20)

    def gathered(self, rank: int, size: int, found: Any, turn: int) -> list[Any]:
        if rank == 0:
            self.told.append([None] * size)
        self.barrier.wait()
        self.told[turn][rank] = found
        self.barrier.wait()
        return self.told[turn]


class Member:
    """One of them, as `Host` is."""

    def __init__(self, meeting: Meeting, rank: int, size: int) -> None:
        self._meeting, self.rank, self.size, self._turn = meeting, rank, size, -1

    def gathered(self, found: Any) -> list[Any]:
        self._turn += 1
        return self._meeting.gathered(self.rank, self.size, found, self._turn)


def doubled(batch: Sequence[int]) -> list[int]:
    return [2 * item for item in batch]


def shared(parts_of: Sequence[Sequence[Sequence[int]]], compute: Any = doubled) -> list[Any]:
    """What each of so many processes with its `parts` finds, or raises, and what it tells of progress."""
    meeting, size = Meeting(len(parts_of)), len(parts_of)
    results: list[Any] = [None] * size

    def run(rank: int) -> None:
        counts: list[int] = []
        member: Any = Member(meeting, rank, size)
        try:
            ids = lambda item: (np.array([item]),)  # noqa: E731
            found = list(computed(member, "testing", parts_of[rank], compute, ids, counts.append))
            results[rank] = (found, counts)
        except InfrastructureError as error:
            results[rank] = error

    threads = [Thread(target=run, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


@pytest.mark.parametrize(
    ("tokens", "sizes"), [(1, [1] * 5), (9, [1] * 5), (18, [2, 3]), (20, [2, 3]), (27, [3, 2]), (100, [5])]
)
def test_a_batch_has_so_many_tokens_when_it_is_padded_or_is_one_item(tokens: int, sizes: list[int]) -> None:
    lengths = [9, 7, 5, 5, 1]
    parts = batches(lengths, lambda length: length, tokens)
    assert [len(part) for part in parts] == sizes
    assert [length for part in parts for length in part] == lengths


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_all_processes_have_all_results_in_the_order_of_one(size: int) -> None:
    parts = [[1, 2, 3], [4, 5], [6], [7, 8, 9], [10]]
    alone = list(computed(ALONE, "testing", parts, doubled, lambda item: ()))
    for found, counts in shared([parts] * size):
        assert found == alone
        assert sum(counts) == 10


def test_processes_that_have_different_items_are_told_so_before_they_compute() -> None:
    for error in shared([[[1, 2], [3]], [[1, 2], [4]]]):
        assert isinstance(error, InfrastructureError)
        assert "different items" in str(error)


EVALUATION = EvaluationConfig(continuation_items=12, heldout_documents=10, shots=(0,), average_checkpoints=3)
STEPS = (10, 20, 30, 40)
WEIGHTS = "model.safetensors"


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.train([" ".join(WORDS)] * 3, vocab_size=320, special_tokens=["<|endoftext|>"])


@pytest.fixture
def root(tokenizer: Tokenizer, tmp_path: Path) -> Path:
    """With corpus, tasks and checkpoints of unlike weights."""
    write_drawn_corpus(tmp_path)
    build_tasks(stage_context(tmp_path, EVALUATION, "tasks", "corpus"))
    write_checkpoints(tmp_path, tokenizer, STEPS)
    return tmp_path


def context(root: Path, evaluation: EvaluationConfig, name: str) -> StageContext:
    found = stage_context(root, evaluation, name, "training", "tasks", "corpus")
    return replace(found, config=replace(found.config, training=replace(found.config.training, checkpoints=4)))


def values(root: Path, name: str) -> dict[int, dict[str, float]]:
    """Bits of each held-out document by checkpoint."""
    found: dict[int, dict[str, float]] = {}
    for row in pq.read_table(root / name / "heldout.parquet").to_pylist():
        found.setdefault(row["checkpoint"], {})[row["document"]] = row["bits"]
    return found


def mean_by_hand(root: Path, steps: tuple[int, ...], target: Path) -> None:
    """A checkpoint with the mean of each parameter, taken from the models and not from their files."""
    models = [load_model(root / "training" / f"step_{step:08d}") for step in steps]
    with torch.no_grad():
        for name, parameter in models[0].named_parameters():
            others = [dict(model.named_parameters())[name] for model in models]
            parameter.copy_(torch.stack(others).double().mean(dim=0))
    save_model(models[0], target)


def test_a_scored_model_is_the_mean_of_the_last_checkpoints(root: Path, tokenizer: Tokenizer) -> None:
    result = build_scores(context(root, EVALUATION, "averaged"))
    alone = root / "other"
    for step in (10, 20):
        directory = alone / "training" / f"step_{step:08d}"
        mean_by_hand(root, (20, 30, 40), directory)
        tokenizer.save(directory / "tokenizer")
    for name in ("corpus", "tasks"):
        (alone / name).symlink_to(root / name)
    single = replace(EVALUATION, average_checkpoints=1)
    expected = build_scores(stage_context(alone, single, "evaluation", "training", "tasks", "corpus"))
    assert result["checkpoints"] == [40]
    assert result["metrics"] == pytest.approx(expected["metrics"], rel=1e-5)
    assert values(root, "averaged")[40] == pytest.approx(values(alone, "evaluation")[20], rel=1e-5)
    build_scores(context(root, single, "last"))
    assert values(root, "averaged")[40] != pytest.approx(values(root, "last")[40], rel=1e-2)
    about = [json.loads((root / name / "statistics.json").read_text())["embeddings"] for name in ("averaged", "last")]
    assert about[0]["uniformity"] != about[1]["uniformity"]


def test_each_of_several_scored_models_is_the_mean_of_those_up_to_it(root: Path) -> None:
    result = build_scores(context(root, replace(EVALUATION, last_checkpoints=2), "both"))
    assert result["checkpoints"] == [30, 40]
    build_scores(context(root, EVALUATION, "last"))
    assert values(root, "both")[40] == values(root, "last")[40] != values(root, "both")[30]


def test_what_a_killed_evaluation_averaged_is_not_taken_for_whole(root: Path) -> None:
    paths = {step: root / "training" / f"step_{step:08d}" for step in STEPS}
    torn = root / "work" / "step_00000040.partial"
    torn.mkdir(parents=True)
    (torn / WEIGHTS).write_bytes(b"half")
    found = averaged_checkpoints(paths, 3, root / "work", ALONE)
    assert list(found) == [30, 40]
    assert sorted(path.name for path in (root / "work").iterdir()) == ["step_00000030", "step_00000040"]
    assert {path.name for path in found[40].iterdir()} == {path.name for path in paths[40].iterdir()}
    assert averaged_checkpoints(paths, 1, root / "none", ALONE) == paths
    assert not (root / "none").exists()


def test_an_encoder_decoder_is_averaged_too(tmp_path: Path) -> None:
    models = [build_model(TRANSLATOR, 257, seed, eos_id=256) for seed in (1, 2)]
    paths = {}
    for step, model in enumerate(models, start=1):
        paths[step] = tmp_path / f"step_{step:08d}"
        save_model(model, paths[step])
    found = dict(load_model(averaged_checkpoints(paths, 2, tmp_path / "work", ALONE)[2]).named_parameters())
    for (name, one), (_, other) in zip(*(model.named_parameters() for model in models), strict=True):
        assert torch.allclose(found[name], (one + other) / 2, atol=1e-7), name


def test_checkpoints_of_different_models_are_refused(root: Path, tokenizer: Tokenizer) -> None:
    first = root / "training" / "step_00000020"
    save_model(build_model(replace(STAGE_MODEL, ffn_width=16), tokenizer.vocab_size, 1, eos_id=0), first)
    with pytest.raises(DataError, match=r"step_00000020 and .*step_00000030 are no checkpoints of one model"):
        build_scores(context(root, EVALUATION, "averaged"))
    assert load_file(first / WEIGHTS)
