"""The stage `finetuning`: what it trains on, what it keeps, and that a killed one ends with the same bytes."""

import json
import math
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import torch
from torch.nn.functional import cross_entropy

from paribus.evaluation import tune
from paribus.evaluation.scrolls import read_task
from paribus.modeling.models import load_model
from paribus.ordering.shuffle import ShuffledContexts
from paribus.tokenization import Tokenizer
from paribus.training.data import Batches
from support.finetunings import (
    MODEL,
    STEP,
    finetuned,
    finetuning_config,
    run_data,
    run_finetuned,
    with_training,
    write_checkpoint,
    write_task,
)
from support.stages import files


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write_task(tmp_path)
    write_checkpoint(tmp_path)
    return tmp_path


def metrics(root: Path, name: str) -> list[float]:
    lines = map(json.loads, (root / "finetuning" / "metrics.jsonl").read_text().splitlines())
    return [line[name] for line in lines if name in line]


def table(root: Path, name: str = "items") -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(root / "finetuning" / f"{name}.parquet").to_pylist()
    return rows


class Permuted:
    """As many contexts as there are examples, to ask in which sequence they are read."""

    def __init__(self, count: int) -> None:
        self.count = count


def test_the_loss_is_that_of_the_answer_and_the_end_of_document_alone(root: Path) -> None:
    finetuned(root, warmup_share=0.0)
    data = read_task(root / "finetuning_data" / "qasper")
    model = load_model(root / "training" / f"step_{STEP:08d}").eval()
    question, ending = b"What colour?\n\n", b"\n\nAnswer:"
    longest = max(len(f" {example.answers[0]}") + 1 for example in data.train)
    room = MODEL.context_length - longest - len(ending) - len(question)
    total, predicted = 0.0, 0
    batches = Batches(Permuted(len(data.train)), 4, ShuffledContexts(len(data.train), 1))  # type: ignore[arg-type]
    for place in batches.indices(0).tolist():
        example = data.train[place]
        prompt = question + data.documents[example.document].encode()[:room] + ending
        row = [*prompt, *f" {example.answers[0]}".encode(), 256]
        with torch.inference_mode():
            logits = model.logits(torch.tensor([row[:-1]]))[0].double()
        answer = slice(len(prompt) - 1, len(row) - 1)
        total += float(cross_entropy(logits[answer], torch.tensor(row[len(prompt) :]), reduction="sum"))
        predicted += len(row) - len(prompt)
    assert metrics(root, "finetuning/qasper/loss")[0] == pytest.approx(total / predicted, rel=1e-5)
    assert metrics(root, "finetuning/qasper/tokens")[0] == predicted


def test_a_model_learns_its_task_and_the_artefact_has_every_item_once(root: Path) -> None:
    result: Any = finetuned(root, epochs=12.0, learning_rate=0.02)
    losses = metrics(root, "finetuning/qasper/loss")
    assert len(losses) == math.ceil(12 * 10 / 4)
    assert losses[-1] < 1 and losses[0] > 5
    assert metrics(root, "finetuning/qasper/learning_rate")[-1] == 0.0
    items = table(root)
    keys = [(row["checkpoint"], row["task"], row["shots"], row["metric"], row["item"]) for row in items]
    assert keys == [(STEP, "qasper", 0, "f1", f"validation{place}") for place in range(5)]
    values = [row["value"] for row in items]
    assert sum(values) / 5 == result["metrics"]["eval/qasper/0shot/f1"]
    gold = {question.id: question.answers for question in read_task(root / "finetuning_data" / "qasper").scored}
    assert [float(row["prediction"] in gold[row["item"]]) for row in table(root, "predictions")] == values
    reported = json.loads((root / "finetuning.reported.json").read_text())
    assert ["eval/qasper/0shot/f1", sum(values) / 5, STEP] in reported
    assert {name for name, _, _ in reported if name.endswith("loss")} == {"finetuning/qasper/loss"}


def test_every_tokenizer_takes_the_same_steps_and_is_asked_the_same_questions(tmp_path: Path) -> None:
    words = Tokenizer.train(["What colour? Box 1 is green."] * 9, vocab_size=300, special_tokens=["<|endoftext|>"])
    protocols, document_bytes = [], []
    for name, tokenizer in (("bytes", None), ("words", words)):
        root = tmp_path / name
        write_task(root)
        write_checkpoint(root, tokenizer)
        result: Any = finetuned(root)
        about = result["tasks"]["qasper"]
        steps = {key: about["training"][key] for key in ("steps", "examples", "epochs")}
        protocols.append(([(row["item"], row["doc_hash"]) for row in table(root)], steps))
        document_bytes.append(about["document_bytes"])
    assert protocols[0] == protocols[1]
    assert document_bytes[0] < document_bytes[1]


def test_a_stopped_stage_resumes_and_ends_with_the_same_bytes(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_task(root, "narrative_qa", examples=6)
    config = finetuning_config(root, tasks=("qasper", "narrative_qa"), epochs=2.0)
    config = with_training(config, checkpoint_every=2)
    run_data(root, config)
    run_finetuned(root, config, "straight")
    write_answers, calls = tune.write_answers, list[int]()

    def stopping(*arguments: Any) -> list[str]:
        calls.append(len(calls))
        if len(calls) == 2:
            raise KeyboardInterrupt
        return write_answers(*arguments)

    monkeypatch.setattr(tune, "write_answers", stopping)
    with pytest.raises(KeyboardInterrupt):
        run_finetuned(root, config, "stopped")
    work = root / "stopped.work"
    assert (work / "qasper.json").is_file() and not (work / "qasper").exists()
    assert not (work / "narrative_qa.json").exists() and list((work / "narrative_qa").glob("step_*"))
    (root / "stopped").rename(root / "before")
    run_finetuned(root, config, "stopped")
    assert calls == [0, 1, 2]
    assert files(root / "stopped") == files(root / "straight")
