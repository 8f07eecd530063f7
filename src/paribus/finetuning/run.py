"""The stage `finetuning`: a task after the other, each from one checkpoint. Imports torch: import this module late.

What a task has given stands in the working directory: `<task>.jsonl` are the metrics of its training and `<task>.json`,
written last, its answers and numbers. The artefact is made of these alone.
"""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from paribus.config.groups.evaluation import ScrollsFinetuning
from paribus.config.schema import RunConfig
from paribus.evaluation.models.checkpoints import last_checkpoints
from paribus.evaluation.results import ResultRow, means, write_items_table
from paribus.evaluation.scores import measure
from paribus.evaluation.tokenizer import evaluation_tokenizer
from paribus.finetuning.answers import measured, write_answers
from paribus.finetuning.data import TaskData, read_task
from paribus.finetuning.rows import Rows, write_rows
from paribus.finetuning.tasks import TASKS
from paribus.finetuning.training import ROWS, Start, finetune, metric_name
from paribus.modeling.device import expect_many_shapes
from paribus.stage import JSON, StageContext
from paribus.store.files import METRICS, replacing, write_json
from paribus.training.distributed import Requests
from paribus.training.parallel import device_name, make_accelerator

CUTS = "cuts.json"
PREDICTIONS_SCHEMA = pa.schema(
    [("checkpoint", pa.int64()), ("task", pa.string()), ("item", pa.string()), ("prediction", pa.string())]
)


def finetune_tasks(context: StageContext) -> dict[str, JSON]:
    """The stage `finetuning`: `items.parquet`, `predictions.parquet`, `statistics.json`, and `metrics.jsonl` with the
    training of each task, a line a step, and its scores.

    A task that a killed process had finished is not done again. Returns the mean of each measure over items. Raises
    NumericalError where a training or a model's output is not a number, OutOfMemoryError where memory does not suffice.
    """
    context, start = begin(context, Requests())
    step, rows = start.step, list[ResultRow]()
    numbers: dict[str, JSON] = {}
    for name in _tasks(context):
        outcome = finish(context, name, start)
        numbers[name] = outcome["numbers"]
        rows += _rows(step, name, read_task(context.inputs["finetuning_data"] / name), outcome["answers"])
    _export(context, rows, numbers, step)
    values: dict[str, JSON] = {measure(*key): value for key, value in means(rows).items()}
    return {
        "checkpoint": step,
        "tasks": numbers,
        "metrics": values,
        "precision": start.precision,
        "device": device_name(start.accelerator.device),
    }


def begin(context: StageContext, requests: Requests) -> tuple[StageContext, Start]:
    """The context as the model has it, and what every task begins with."""
    ((step, checkpoint),) = last_checkpoints(context.inputs["training"], context.config.training, 1).items()
    context = replace(context, config=_as_trained(context.config, checkpoint))
    expect_many_shapes()
    accelerator, precision = make_accelerator(replace(context.config.training, processes=1, nodes=1))
    tokenizer = evaluation_tokenizer(checkpoint / "tokenizer")
    return context, Start(step, checkpoint, tokenizer, accelerator, precision, requests)


def left(context: StageContext) -> list[str]:
    """The tasks that are not finished yet."""
    return [name for name in _tasks(context) if not _done(context, name).is_file()]


def _tasks(context: StageContext) -> tuple[str, ...]:
    assert isinstance(context.config.finetuning, ScrollsFinetuning)
    return context.config.finetuning.tasks


def _done(context: StageContext, name: str) -> Path:
    return context.work / f"{name}.json"


def _as_trained(config: RunConfig, checkpoint: Path) -> RunConfig:
    """The configuration with the context length in tokens, which the model has where it was given in bytes."""
    if config.model.context_bytes is None:
        return config
    stored = json.loads((checkpoint / "config.json").read_text(encoding="utf-8"))
    length = int(stored["max_position_embeddings"])
    return replace(config, model=replace(config.model, context_length=length, context_bytes=None))


