"""An encoder-decoder trained on pairs by the stage `training`."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from transformers import AutoModelForSeq2SeqLM

from paribus.config.groups.model import EncoderDecoderModel, SeedsConfig
from paribus.config.groups.training import EqualFlopsBudget, EqualStepsBudget, EqualTextBudget, EqualTokensBudget
from paribus.modeling.models import build_model
from paribus.modeling.parameters import parameter_count, training_flops
from paribus.ordering.contexts import pack
from paribus.ordering.orders import Order
from paribus.ordering.pairs import PairContexts
from paribus.ordering.shuffle import ShuffledContexts
from paribus.tokenization.encoded_corpus import EncodedCorpus
from paribus.training.data import Batches, BatchReader, context_targets
from paribus.training.losses import SummedPairLoss, summed_cross_entropy
from paribus.training.step import DropoutSeeds
from support.steps import make_batch, make_stepper
from support.training_inputs import TRAINING, TRANSLATOR, execute, pair_config, pair_texts, write_pair_inputs

EOS = 256
STEADY = replace(TRANSLATOR, dropout=0.0)


def pairs_of(root: Path, context_length: int = 8) -> tuple[PairContexts, list[tuple[str, str]]]:
    """Rows of pairs, and the pairs in the sequence of the order."""
    inputs, config = write_pair_inputs(root), pair_config()
    corpus, order = EncodedCorpus(inputs["tokens"]), Order(inputs["order"])
    rows = pack(config.packing, corpus.ids, corpus.offsets, order, EOS, context_length, corpus.source_lengths)
    texts = pair_texts(len(corpus))
    assert isinstance(rows, PairContexts)
    return rows, [texts[document] for document in order.documents]


def test_a_row_is_a_source_and_a_target_each_with_its_end_and_cut_at_the_context(tmp_path: Path) -> None:
    contexts, texts = pairs_of(tmp_path, context_length=5)
    sources, targets = contexts.rows(np.arange(contexts.count))
    for (source, target), left, right in zip(texts, sources.tolist(), targets.tolist(), strict=True):
        expected = [*source.encode()[:4], EOS], [*target.encode(), EOS][:5]
        assert [[token for token in row if token >= 0] for row in (left, right)] == list(expected)
    assert sources.shape[1] == targets.shape[1] == 5
    np.testing.assert_array_equal(contexts.target_tokens(np.arange(contexts.count)), (targets >= 0).sum(axis=1))
    np.testing.assert_array_equal(contexts.source_tokens(np.arange(contexts.count)), (sources >= 0).sum(axis=1))
    lengths = np.append(np.ones(256, dtype=np.int64), 0)
    np.testing.assert_array_equal(
        contexts.source_bytes(lengths, np.arange(contexts.count)), [min(5, len(target)) for _, target in texts]
    )


def test_the_rows_of_a_batch_do_not_depend_on_processes_and_are_trimmed_in_each_micro_batch(tmp_path: Path) -> None:
    contexts, _ = pairs_of(tmp_path)
    batches = Batches(contexts, 12, ShuffledContexts(contexts.count, 1))
    rows = zip(*contexts.rows(batches.indices(4)), strict=True)
    expected = sorted((row[row >= 0].tolist(), other[other >= 0].tolist()) for row, other in rows)
    for processes in (1, 2, 3):
        readers = [BatchReader(batches, context_targets(contexts), rank, processes) for rank in range(processes)]
        shares = [reader.read(4, batches.indices(4)) for reader in readers]
        parts = [share.part(slice(row, row + 2)) for share in shares for row in range(0, len(share.inputs), 2)]
        read = [pair for part in parts for pair in zip(*part, strict=True)]
        assert sorted((row[row >= 0].tolist(), other[other >= 0].tolist()) for row, other in read) == expected
        assert all((side < 0).all(dim=0).sum() < 8 for part in parts for side in part)


def test_the_loss_is_that_of_the_logits_of_each_pair_alone(tmp_path: Path) -> None:
    contexts, _ = pairs_of(tmp_path)
    rows = [torch.from_numpy(part) for part in contexts.rows(np.arange(9))]
    model = build_model(STEADY, 257, 0, eos_id=EOS).eval()
    loss, alone = SummedPairLoss(model)(*rows), 0.0
    for left, right in zip(*rows, strict=True):
        source, target = left[left >= 0][None], right[right >= 0][None]
        begun = torch.cat([torch.tensor([[EOS]]), target[:, :-1]], dim=1)
        logits = model(input_ids=source, decoder_input_ids=begun, use_cache=False).logits[0]
        alone += torch.nn.functional.cross_entropy(logits, target[0], reduction="sum").item()
    assert loss.item() == pytest.approx(alone, rel=1e-5)


def test_label_smoothing_is_that_of_the_whole_logits() -> None:
    generator = torch.Generator().manual_seed(1)
    hidden, output = (torch.randn(n, 16, generator=generator, requires_grad=True) for n in (3_000, 50))
    targets = torch.randint(-1, 50, (3_000,), generator=generator)
    ours = summed_cross_entropy(hidden, output, targets, 0.1)
    whole = torch.nn.functional.cross_entropy(
        hidden @ output.T, targets, reduction="sum", ignore_index=-1, label_smoothing=0.1
    )
    torch.testing.assert_close(ours, whole, rtol=1e-5, atol=1e-3)
    for mine, theirs in zip(*(torch.autograd.grad(loss, (hidden, output)) for loss in (ours, whole)), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-4)


def test_words_are_learnt_to_be_written_backwards_and_the_checkpoint_opens_anywhere(tmp_path: Path) -> None:
    training = replace(TRAINING, global_batch=16, micro_batch=8, checkpoint_every=200, label_smoothing=0.1)
    run = pair_config(training=training)
    result = execute(tmp_path, "run", write_pair_inputs(tmp_path), replace(run, budget=EqualStepsBudget(steps=150)))
    assert result["final_loss"] < 0.5 * np.log(257)
    assert result["parameters"] == parameter_count(TRANSLATOR, 257)
    contexts = json.loads((tmp_path / "run" / "output" / "contexts.json").read_text())
    assert result["source_tokens"] == contexts["source_tokens"] == result["tokens"]
    assert result["positions"] == 2 * result["tokens"]
    directory = tmp_path / "run" / "output" / "step_00000150"
    opened, info = AutoModelForSeq2SeqLM.from_pretrained(directory, output_loading_info=True)
    assert not info["unexpected_keys"]
    stored = load_file(directory / "model.safetensors")
    state = opened.state_dict()
    assert all(np.array_equal(state[name].numpy(), stored[name]) for name in stored)
    moments = load_file(tmp_path / "run" / "output" / "state" / "optimizer.safetensors")
    assert not [name for name in moments if "embed_positions" in name]
    right = 0
    for source, target in pair_texts(20):
        written = opened.eval().generate(
            torch.tensor([[*source.encode(), EOS]]), max_new_tokens=8, num_beams=1, do_sample=False
        )[0, 1:]
        right += written[written < EOS].tolist() == list(target.encode())
    assert right >= 5


@pytest.mark.parametrize(
    "budget", [EqualTokensBudget(tokens=100), EqualTextBudget(text=80), EqualFlopsBudget(flops=20_000_000)]
)
def test_a_budget_of_any_unit_counts_targets_and_not_their_padding(tmp_path: Path, budget: object) -> None:
    result = execute(tmp_path, "run", write_pair_inputs(tmp_path), replace(pair_config(), budget=budget))
    texts = pair_texts(60)
    assert result["tokens"] >= 100 or not isinstance(budget, EqualTokensBudget)
    assert result["text_bytes"] == pytest.approx(result["tokens"] - result["steps"] * 4)
    epoch = sum(len(target) + 1 for _, target in texts)
    assert result["flops"] == training_flops(TRANSLATOR, 257, epoch, epoch) * 4 // 60 * result["steps"]
    lines = (tmp_path / "run" / "output" / "metrics.jsonl").read_text().splitlines()
    assert json.loads(lines[-1])["train/tokens"] == result["tokens"]


def test_what_dropout_drops_is_a_function_of_seed_step_process_and_micro_batch() -> None:
    def drawn(seed: int, step: int, process: int, micro_batch: int) -> list[float]:
        DropoutSeeds(seed, process).begin(step, micro_batch)
        return torch.rand(4).tolist()

    before = torch.get_rng_state()
    with DropoutSeeds(1, 0).step(torch.device("cpu")):
        first = drawn(1, 2, 0, 0)
        assert first == drawn(1, 2, 0, 0)
        assert (
            len({tuple(drawn(*key)) for key in [(1, 2, 0, 0), (2, 2, 0, 0), (1, 3, 0, 0), (1, 2, 1, 0), (1, 2, 0, 1)]})
            == 5
        )
    assert torch.equal(torch.get_rng_state(), before)


def test_the_seed_of_dropout_changes_what_is_dropped_alone(tmp_path: Path) -> None:
    inputs = write_pair_inputs(tmp_path)
    runs = {"same": SeedsConfig(), "named": SeedsConfig(dropout=0), "other": SeedsConfig(dropout=1)}
    for name, seeds in runs.items():
        execute(tmp_path, name, inputs, replace(pair_config(), seeds=seeds))
    read = {name: (tmp_path / name / "output" / "contexts.json").read_bytes() for name in runs}
    assert read["same"] == read["named"] == read["other"]
    losses = {
        name: [json.loads(line)["train/loss"] for line in (tmp_path / name / "output" / "metrics.jsonl").open()]
        for name in runs
    }
    assert losses["same"] == losses["named"]
    assert losses["same"] != losses["other"]


def test_a_table_of_positions_is_neither_trained_nor_decayed() -> None:
    model = build_model(EncoderDecoderModel(**vars(STEADY)), 257, 0, eos_id=EOS)
    table = model.model.encoder.embed_positions.weight
    before, shared = table.clone(), model.model.shared.weight.clone()
    stepper = make_stepper(model, replace(TRAINING, label_smoothing=0.1))
    rows = np.random.default_rng(1).integers(0, 257, (4, 8))
    assert stepper.step(make_batch(rows, rows), rate=0.1).problem is None
    assert torch.equal(table, before)
    assert not torch.equal(model.model.shared.weight, shared)
