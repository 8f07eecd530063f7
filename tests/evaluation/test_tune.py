"""The stage `finetuning`: what it trains on, what it keeps, and that a killed one ends with the same bytes."""

import gc
import json
import math
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from accelerate.state import AcceleratorState
from rouge_score.rouge_scorer import RougeScorer
from torch.nn.functional import cross_entropy

from paribus.evaluation import tune
from paribus.evaluation.scrolls import read_task
from paribus.modeling.models import load_model
from paribus.ordering.shuffle import ShuffledContexts
from paribus.reporting.runs import load_scores
from paribus.tokenization import Tokenizer
from paribus.training.data import Batches
from support.finetunings import (
    MODEL,
    STEP,
    finetuned,
    finetuning_config,
    meeting,
    run_data,
    run_finetuned,
    with_training,
    write_checkpoint,
    write_lines,
    write_task,
)
from support.stages import files


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write_task(tmp_path)
    write_checkpoint(tmp_path)
    return tmp_path


def metrics(root: Path, name: str, artefact: str = "finetuning") -> list[float]:
    lines = map(json.loads, (root / artefact / "metrics.jsonl").read_text().splitlines())
    return [line[name] for line in lines if name in line]


def table(root: Path, name: str = "items") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pq.read_table(root / "finetuning" / f"{name}.parquet").to_pylist()
    return found


class Permuted:
    """As many contexts as there are examples, to ask in which sequence they are read."""

    def __init__(self, count: int) -> None:
        self.count = count


def test_the_loss_is_that_of_the_answer_and_the_end_of_document_alone(root: Path) -> None:
    finetuned(root, warmup_share=0.0)
    data = read_task(root / "finetuning_data" / "qasper")
    model = load_model(root / "training" / f"step_{STEP:08d}").eval()
    longest = max(len(f" {question.answers[0]}") + 1 for question in data.train)
    total, predicted = 0.0, 0
    batches = Batches(Permuted(len(data.train)), 4, ShuffledContexts(len(data.train), 1))  # type: ignore[arg-type]
    for place in batches.indices(0).tolist():
        question = data.train[place]
        asked = b"\n\nAnswer:"
        room = MODEL.context_length - longest - len(asked) - len(b"What colour?\n\n")
        prompt = b"What colour?\n\n" + data.documents[question.document].encode()[:room] + asked
        row = [*prompt, *f" {question.answers[0]}".encode(), 256]
        with torch.inference_mode():
            logits = model.logits(torch.tensor([row[:-1]]))[0].double()
        scored = range(len(prompt) - 1, len(row) - 1)
        total += sum(float(cross_entropy(logits[column], torch.tensor(row[column + 1]))) for column in scored)
        predicted += len(scored)
    assert metrics(root, "finetuning/qasper/loss")[0] == pytest.approx(total / predicted, rel=1e-5)
    assert metrics(root, "finetuning/qasper/tokens")[0] == predicted


