"""The artefact of the stage `training`."""

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from transformers import AutoTokenizer

from paribus.config.groups.evaluation import EvaluationConfig
from paribus.config.groups.model import SeedsConfig
from paribus.config.groups.ordering import BestFitPacking, ConcatenatePacking, OneDocumentPacking, PackingConfig
from paribus.config.groups.training import EqualTextBudget, EqualTokensBudget
from paribus.errors import ConfigurationError, DataError, NumericalError
from paribus.evaluation.scoring import last_checkpoints
from paribus.modeling.models import load_model
from paribus.modeling.parameters import parameter_count, training_flops
from paribus.ordering.contexts import pack
from paribus.ordering.ordered_text import OrderedText
from paribus.ordering.orders import Order
from paribus.ordering.shuffle import traverse
from paribus.stage import SilentListener
from paribus.tokenization import Tokenizer
from paribus.tokenization.encoded_corpus import EncodedCorpus
from paribus.training.checkpoint import step_name
from paribus.training.data import Batches
from paribus.training.initial import initial_model
from paribus.training.train import build
from support.compiled import recorded_symbolic
from support.packings import measured
from support.training_inputs import BUDGET, MODEL, PACKING, STEPS, TRAINING, config, context, execute, write_inputs

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


@pytest.fixture(scope="module")
def trained(inputs: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, object]]:
    root = tmp_path_factory.mktemp("trained")
    result = execute(root, "run", inputs)
    return root / "run", result


def test_the_artefact_has_the_files_of_the_design(trained: tuple[Path, dict[str, object]]) -> None:
    output = trained[0] / "output"
    assert sorted(path.name for path in output.iterdir()) == [
        "contexts.json", "metrics.jsonl", "readings.npy", "state", "step_00000011", "step_00000014",
    ]  # fmt: skip
    assert sorted(path.name for path in (output / "state").iterdir()) == ["optimizer.safetensors", "state.json"]
    last = sorted(path.name for path in (output / "step_00000014").iterdir())
    assert last == [
        "config.json",
        "model.safetensors",
        "tokenizer",
        "tokenizer.json",
        "tokenizer_config.json",
    ]


def test_a_checkpoint_is_a_model_with_its_tokenizer(trained: tuple[Path, dict[str, object]]) -> None:
    checkpoint = trained[0] / "output" / "step_00000014"
    tokenizer = Tokenizer.load(checkpoint / "tokenizer")
    model = load_model(checkpoint)
    assert model.architecture.vocab_size == tokenizer.vocab_size == VOCAB_SIZE
    assert model.architecture.eos_id == tokenizer.eos_id
    text = "A text, as transformers reads it."
    assert AutoTokenizer.from_pretrained(checkpoint)(text)["input_ids"] == tokenizer.encode(text).tolist()


@pytest.mark.parametrize(
    ("precision", "compiled", "told"),
    [
        ("bf16", "always", "cpu in bf16, compiled"),
        ("bf16", "never", "cpu in bf16"),
        ("fp32", "always", "cpu in fp32"),
    ],
)
def test_the_result_says_whether_what_rounds_less_in_bfloat16_was_compiled(
    tmp_path: Path, precision: str, compiled: str, told: str
) -> None:
    training = dataclasses.replace(TRAINING, precision=precision, compile=compiled)
    with recorded_symbolic():
        result = execute(tmp_path, "output", write_inputs(tmp_path), config(training=training))
    assert result["computed_on"] == [told]