def finish(context: StageContext, name: str, start: Start) -> dict[str, Any]:
    """Answers and numbers of a task, as they are in the working directory or are made now."""
    done = _done(context, name)
    if not done.is_file():
        work, task_data = context.work / name, read_task(context.inputs["finetuning_data"] / name)
        work.mkdir(exist_ok=True)
        outcome = _finetune(replace(context, work=work), name, task_data, start)
        with replacing(context.work / f"{name}.jsonl") as aside:
            shutil.copyfile(work / METRICS, aside)
        write_json(done, outcome)
        shutil.rmtree(work)
    found: dict[str, Any] = json.loads(done.read_text(encoding="utf-8"))
    return found


def _finetune(context: StageContext, name: str, task_data: TaskData, start: Start) -> dict[str, Any]:
    evaluation, config = context.config.evaluation, context.config.finetuning
    assert isinstance(config, ScrollsFinetuning)
    rows = Rows(start.tokenizer, task_data, context.config.model.context_length)
    cuts = _encode(context.work, rows, task_data)
    trained = finetune(context, name, start)
    prompts = [rows.prompt(question) for question in task_data.scored]

    def progress(done: int, total: int) -> None:
        context.report.progress(done, total, unit="answers", doing=f"answering {name}")

    answers = write_answers(trained.model, rows, prompts, evaluation, progress)
    read: dict[str, JSON] = {
        "answer_tokens": rows.answer_tokens,
        "items": len(prompts),
        "documents_cut": sum(prompt.cut for prompt in prompts),
        "document_bytes": sum(prompt.document_bytes for prompt in prompts) / len(prompts),
    }
    answers = [answer[: config.answer_characters] for answer in answers]
    training: dict[str, JSON] = {**trained.numbers, **cuts}
    return {"answers": answers, "numbers": {**read, "training": training}}


def _encode(work: Path, rows: Rows, task_data: TaskData) -> dict[str, int]:
    """Write the rows that are trained on, unless they are there; how many of them lost a part."""
    if not (work / CUTS).is_file():
        shutil.rmtree(work / ROWS, ignore_errors=True)
        write_json(work / CUTS, write_rows(work / ROWS, rows, task_data.train))
    found: dict[str, int] = json.loads((work / CUTS).read_text(encoding="utf-8"))
    return found


def _rows(step: int, name: str, task_data: TaskData, answers: list[str]) -> list[ResultRow]:
    values = measured(TASKS[name], answers, task_data.scored)
    return [
        ResultRow(step, name, 0, question.id, question.digest, metric, value)
        for question, scores in zip(task_data.scored, values, strict=True)
        for metric, value in scores.items()
    ]


def _export(context: StageContext, rows: list[ResultRow], numbers: dict[str, JSON], step: int) -> None:
    """Fill the artefact from what the tasks have given."""
    write_items_table(context.output / "items.parquet", rows)
    predictions = []
    with (context.output / METRICS).open("w", encoding="utf-8", newline="\n") as metrics:
        for name in numbers:
            outcome = json.loads((context.work / f"{name}.json").read_text(encoding="utf-8"))
            items = list(dict.fromkeys(row.item for row in rows if row.task == name))
            predictions += [
                {"checkpoint": step, "task": name, "item": item, "prediction": answer}
                for item, answer in zip(items, outcome["answers"], strict=True)
            ]
            for line in (context.work / f"{name}.jsonl").read_text(encoding="utf-8").splitlines():
                values = json.loads(line)
                number = values.pop("step")
                named = {metric_name(name, key): value for key, value in values.items()}
                metrics.write(json.dumps({"step": number, **named}) + "\n")
        for key, value in means(rows).items():
            metrics.write(json.dumps({"step": step, measure(*key): value}) + "\n")
            context.report.metric(measure(*key), value, step=step)
    pq.write_table(pa.Table.from_pylist(predictions, schema=PREDICTIONS_SCHEMA), context.output / "predictions.parquet")
    write_json(context.output / "statistics.json", {"checkpoint": step, "tasks": numbers})
