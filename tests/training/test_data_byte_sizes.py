"""Contexts and batches that are given in bytes: what a training makes of them, and what arms then have in common."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paribus.config.groups.ordering import ConcatenatePacking
from paribus.config.groups.training import EqualTextBudget, TrainingConfig
from paribus.config.schema import RunConfig
from paribus.tokenization import Tokenizer
from paribus.tokenization.encoded_corpus import EncodedCorpus
from support.stages import files
from support.training_inputs import MODEL, TRAINING, config, execute, write_inputs

TEXT = "all else being equal "
BUDGET = EqualTextBudget(text=2_000)
IN_BYTES = replace(TRAINING, global_batch=0, batch_bytes=120)


@pytest.fixture(scope="module")
def arms(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Path]]:
    """The same text in bytes, and in tokens of about two bytes."""
    root = tmp_path_factory.mktemp("arms")
    special = ("<|endoftext|>",)
    tokenizers = {
        "bytes": Tokenizer.train((), algorithm="bytes", special_tokens=special),
        "bpe": Tokenizer.train([TEXT] * 8, algorithm="bpe", vocab_size=266, special_tokens=special),
    }
    for name in tokenizers:
        (root / name).mkdir()
    return {name: write_inputs(root / name, tokenizer=tokenizer) for name, tokenizer in tokenizers.items()}


def read(inputs: dict[str, Path]) -> list[int]:
    """The slow reference: bytes of each token in the order in which documents are read, 0 for the one after each."""
    corpus, order = EncodedCorpus(inputs["tokens"]), np.load(inputs["order"] / "order.npy")
    lengths = corpus.tokenizer.token_byte_lengths()
    stream: list[int] = []
    for document in order:
        stream += [int(lengths[token]) for token in corpus.document(int(document))] + [0]
    return stream


def mean_bytes(stream: list[int], length: int) -> float:
    """Of the targets of a context, which are the tokens after its first."""
    count = (len(stream) - 1) // length
    return sum(sum(stream[place * length + 1 : (place + 1) * length + 1]) for place in range(count)) / count


def nearest(wanted: float, step: int, mean: float) -> int:
    return min(range(step, 10_000, step), key=lambda number: abs(number * mean - wanted))


def run(root: Path, name: str, inputs: dict[str, Path], chosen: RunConfig) -> dict[str, Any]:
    return execute(root, name, inputs, chosen)


@pytest.mark.parametrize("arm", ["bytes", "bpe"])
@pytest.mark.parametrize("multiple", [1, 4])
def test_a_batch_in_bytes_is_that_of_the_nearest_number_of_contexts(
    arm: str, multiple: int, arms: dict[str, dict[str, Path]], tmp_path: Path
) -> None:
    inputs = arms[arm]
    wanted = nearest(120, multiple, mean_bytes(read(inputs), MODEL.context_length))
    by_bytes = config(budget=BUDGET, training=replace(IN_BYTES, batch_multiple=multiple))
    by_number = config(budget=BUDGET, training=replace(TRAINING, global_batch=wanted))
    found, expected = run(tmp_path, "bytes", inputs, by_bytes), run(tmp_path, "number", inputs, by_number)
    assert found["global_batch"] == expected["global_batch"] == wanted
    assert files(tmp_path / "bytes" / "output").keys() == files(tmp_path / "number" / "output").keys()
    weights = f"output/step_{found['steps']:08d}/model.safetensors"
    assert (tmp_path / "bytes" / weights).read_bytes() == (tmp_path / "number" / weights).read_bytes()
    untimed = ("seconds", "device_hours")
    assert {k: v for k, v in found.items() if k not in untimed} == {
        k: v for k, v in expected.items() if k not in untimed
    }


@pytest.mark.parametrize("arm", ["bytes", "bpe"])
def test_a_context_in_bytes_is_the_nearest_multiple_of_eight_tokens(
    arm: str, arms: dict[str, dict[str, Path]], tmp_path: Path
) -> None:
    stream = read(arms[arm])
    wanted = nearest(64, 8, sum(stream) / len(stream))
    model = replace(MODEL, context_length=0, context_bytes=64)
    found = run(tmp_path, "bytes", arms[arm], config(budget=BUDGET, model=model))
    # Eight contexts a stretch, which else are of 32 bytes a token of the context.
    packing, number = ConcatenatePacking(stretch_bytes=8 * 64), replace(MODEL, context_length=wanted)
    expected = run(tmp_path, "number", arms[arm], config(budget=BUDGET, packing=packing, model=number))
    assert found["context_length"] == expected["context_length"] == wanted
    step = f"output/step_{found['steps']:08d}"
    for name in ("model.safetensors", "config.json"):
        assert (tmp_path / "bytes" / step / name).read_bytes() == (tmp_path / "number" / step / name).read_bytes()
    assert json.loads((tmp_path / "bytes" / step / "config.json").read_text())["max_position_embeddings"] == wanted


def test_arms_of_equal_text_take_equal_steps_where_their_batch_is_in_bytes(
    arms: dict[str, dict[str, Path]], tmp_path: Path
) -> None:
    """One token is a byte in the one arm and more than two in the other: twice the steps where batches are counted."""

    def steps(training: TrainingConfig) -> list[int]:
        chosen = config(budget=BUDGET, training=training)
        runs = [run(tmp_path / str(training.batch_bytes), name, arms[name], chosen) for name in arms]
        return [int(result["steps"]) for result in runs]

    counted, in_bytes = steps(TRAINING), steps(replace(IN_BYTES, batch_bytes=200))
    assert counted[0] > 1.8 * counted[1]
    assert abs(in_bytes[0] - in_bytes[1]) <= 1