def test_the_result_reports_both_budgets_and_the_cost(trained: tuple[Path, dict[str, object]]) -> None:
    result = trained[1]
    metrics = [json.loads(line) for line in (trained[0] / "output" / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in metrics] == list(range(1, STEPS + 1))
    assert result["steps"] == STEPS
    assert result["tokens"] == BUDGET.tokens == metrics[-1]["train/tokens"]
    assert result["text_bytes"] == metrics[-1]["train/text_bytes"]
    assert (result["flops"], result["epochs"]) == (metrics[-1]["train/flops"], metrics[-1]["train/epochs"])
    assert result["parameters"] == parameter_count(MODEL, VOCAB_SIZE)
    assert result["positions"] == BUDGET.tokens
    assert result["flops"] == training_flops(MODEL, VOCAB_SIZE, BUDGET.tokens)
    assert result["final_loss"] == metrics[-1]["train/loss"] < metrics[0]["train/loss"]
    assert (result["precision"], result["device"], result["damaged_checkpoints"]) == ("fp32", "cpu", [])
    assert result["computed_on"] == ["cpu in fp32"]
    assert result["devices"] == 1
    assert result["device_hours"] == pytest.approx(result["seconds"] / 3600)


def test_the_first_loss_is_that_of_a_uniform_guess(trained: tuple[Path, dict[str, object]]) -> None:
    first = json.loads((trained[0] / "output" / "metrics.jsonl").read_text().splitlines()[0])
    assert first["train/loss"] == pytest.approx(np.log(VOCAB_SIZE), abs=0.05)


def test_execution_settings_leave_every_batch_as_it_is(
    trained: tuple[Path, dict[str, object]], inputs: dict[str, Path], tmp_path: Path
) -> None:
    other = dataclasses.replace(TRAINING, micro_batch=1, log_every=1)
    execute(tmp_path, "run", inputs, config(training=other))
    first, second = (root / "output" for root in (trained[0], tmp_path / "run"))
    assert (first / "contexts.json").read_bytes() == (second / "contexts.json").read_bytes()
    weights = [load_file(output / "step_00000014" / "model.safetensors") for output in (first, second)]
    assert all(np.allclose(weights[0][name], weights[1][name], atol=1e-3) for name in weights[0])


def weights_of(output: Path) -> dict[str, Any]:
    return load_file(output / f"step_{STEPS:08d}" / "model.safetensors")


def test_seeds_of_parts_replace_the_seed_of_the_run(
    trained: tuple[Path, dict[str, object]], inputs: dict[str, Path], tmp_path: Path
) -> None:
    execute(tmp_path, "run", inputs, config(seed=9, seeds=SeedsConfig(weights=0, order=0, contexts=0, dropout=0)))
    first, second = trained[0] / "output", tmp_path / "run" / "output"
    assert (first / "contexts.json").read_bytes() == (second / "contexts.json").read_bytes()
    again = weights_of(second)
    assert all(np.array_equal(values, again[name]) for name, values in weights_of(first).items())


@pytest.mark.parametrize("part", ["weights", "contexts", "order", "dropout"])
def test_each_seed_changes_its_part_alone(
    part: str, trained: tuple[Path, dict[str, object]], inputs: dict[str, Path], tmp_path: Path
) -> None:
    changed = config(seeds=SeedsConfig(**{part: 1}))
    tokenizer = Tokenizer.load(inputs["tokens"] / "tokenizer")
    models = [initial_model(each, tokenizer).state_dict() for each in (config(), changed)]
    alike = all(torch.equal(values, models[1][name]) for name, values in models[0].items())
    assert alike is (part != "weights")
    execute(tmp_path, "run", inputs, changed)
    read = [(root / "contexts.json").read_bytes() for root in (trained[0] / "output", tmp_path / "run" / "output")]
    assert (read[0] == read[1]) is (part != "contexts")
    again = weights_of(tmp_path / "run" / "output")
    same = all(np.array_equal(values, again[name]) for name, values in weights_of(trained[0] / "output").items())
    assert same is (part in ("order", "dropout"))  # the order is another stage's, and this model drops nothing


def test_a_text_budget_over_several_epochs_is_met_exactly(inputs: dict[str, Path], tmp_path: Path) -> None:
    epoch = json.loads(_contexts(inputs, tmp_path / "a", EqualTokensBudget(tokens=300)))["text_bytes_per_epoch"]
    record = json.loads(_contexts(inputs, tmp_path / "b", EqualTextBudget(text=2 * epoch + 1)))
    step_text = TRAINING.global_batch * MODEL.context_length
    assert 2 * epoch + 1 <= record["text_bytes"] < 2 * epoch + 1 + step_text
    assert record["epochs"] > 2


def _contexts(inputs: dict[str, Path], root: Path, budget: EqualTokensBudget | EqualTextBudget) -> str:
    root.mkdir()
    execute(root, "run", inputs, config(budget=budget))
    return (root / "run" / "output" / "contexts.json").read_text()


@pytest.mark.parametrize("packing", PACKINGS, ids=str)
def test_every_packing_trains_and_counts_what_it_predicts(
    packing: PackingConfig, inputs: dict[str, Path], tmp_path: Path
) -> None:
    budget = EqualTokensBudget(tokens=700)
    result = execute(tmp_path, "run", inputs, config(budget=budget, packing=packing))
    output = tmp_path / "run" / "output"
    metrics = [json.loads(line) for line in (output / "metrics.jsonl").read_text().splitlines()]
    record = json.loads((output / "contexts.json").read_text())
    tokens = [0, *(line["train/tokens"] for line in metrics)]
    assert tokens[-2] < 700 <= tokens[-1] == result["tokens"] == record["tokens"]
    assert max(np.diff(tokens)) <= TRAINING.global_batch * MODEL.context_length
    assert result["text_bytes"] == metrics[-1]["train/text_bytes"] <= tokens[-1]
    assert result["epochs"] == pytest.approx(result["steps"] * TRAINING.global_batch / record["contexts"])
    assert result["positions"] == result["steps"] * TRAINING.global_batch * MODEL.context_length >= tokens[-1]
    assert result["flops"] == training_flops(MODEL, VOCAB_SIZE, result["positions"])
    assert metrics[-1]["train/loss"] < metrics[0]["train/loss"]


def test_attention_within_documents_changes_the_losses_and_not_the_contexts(
    inputs: dict[str, Path], tmp_path: Path
) -> None:
    records, losses = [], []
    for attention in ("context", "document"):
        packing = BestFitPacking(attention=attention)
        execute(tmp_path, attention, inputs, config(packing=packing))
        output = tmp_path / attention / "output"
        records.append((output / "contexts.json").read_bytes())
        losses.append([json.loads(line)["train/loss"] for line in (output / "metrics.jsonl").read_text().splitlines()])
    assert records[0] == records[1]
    assert losses[0][-1] != losses[1][-1]


def test_too_few_checkpoints_to_score_are_told_and_fail_no_run_that_shares_the_training(
    inputs: dict[str, Path], tmp_path: Path
) -> None:
    """How many are scored is no part of the key of a training."""
    training = dataclasses.replace(TRAINING, checkpoints=20)
    wanting = config(training=training, evaluation=EvaluationConfig(last_checkpoints=2))
    report = SilentListener()
    made = context(tmp_path, "run", inputs, wanting, report)
    assert build(made)["steps"] == STEPS
    (told,) = (line for line in report.messages if "last_checkpoints" in line)
    assert told.startswith("this run cannot be scored: evaluation.last_checkpoints: 2 are to be scored")
    assert list(last_checkpoints(made.output, training, 1)) == [STEPS]
    message = (
        r"last_checkpoints: 2 are .* end at 1 of the budget's 14 steps; .* lower training\.checkpoints to 14 or less"
    )
    with pytest.raises(ConfigurationError, match=message):
        last_checkpoints(made.output, training, 2)


def test_a_warm_up_that_the_budget_does_not_reach_is_refused_where_documents_decide_the_steps(
    inputs: dict[str, Path], tmp_path: Path
) -> None:
    slow = dataclasses.replace(TRAINING, warmup_steps=400, schedule="inverse_sqrt")
    with pytest.raises(
        ConfigurationError, match=r"training\.warmup_steps: 400, but budget\.text ends after \d+; lower it"
    ):
        execute(tmp_path, "run", inputs, config(budget=EqualTextBudget(text=800), training=slow))
    assert (tmp_path / "run" / "work" / "metrics.jsonl").exists() is False


def test_a_diverging_run_stops_with_its_step_documents_and_last_checkpoint(
    inputs: dict[str, Path], tmp_path: Path
) -> None:
    wild = dataclasses.replace(TRAINING, learning_rate=30.0, gradient_clip=1e9, checkpoint_every=1)
    with pytest.raises(NumericalError) as stopped:
        execute(tmp_path, "run", inputs, config(training=wild))
    said = re.fullmatch(
        r"step (\d+) is bad: the loss is .* above training\.loss_limit .*; the last checkpoint is (step_\d+)\. The "
        r"batch held (\d+) documents, numbered in corpus order ([\d, ]+)\. Try a lower training\.learning_rate.*",
        str(stopped.value),
    )
    assert said is not None
    step = int(said[1])
    assert said[2] == step_name(step - 1)
    assert (tmp_path / "run" / "work" / said[2] / "complete.json").exists()
    batches = drawn(inputs)
    held = [batches.contexts.documents_of(int(index)) for index in batches.indices(step - 1)]
    read = {document for documents in held for document, _ in documents}
    assert [int(number) for number in said[4].split(", ")] == sorted(read)
    assert int(said[3]) == len(read)


@pytest.mark.parametrize(("minutes", "kept"), [(1e-9, True), (60.0, False), (None, False)])
def test_a_checkpoint_is_written_after_so_many_minutes_whatever_a_step_takes(
    inputs: dict[str, Path], tmp_path: Path, minutes: float | None, kept: bool
) -> None:
    seldom = {"checkpoint_every": 1000, "checkpoint_minutes": minutes}
    wild = dataclasses.replace(TRAINING, learning_rate=30.0, gradient_clip=1e9, **seldom)
    with pytest.raises(NumericalError) as stopped:
        execute(tmp_path, "run", inputs, config(training=wild))
    step = int(str(stopped.value).split()[1])
    told = f"the last checkpoint is {step_name(step - 1)}" if kept else "there is no checkpoint yet"
    assert told in str(stopped.value)


def drawn(inputs: dict[str, Path]) -> Batches:
    corpus, order = EncodedCorpus(inputs["tokens"]), Order(inputs["order"])
    contexts = pack(PACKING, corpus.ids, corpus.offsets, order, VOCAB_SIZE - 1, MODEL.context_length)
    text = OrderedText(contexts.documents, corpus.source_bytes, corpus.tokenizer.token_byte_lengths())
    return Batches(contexts, TRAINING.global_batch, traverse(PACKING, measured(contexts, text), config().seed))


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"training": dataclasses.replace(TRAINING, weight_decay=0.3)}, "training.weight_decay: 0.1 there, 0.3 here"),
        ({"packing": ConcatenatePacking(attention="document")}, "packing.attention: 'context' there, 'document' here"),
    ],
)
def test_working_state_of_another_recipe_is_refused_by_field(
    changed: dict[str, Any], named: str, inputs: dict[str, Path], tmp_path: Path
) -> None:
    execute(tmp_path, "run", inputs)
    with pytest.raises(DataError, match=rf"by another recipe \({re.escape(named)}\); remove all that"):
        execute(tmp_path, "run", inputs, config(**changed))


def test_working_state_of_other_data_is_refused(inputs: dict[str, Path], tmp_path: Path) -> None:
    execute(tmp_path, "run", inputs)
    (tmp_path / "other").mkdir()
    other = write_inputs(tmp_path / "other", text="something else entirely ")
    with pytest.raises(DataError, match=r"was trained on other data .*; ids: '\w{16}' there, '\w{16}' here; "):
        execute(tmp_path, "run", other)


def test_running_again_over_finished_work_gives_the_same_artefact(
    trained: tuple[Path, dict[str, object]], inputs: dict[str, Path]
) -> None:
    output = trained[0] / "output"
    before = {path: path.read_bytes() for path in output.rglob("*") if path.is_file()}
    result = execute(trained[0].parent, "run", inputs)
    assert before == {path: path.read_bytes() for path in output.rglob("*") if path.is_file()}
    untimed = {"seconds": 0, "device_hours": 0}
    assert result | untimed == trained[1] | untimed
