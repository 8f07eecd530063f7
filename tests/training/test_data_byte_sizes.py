"""`batch_bytes` and `context_bytes`: training takes the nearest batch size and context length."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paribus.config.groups.ordering import ConcatenatePacking
from paribus.config.groups.training import EqualTextBudget
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


def assert_one_training(root: Path, inputs: dict[str, Path], *runs: RunConfig) -> dict[str, Any]:
    """The result of runs that have the same one, and the same checkpoints."""
    results = [execute(root, str(number), inputs, run) for number, run in enumerate(runs)]
    timed = {"seconds": 0, "device_hours": 0}
    assert results[0] | timed == results[1] | timed
    one, other = (files(root / str(number) / "output") for number in range(2))
    assert one.keys() == other.keys()
    for name in (f"step_{results[0]['steps']:08d}/{file}" for file in ("model.safetensors", "config.json")):
        assert one[name] == other[name]
    return results[0]


@pytest.mark.parametrize("arm", ["bytes", "bpe"])
def test_sizes_in_bytes_are_those_of_the_nearest_number(
    arm: str, arms: dict[str, dict[str, Path]], tmp_path: Path
) -> None:
    stream = read(arms[arm])
    for multiple in (1, 4):
        wanted = nearest(120, multiple, mean_bytes(stream, MODEL.context_length))
        in_bytes, in_number = replace(IN_BYTES, batch_multiple=multiple), replace(TRAINING, global_batch=wanted)
        runs = [config(budget=BUDGET, training=training) for training in (in_bytes, in_number)]
        assert assert_one_training(tmp_path / str(multiple), arms[arm], *runs)["global_batch"] == wanted
    wanted = nearest(64, 8, sum(stream) / len(stream))
    in_bytes = config(budget=BUDGET, model=replace(MODEL, context_length=0, context_bytes=64))
    # Eight contexts a stretch, which else are of 32 bytes a token of the context.
    packing = ConcatenatePacking(stretch_bytes=8 * 64)
    in_number = config(budget=BUDGET, packing=packing, model=replace(MODEL, context_length=wanted))
    assert assert_one_training(tmp_path / "context", arms[arm], in_bytes, in_number)["context_length"] == wanted
    (architecture,) = {path.read_text() for path in tmp_path.glob("context/0/output/step_*/config.json")}
    assert json.loads(architecture)["max_position_embeddings"] == wanted
