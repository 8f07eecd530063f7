"""The artefact of the stage `training`."""

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from paribus.config.groups.model import SeedsConfig
from paribus.config.groups.ordering import BestFitPacking, ConcatenatePacking, OneDocumentPacking, PackingConfig
from paribus.config.groups.training import EqualTokensBudget
from paribus.errors import DataError, NumericalError
from paribus.modeling.parameters import parameter_count, training_flops
from paribus.ordering.contexts import pack
from paribus.ordering.ordered_text import OrderedText
from paribus.ordering.orders import Order
from paribus.ordering.shuffle import traverse
from paribus.tokenization import Tokenizer
from paribus.tokenization.encoded_corpus import EncodedCorpus
from paribus.training.checkpoint import step_name
from paribus.training.data import Batches
from paribus.training.initial import initial_model
from support.packings import measured
from support.stages import files
from support.training_inputs import BUDGET, MODEL, PACKING, STEPS, TRAINING, config, execute, write_inputs

VOCAB_SIZE = 257
PACKINGS = [
    ConcatenatePacking(shuffle="none"),
    ConcatenatePacking(attention="document"),
    BestFitPacking(window=4),
    BestFitPacking(window=None, attention="document", shuffle="none"),
    OneDocumentPacking(),
]


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return write_inputs(tmp_path_factory.mktemp("inputs"))


