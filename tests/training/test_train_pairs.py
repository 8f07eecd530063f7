"""An encoder-decoder trained on pairs by the stage `training`."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from transformers import AutoModelForSeq2SeqLM

from paribus.config.groups.training import EqualStepsBudget
from paribus.modeling.models import build_model
from paribus.modeling.parameters import parameter_count, training_flops
from paribus.ordering.contexts import pack
from paribus.ordering.orders import Order
from paribus.ordering.pairs import PairContexts
from paribus.ordering.shuffle import ShuffledContexts
from paribus.tokenization.encoded_corpus import EncodedCorpus
from paribus.training import data
from paribus.training.data import Batches, BatchReader, context_targets
from paribus.training.losses import SummedPairLoss
from paribus.training.step import DropoutSeeds
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


def sides(sources: Any, targets: Any) -> list[tuple[list[int], list[int]]]:
    """The tokens of each row, without padding."""
    return [
        (left[left >= 0].tolist(), right[right >= 0].tolist()) for left, right in zip(sources, targets, strict=True)
    ]


def test_row_is_a_source_and_a_target_each_with_its_end_and_cut_at_the_context(tmp_path: Path) -> None:
    contexts, texts = pairs_of(tmp_path, context_length=5)
    every = np.arange(contexts.count)
    sources, targets = contexts.rows(every)
    expected = [([*source.encode()[:4], EOS], [*target.encode(), EOS][:5]) for source, target in texts]
    assert sides(sources, targets) == expected
    assert sources.shape[1] == targets.shape[1] == 5
    assert contexts.source_tokens(every).tolist() == [len(source) for source, _ in expected]
    assert contexts.target_tokens(every).tolist() == [len(target) for _, target in expected]
    lengths = np.append(np.ones(256, dtype=np.int64), 0)
    assert contexts.source_bytes(lengths, every).tolist() == [min(5, len(target)) for _, target in texts]


def test_rows_of_a_batch_do_not_depend_on_processes_and_are_trimmed_in_each_micro_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data, "COLUMN_MULTIPLE", 1)
    contexts, _ = pairs_of(tmp_path)
    batches = Batches(contexts, 12, ShuffledContexts(contexts.count, 1))
    expected = sorted(sides(*contexts.rows(batches.indices(4))))
    for processes in (1, 2, 3):
        readers = [BatchReader(batches, context_targets(contexts), rank, processes) for rank in range(processes)]
        shares = [reader.read(4, batches.indices(4)) for reader in readers]
        parts = [share.part(slice(row, row + 2)) for share in shares for row in range(0, len(share.inputs), 2)]
        assert sorted(pair for part in parts for pair in sides(*part)) == expected
        assert not any((side < 0).all(dim=0).any() for part in parts for side in part)


def test_loss_is_that_of_the_logits_of_each_pair_alone(tmp_path: Path) -> None:
    contexts, _ = pairs_of(tmp_path)
    rows = [torch.from_numpy(part) for part in contexts.rows(np.arange(9))]
    rows[0][:, 0] = 0  # a token like others: only -1 is padding
    model = build_model(STEADY, 257, 0, eos_id=EOS).eval()
    loss, alone = SummedPairLoss(model)(*rows), 0.0
    for source_ids, target_ids in sides(*rows):
        source, target, begun = (torch.tensor([ids]) for ids in (source_ids, target_ids, [EOS, *target_ids[:-1]]))
        logits = model(input_ids=source, decoder_input_ids=begun, use_cache=False).logits[0]
        alone += torch.nn.functional.cross_entropy(logits, target[0], reduction="sum").item()
    assert loss.item() == pytest.approx(alone, rel=1e-5)


def test_words_are_learnt_to_be_written_backwards_and_the_checkpoint_opens_anywhere(tmp_path: Path) -> None:
    training = replace(TRAINING, global_batch=16, micro_batch=8, checkpoint_every=200, label_smoothing=0.1)
    run = pair_config(training=training)
    result = execute(tmp_path, "run", write_pair_inputs(tmp_path), replace(run, budget=EqualStepsBudget(steps=150)))
    assert result["final_loss"] < 0.5 * np.log(257)
    assert result["parameters"] == parameter_count(TRANSLATOR, 257)
    contexts = json.loads((tmp_path / "run" / "output" / "contexts.json").read_text())
    assert result["source_tokens"] == contexts["source_tokens"] == result["tokens"]
    assert result["positions"] == 2 * result["tokens"]
    flops = training_flops(TRANSLATOR, 257, result["tokens"], source_tokens=result["source_tokens"])
    assert result["flops"] == pytest.approx(flops, rel=0.05)
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


def test_dropout_is_a_function_of_seed_step_process_and_micro_batch() -> None:
    def draw(seed: int, step: int, process: int, micro_batch: int) -> tuple[float, ...]:
        DropoutSeeds(seed, process).begin(step, micro_batch)
        return tuple(torch.rand(4).tolist())

    before = torch.get_rng_state()
    with DropoutSeeds(1, 0).step(torch.device("cpu")):
        assert draw(1, 2, 0, 0) == draw(1, 2, 0, 0)
        keys = [(1, 2, 0, 0), (2, 2, 0, 0), (1, 3, 0, 0), (1, 2, 1, 0), (1, 2, 0, 1)]
        assert len({draw(*key) for key in keys}) == 5
    assert torch.equal(torch.get_rng_state(), before)