def test_a_model_learns_its_task_and_the_artefact_has_every_item_once(root: Path) -> None:
    result = finetuned(root, epochs=12.0, learning_rate=0.02)
    losses = metrics(root, "finetuning/qasper/loss")
    assert len(losses) == math.ceil(12 * 10 / 4)
    assert losses[-1] < 1 and losses[0] > 5
    assert metrics(root, "finetuning/qasper/learning_rate")[-1] == 0.0
    items = table(root)
    assert [(row["checkpoint"], row["task"], row["shots"], row["metric"]) for row in items] == [
        (STEP, "qasper", 0, "f1")
    ] * 5
    assert [row["item"] for row in items] == [f"validation{place}" for place in range(5)]
    values = [row["value"] for row in items]
    assert sum(values) / 5 == result["metrics"]["eval/qasper/0shot/f1"]  # type: ignore[index, call-overload]
    answers = {row["item"]: row["prediction"] for row in table(root, "predictions")}
    gold = {question.id: question.answers for question in read_task(root / "finetuning_data" / "qasper").scored}
    assert [float(answers[item] in gold[item]) for item in answers] == values
    reported = json.loads((root / "finetuning.reported.json").read_text())
    assert ["eval/qasper/0shot/f1", sum(values) / 5, STEP] in reported
    assert {name for name, _, _ in reported if name.endswith("loss")} == {"finetuning/qasper/loss"}


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_the_model_of_a_task_is_gone_before_that_of_the_next_is_loaded(
    root: Path, precision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the second task has that much less memory: on a GPU another micro-batch, or none.

    Nothing is collected by chance: accelerate makes a model in bfloat16 refer to itself.
    """
    write_task(root, "narrative_qa")
    loaded: list[weakref.ref[Any]] = []

    def watched(directory: Path) -> Any:
        assert [one() for one in loaded] == [None] * len(loaded)
        model = load_model(directory)
        loaded.append(weakref.ref(model))
        return model

    monkeypatch.setattr(tune, "load_model", watched)
    config = with_training(finetuning_config(root, tasks=("qasper", "narrative_qa"), epochs=1.0), precision=precision)
    run_data(root, config)
    AcceleratorState._reset_state()
    gc.disable()
    try:
        run_finetuned(root, config)
    finally:
        gc.enable()
        AcceleratorState._reset_state()
    assert len(loaded) == 2


def test_every_tokenizer_takes_the_same_steps_over_the_same_examples_and_is_asked_the_same(tmp_path: Path) -> None:
    words = Tokenizer.train(["What colour? Box 1 is green."] * 9, vocab_size=300, special_tokens=["<|endoftext|>"])
    found, read = [], []
    for name, tokenizer in (("bytes", None), ("words", words)):
        root = tmp_path / name
        write_task(root)
        write_checkpoint(root, tokenizer)
        result = finetuned(root)
        numbers: Any = result["tasks"]
        items = [(row["item"], row["doc_hash"]) for row in table(root)]
        training = numbers["qasper"]["training"]
        found.append((items, training["steps"], training["examples"], training["epochs"]))
        read.append(numbers["qasper"]["document_bytes"])
    assert found[0] == found[1]
    assert read[0] < read[1]


def test_rouge_in_the_artefact_is_that_of_rouge_score_and_its_geometric_mean_that_of_the_means(tmp_path: Path) -> None:
    words = "Ann: Day 1. Sum up. we meet Answer: "
    write_checkpoint(tmp_path, Tokenizer.train([words] * 9, vocab_size=300, special_tokens=["<|endoftext|>"]))
    asked = [("Sum up.", "We meet and part."), ("Who?", "Ann and Bob."), ("When?", "It is not said when we meet.")]
    learned = [meeting(("Sum up.", "we meet"), said=f"Day {day}.") for day in range(8)]
    write_lines(tmp_path / "data/qmsum/train.jsonl", learned)
    write_lines(tmp_path / "data/qmsum/validation.jsonl", [meeting(*asked)])
    finetuned(tmp_path, tasks=("qmsum",), epochs=6.0, learning_rate=0.02)
    predictions = {row["item"]: row["prediction"] for row in table(tmp_path, "predictions")}
    assert list(predictions) == ["validation/1/general/1", "validation/1/specific/1", "validation/1/specific/2"]
    scorer = RougeScorer(["rouge1", "rouge2", "rougeL"])
    blocks = load_blocks(tmp_path)
    means = []
    for name in ("rouge1", "rouge2", "rougeL"):
        expected = [
            scorer.score(answer, predictions[item])[name].fmeasure
            for item, (_, answer) in zip(predictions, asked, strict=True)
        ]
        assert blocks["qmsum", 0, name].values[0].tolist() == expected
        means.append(np.mean(expected))
    assert means[0] > 0.1
    whole = blocks["qmsum", 0, "rouge_geometric_mean"].values[0]
    assert whole.mean() == pytest.approx(np.prod(means) ** (1 / 3))


def load_blocks(root: Path) -> Any:
    """The blocks that a report reads, of a run without other tasks."""
    scores = root / "evaluation"
    scores.mkdir()
    pq.write_table(pq.read_table(root / "finetuning/items.parquet").slice(0, 0), scores / "items.parquet")
    heldout = {"checkpoint": [STEP], "document": ["d"], "bits": [1.0], "bytes": [1]}
    pq.write_table(pa.table(heldout), scores / "heldout.parquet")
    (scores / "statistics.json").write_text("{}")
    return load_scores(scores, root / "finetuning").blocks


def test_a_stage_that_was_stopped_goes_on_and_ends_with_the_same_bytes(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_task(root, "narrative_qa", examples=6)
    config = finetuning_config(root, tasks=("qasper", "narrative_qa"), epochs=2.0)
    config = with_training(config, checkpoint_every=2)
    run_data(root, config)
    run_finetuned(root, config, "straight")
    answer = tune.write_answers
    asked: list[int] = []

    def stopping(*arguments: Any) -> list[str]:
        asked.append(len(asked))
        if len(asked) == 2:
            raise KeyboardInterrupt
        return answer(*arguments)

    monkeypatch.setattr(tune, "write_answers", stopping)
    with pytest.raises(KeyboardInterrupt):
        run_finetuned(root, config, "stopped")
    work = root / "stopped.work"
    assert (work / "qasper.json").is_file() and not (work / "qasper").exists()
    assert not (work / "narrative_qa.json").exists() and list((work / "narrative_qa").glob("step_*"))
    (root / "stopped").rename(root / "left")
    run_finetuned(root, config, "stopped")
    assert asked == [0, 1, 2]
    assert files(root / "stopped") == files(root / "straight")