def train(root: Path, name: str, inputs: dict[str, Path], **changes: Any) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Result and files of a training."""
    result: dict[str, Any] = execute(root, name, inputs, config(**changes))
    return result, files(root / name / "output")


@pytest.fixture(scope="module")
def trained(inputs: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Path]:
    root = tmp_path_factory.mktemp("trained")
    return train(root, "run", inputs)[0], root / "run" / "output"


def lines_of(output: dict[str, bytes]) -> list[dict[str, float]]:
    return [json.loads(line) for line in output["metrics.jsonl"].splitlines()]


LAST = f"step_{STEPS:08d}"
WEIGHTS = f"{LAST}/model.safetensors"


def test_result_reports_both_budgets_and_the_cost(trained: tuple[dict[str, Any], Path]) -> None:
    result, lines = trained[0], lines_of(files(trained[1]))
    assert [line["step"] for line in lines] == list(range(1, STEPS + 1))
    assert lines[0]["train/loss"] == pytest.approx(np.log(VOCAB_SIZE), abs=0.05), "a uniform guess"
    last = {name: lines[-1][f"train/{name}"] for name in ("tokens", "text_bytes", "flops", "epochs")}
    assert last["tokens"] == BUDGET.tokens
    expected = last | {
        "steps": STEPS,
        "parameters": parameter_count(MODEL, VOCAB_SIZE),
        "positions": BUDGET.tokens,
        "flops": training_flops(MODEL, VOCAB_SIZE, BUDGET.tokens),
        "final_loss": lines[-1]["train/loss"],
        "precision": "fp32",
        "device": "cpu",
        "damaged_checkpoints": [],
        "computed_on": ["cpu in fp32"],
        "devices": 1,
        "device_hours": pytest.approx(result["seconds"] / 3600),
    }
    assert result == result | expected
    assert result["final_loss"] < lines[0]["train/loss"]


# What is trained on: the same contexts whatever does not decide them.


def test_each_seed_changes_its_part_alone(
    trained: tuple[dict[str, Any], Path], inputs: dict[str, Path], tmp_path: Path
) -> None:
    first, tokenizer = files(trained[1]), Tokenizer.load(inputs["tokens"] / "tokenizer")
    drawn_weights = initial_model(config(), tokenizer).state_dict()
    # Seeds of parts replace the seed of the run.
    parts = dict.fromkeys(("weights", "order", "contexts", "dropout"), 0)
    _, same = train(tmp_path, "same", inputs, seed=9, seeds=SeedsConfig(**parts))
    assert (same["contexts.json"], same[WEIGHTS]) == (first["contexts.json"], first[WEIGHTS])
    for part in parts:
        seeds = SeedsConfig(**{part: 1})
        other = initial_model(config(seeds=seeds), tokenizer).state_dict()
        alike = all(torch.equal(values, other[name]) for name, values in drawn_weights.items())
        assert alike is (part != "weights")
        _, output = train(tmp_path, part, inputs, seeds=seeds)
        assert (output["contexts.json"] == first["contexts.json"]) is (part != "contexts")
        # The order is another stage's, and this model drops nothing.
        assert (output[WEIGHTS] == first[WEIGHTS]) is (part in {"order", "dropout"})


@pytest.mark.parametrize("packing", PACKINGS, ids=str)
def test_every_packing_trains_and_counts_what_it_predicts(
    packing: PackingConfig, inputs: dict[str, Path], tmp_path: Path
) -> None:
    result, output = train(tmp_path, "run", inputs, budget=EqualTokensBudget(tokens=700), packing=packing)
    lines, record = lines_of(output), json.loads(output["contexts.json"])
    tokens = [0, *(line["train/tokens"] for line in lines)]
    assert tokens[-2] < 700 <= tokens[-1] == result["tokens"] == record["tokens"]
    assert max(np.diff(tokens)) <= TRAINING.global_batch * MODEL.context_length
    assert result["text_bytes"] == lines[-1]["train/text_bytes"] <= tokens[-1]
    assert result["epochs"] == pytest.approx(result["steps"] * TRAINING.global_batch / record["contexts"])
    assert result["positions"] == result["steps"] * TRAINING.global_batch * MODEL.context_length >= tokens[-1]
    assert result["flops"] == training_flops(MODEL, VOCAB_SIZE, result["positions"])
    assert lines[-1]["train/loss"] < lines[0]["train/loss"]


# What is refused, and what a training that fails tells.


def diverge(root: Path, inputs: dict[str, Path], **changes: Any) -> str:
    wild = dataclasses.replace(TRAINING, learning_rate=30.0, gradient_clip=1e9, **changes)
    with pytest.raises(NumericalError) as stopped:
        train(root, "run", inputs, training=wild)
    return str(stopped.value)


def test_diverging_run_stops_with_its_step_documents_and_last_checkpoint(
    inputs: dict[str, Path], tmp_path: Path
) -> None:
    parts = re.fullmatch(
        r"step (\d+) is bad: the loss is .* above training\.loss_limit .*; the last checkpoint is (step_\d+)\. The "
        r"batch held (\d+) documents, numbered in corpus order ([\d, ]+)\. Try a lower training\.learning_rate.*",
        diverge(tmp_path, inputs, checkpoint_every=1),
    )
    assert parts is not None
    step, checkpoint, number, documents = parts.groups()
    assert checkpoint == step_name(int(step) - 1)
    assert (tmp_path / "run" / "work" / checkpoint / "complete.json").exists()
    corpus, order = EncodedCorpus(inputs["tokens"]), Order(inputs["order"])
    contexts = pack(PACKING, corpus.ids, corpus.offsets, order, VOCAB_SIZE - 1, MODEL.context_length)
    text = OrderedText(contexts.documents, corpus.source_bytes, corpus.tokenizer.token_byte_lengths())
    batches = Batches(contexts, TRAINING.global_batch, traverse(PACKING, measured(contexts, text), config().seed))
    held = [contexts.documents_of(int(index)) for index in batches.indices(int(step) - 1)]
    read = {document for pieces in held for document, _ in pieces}
    assert list(map(int, documents.split(", "))) == sorted(read)
    assert int(number) == len(read)


@pytest.mark.parametrize(("minutes", "written"), [(1e-9, True), (60.0, False), (None, False)])
def test_checkpoint_is_written_after_so_many_minutes_whatever_a_step_takes(
    inputs: dict[str, Path], tmp_path: Path, minutes: float | None, written: bool
) -> None:
    message = diverge(tmp_path, inputs, checkpoint_every=1000, checkpoint_minutes=minutes)
    last = step_name(int(message.split()[1]) - 1)
    assert (f"the last checkpoint is {last}" if written else "there is no checkpoint yet") in message


def test_working_state_of_another_recipe_or_of_other_data_is_refused_by_field(
    inputs: dict[str, Path], tmp_path: Path
) -> None:
    train(tmp_path, "run", inputs)
    for changes, named in (
        ({"training": dataclasses.replace(TRAINING, weight_decay=0.3)}, "training.weight_decay: 0.1 there, 0.3 here"),
        ({"packing": ConcatenatePacking(attention="document")}, "packing.attention: 'context' there, 'document' here"),
    ):
        with pytest.raises(DataError, match=rf"by another recipe \({re.escape(named)}\); remove all that"):
            train(tmp_path, "run", inputs, **changes)
    (tmp_path / "other").mkdir()
    other = write_inputs(tmp_path / "other", text="something else entirely ")
    with pytest.raises(DataError, match=r"was trained on other data .*; ids: '\w{16}' there, '\w{16}' here; "):
        train(tmp_path, "run", other)
