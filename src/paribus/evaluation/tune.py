"""Fine-tuning of a trained model on tasks, and scores of its answers: the stage `finetuning`. Import it late.

The last checkpoint of a training is tuned on one task after the other, each time from the same weights, by the loop of
the stage `training` over prompts and answers. The results of a task are in the working directory: `<task>.jsonl` has
the metrics of its training and `<task>.json`, written last, its answers and numbers. A finished task is not done again;
a killed one resumes from its last checkpoint and ends with the same bytes. The artefact is made of these files alone:
rows as in the stage `evaluation`, and every answer, so that other scripts may judge it.

The parts of a row (question, document, the word that asks for the answer, and the answer) are encoded separately, so
that the tokens of a part do not depend on its neighbours. A document loses its end where the row would not fit. ROUGE
(Lin 2004) is by the package rouge_score, as SCROLLS' own script takes it: F-measures, without stemming.
"""

import json
import math
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from accelerate.utils import release_memory
from rouge_score.rouge_scorer import RougeScorer

from paribus.config.groups.evaluation import EvaluationConfig, ScrollsFinetuning
from paribus.config.groups.training import EqualStepsBudget, TrainingConfig
from paribus.config.schema import RunConfig
from paribus.errors import InterruptedRunError, NumericalError
from paribus.evaluation.evaluate import score_name
from paribus.evaluation.generation import GenerationRequest, Generator
from paribus.evaluation.pairs import Ids, progress_counter
from paribus.evaluation.prompts import evaluation_tokenizer
from paribus.evaluation.rows import ResultRow, means, squad_scores, write_items_table
from paribus.evaluation.scoring import Scorer, last_checkpoints, load_checkpoint_model
from paribus.evaluation.scrolls import ROUGE, SEPARATOR, TASKS, Question, Task, TaskData, read_task
from paribus.modeling.device import expect_many_shapes, resolve_device
from paribus.modeling.models import load_model
from paribus.modeling.parameters import training_flops
from paribus.ordering.packing import OrderedDocuments
from paribus.ordering.pairs import PromptContexts
from paribus.ordering.shuffle import ShuffledContexts
from paribus.stage import JSON, OFFLINE, StageContext, StageListener
from paribus.store.files import METRICS, read_object, replacing, write_json
from paribus.tokenization import Tokenizer
from paribus.tokenization.encoded_corpus import EncodedCorpus, EncodedCorpusWriter
from paribus.training.checkpoint import Checkpoints
from paribus.training.data import Batches, context_targets, context_text_bytes, resolve_budget
from paribus.training.distributed import Requests, run_worker
from paribus.training.loop import TrainingRun, train
from paribus.training.metrics import MetricsFile
from paribus.training.micro_batch import MicroBatch
from paribus.training.parallel import device_name, make_accelerator
from paribus.training.train import fitted_to_memory

CUTS = "cuts.json"
PREDICTIONS_SCHEMA = pa.schema(
    [("checkpoint", pa.int64()), ("task", pa.string()), ("item", pa.string()), ("prediction", pa.string())]
)


def finetune_tasks(context: StageContext) -> dict[str, JSON]:
    """Build the stage `finetuning`: fine-tune on the tasks that are not finished, and score the answers to all.

    Written are `items.parquet`, `predictions.parquet`, `statistics.json`, and `metrics.jsonl` with the training of each
    task, a line a step, and its scores. Returns the mean of each measure over items. Raises NumericalError where a
    training or a model's output is not a number, OutOfMemoryError where memory does not suffice.
    """
    context, start = begin(context, Requests())
    step, rows = start.step, list[ResultRow]()
    numbers: dict[str, JSON] = {}
    for name in _task_names(context):
        outcome = finish(context, name, start)
        numbers[name] = outcome["numbers"]
        questions = read_task(context.inputs["finetuning_data"] / name).scored
        values = answer_scores(TASKS[name], outcome["answers"], questions)
        rows += [
            ResultRow(step, name, 0, question.id, question.digest, metric, value)
            for question, scores in zip(questions, values, strict=True)
            for metric, value in scores.items()
        ]
    _export(context, rows, numbers, step)
    return {
        "checkpoint": step,
        "tasks": numbers,
        "metrics": {score_name(*key): value for key, value in means(rows).items()},
        "precision": start.precision,
        "device": device_name(start.accelerator.device),
    }


@dataclass(frozen=True)
class Start:
    """State that every task begins with."""

    step: int
    checkpoint: Path
    tokenizer: Tokenizer
    accelerator: Any
    precision: str
    requests: Requests
    """Requests by signals, for the training."""


def begin(context: StageContext, requests: Requests) -> tuple[StageContext, Start]:
    """The context with the model's length in tokens, and the state that every task begins with."""
    ((step, checkpoint),) = last_checkpoints(context.inputs["training"], context.config.training, 1).items()
    if context.config.model.context_bytes is not None:
        stored = json.loads((checkpoint / "config.json").read_text(encoding="utf-8"))
        length = int(stored["max_position_embeddings"])
        model = replace(context.config.model, context_length=length, context_bytes=None)
        context = replace(context, config=replace(context.config, model=model))
    expect_many_shapes()
    accelerator, precision = make_accelerator(replace(context.config.training, processes=1, nodes=1))
    tokenizer = evaluation_tokenizer(checkpoint / "tokenizer")
    return context, Start(step, checkpoint, tokenizer, accelerator, precision, requests)


def pending_tasks(context: StageContext) -> list[str]:
    """The tasks that are not finished yet."""
    return [name for name in _task_names(context) if not _task_result(context, name).is_file()]


def _task_names(context: StageContext) -> tuple[str, ...]:
    assert isinstance(context.config.finetuning, ScrollsFinetuning)
    return context.config.finetuning.tasks


def _task_result(context: StageContext, name: str) -> Path:
    return context.work / f"{name}.json"


def finish(context: StageContext, name: str, start: Start) -> dict[str, Any]:
    """Answers and numbers of a task, read from the working directory or computed now."""
    result = _task_result(context, name)
    if not result.is_file():
        work, task_data = context.work / name, read_task(context.inputs["finetuning_data"] / name)
        work.mkdir(exist_ok=True)
        outcome = _finetune(replace(context, work=work), name, task_data, start)
        with replacing(context.work / f"{name}.jsonl") as partial:
            shutil.copyfile(work / METRICS, partial)
        write_json(result, outcome)
        shutil.rmtree(work)
    return read_object(result)


def _finetune(context: StageContext, name: str, task_data: TaskData, start: Start) -> dict[str, Any]:
    evaluation, config = context.config.evaluation, context.config.finetuning
    assert isinstance(config, ScrollsFinetuning)
    rows = Rows(start.tokenizer, task_data, context.config.model.context_length)
    if not (context.work / CUTS).is_file():
        shutil.rmtree(context.work / ROWS_DIRECTORY, ignore_errors=True)
        write_json(context.work / CUTS, write_rows(context.work / ROWS_DIRECTORY, rows, task_data.train))
    model, training = finetune(context, name, start)
    prompts = [rows.prompt(question) for question in task_data.scored]

    def progress(done: int, total: int) -> None:
        context.listener.progress(done, total, unit="answers", doing=f"answering {name}")

    answers = write_answers(model, rows, prompts, evaluation, progress)
    numbers = {
        "answer_tokens": rows.answer_tokens,
        "items": len(prompts),
        "documents_cut": sum(prompt.cut for prompt in prompts),
        "document_bytes": sum(prompt.document_bytes for prompt in prompts) / len(prompts),
        "training": {**training, **read_object(context.work / CUTS)},
    }
    return {"answers": [answer[: config.answer_characters] for answer in answers], "numbers": numbers}


@dataclass(frozen=True)
class FinetuningPrompt:
    """Prompt that a model reads before it answers."""

    ids: Ids
    document_bytes: int
    """UTF-8 bytes of the part of the document that is in the prompt."""
    cut: bool
    """True if the document, or the question too, lost its end."""


class Rows:
    """The prompts and answers of a task in token ids."""

    def __init__(self, tokenizer: Tokenizer, data: TaskData, context_length: int) -> None:
        self.tokenizer = tokenizer
        self._cue = tokenizer.encode(ASKED)
        self._lengths = tokenizer.token_byte_lengths()
        self._context_length = context_length
        longest = max(len(self.whole_answer(question)) for question in data.train) + 1
        self.answer_tokens = min(longest, context_length // 2)
        """Room for the longest answer and the end-of-document token after it; at most half a context."""
        self._documents = [tokenizer.encode(document)[: context_length + 1] for document in data.documents]

    def answer(self, question: Question) -> Ids:
        """The first accepted answer, cut to its room."""
        return self.whole_answer(question)[: self.answer_tokens - 1]

    def whole_answer(self, question: Question) -> Ids:
        """The first accepted answer."""
        return self.tokenizer.encode(f" {question.answers[0]}")

    def prompt(self, question: Question) -> FinetuningPrompt:
        """The prompt of a question, of `context_length` - `answer_tokens` tokens at most."""
        room = max(0, self._context_length - self.answer_tokens - len(self._cue))
        question_ids = self.tokenizer.encode(question.question + SEPARATOR) if question.question else self._cue[:0]
        document = self._documents[question.document]
        part = document[: max(0, room - len(question_ids))]
        cut = len(part) < len(document) or len(question_ids) > room
        ids = np.concatenate([question_ids[:room], part, self._cue])
        return FinetuningPrompt(ids, int(self._lengths[part].sum()), cut)


def _export(context: StageContext, rows: list[ResultRow], numbers: dict[str, JSON], step: int) -> None:
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
            metrics.write(json.dumps({"step": step, score_name(*key): value}) + "\n")
            context.listener.metric(score_name(*key), value, step=step)
    pq.write_table(pa.Table.from_pylist(predictions, schema=PREDICTIONS_SCHEMA), context.output / "predictions.parquet")
    write_json(context.output / "statistics.json", {"checkpoint": step, "tasks": numbers})


ROWS_DIRECTORY = "rows"


@dataclass(frozen=True)
class TaskListener:
    """Listener that reports a training as the fine-tuning on a task."""

    listener: StageListener
    task: str

    def progress(self, done: float, total: float, *, unit: str, doing: str, detail: str = "") -> None:
        self.listener.progress(done, total, unit=unit, doing=f"fine-tuning on {self.task}", detail=detail)

    def metric(self, name: str, value: float, *, step: int) -> None:
        self.listener.metric(metric_name(self.task, name), value, step=step)

    def message(self, text: str) -> None:
        self.listener.message(text)


def metric_name(task: str, name: str) -> str:
    """Name of a training's metric, such as `train/loss`, in a task's fine-tuning."""
    return f"finetuning/{task}/{name.removeprefix('train/')}"


def recipe(config: RunConfig, examples: int) -> tuple[TrainingConfig, int]:
    """Training settings and number of steps of a task with so many examples; no tokenizer changes them."""
    finetuning = config.finetuning
    assert isinstance(finetuning, ScrollsFinetuning)
    steps = math.ceil(finetuning.epochs * examples / finetuning.global_batch)
    training = replace(
        config.training,
        learning_rate=finetuning.learning_rate,
        schedule="cosine",
        min_learning_rate_ratio=0.0,
        warmup_share=finetuning.warmup_share,
        warmup_steps=None,
        global_batch=finetuning.global_batch,
        batch_bytes=None,
        batch_multiple=1,
        micro_batch=min(config.training.micro_batch, finetuning.global_batch),
        checkpoints=1,
        keep_checkpoints=1,
        processes=1,
        nodes=1,
        parallel="ddp",
        shard_processes=0,
    )
    return training, steps


def finetune(context: StageContext, task: str, start: Start) -> tuple[Path, dict[str, JSON]]:
    """Train the model of `start` on the rows in `context.work`, resuming if it can; the last checkpoint and figures."""
    rows = EncodedCorpus(context.work / ROWS_DIRECTORY)
    training, steps = recipe(context.config, len(rows))
    config, listener = replace(context.config, training=training), TaskListener(context.listener, task)
    context = replace(context, config=config, listener=listener)
    vocab_size, accelerator = start.tokenizer.vocab_size, start.accelerator
    record = MicroBatch.of(context.work, training, accelerator.num_processes)
    fitted = fitted_to_memory(config, vocab_size, accelerator, start.precision, record, listener)
    run = _training_run(context, replace(training, micro_batch=fitted.micro_batch), rows, steps, start.accelerator)
    run = replace(run, micro_batch=record, requests=start.requests)
    resumed = run.checkpoints.newest(limit=min(run.metrics.complete_steps(), steps))
    record.keep(fitted.micro_batch, fitted.tried_on)
    try:
        train(run, load_model(resumed.path if resumed else start.checkpoint), resumed)
    except NumericalError as error:
        raise NumericalError(f"fine-tuning on {task} with finetuning.learning_rate: {error}") from error
    finally:
        # accelerate keeps what it has prepared, and the next task would have that much less memory. It collects garbage
        # before it drops its references, and a model in bfloat16 or with compiled layers refers to itself: so again.
        accelerator.free_memory()
        release_memory()
    numbers: dict[str, JSON] = {
        "steps": steps,
        "examples": len(rows),
        "epochs": run.budget.epochs,
        "answer_tokens_predicted": run.budget.tokens,
        "flops": run.budget.flops,
        "final_loss": run.metrics.recent("train/loss"),
    }
    return run.checkpoints.read(steps).path, numbers


def _training_run(
    context: StageContext, training: TrainingConfig, rows: EncodedCorpus, steps: int, accelerator: Any
) -> TrainingRun:
    config, tokenizer = context.config, rows.tokenizer
    assert rows.source_lengths is not None
    documents = OrderedDocuments(rows.ids, rows.offsets, np.arange(len(rows)), tokenizer.eos_id)
    contexts = PromptContexts(documents, config.model.context_length, rows.source_lengths)
    traversal = ShuffledContexts(contexts.count, config.seed_of("contexts"))
    batches = Batches(contexts, training.global_batch, traversal)
    targets, text = context_targets(contexts), context_text_bytes(contexts, tokenizer.token_byte_lengths())
    epoch_flops = training_flops(config.model, tokenizer.vocab_size, rows.tokens)
    step_flops = epoch_flops * training.global_batch // contexts.count
    budget = EqualStepsBudget(kind="equal_steps", steps=steps, max_epochs=None)
    return TrainingRun(
        training=training,
        budget=resolve_budget(budget, batches, targets, text, step_flops),
        batches=batches,
        dropout_seed=config.seed_of("dropout"),
        targets=targets,
        text_bytes=text,
        document_end=None,
        checkpoints=Checkpoints(context.work, frozenset({steps}), {"rows": len(rows), "steps": steps}),
        metrics=MetricsFile(context.work / METRICS),
        listener=context.listener,
        accelerator=accelerator,
    )


ASKED = "\n\nAnswer:"


def write_rows(directory: Path, rows: Rows, questions: Sequence[Question]) -> dict[str, int]:
    """Write an encoded corpus of pairs (prompt, answer) of `questions` in order; the numbers of those cut."""
    cut = {"documents_cut": 0, "answers_cut": 0}
    with EncodedCorpusWriter(directory, rows.tokenizer, pairs=True) as writer:
        for question in questions:
            prompt, answer = rows.prompt(question), rows.answer(question)
            ids = np.concatenate([prompt.ids, answer])
            size = np.array([len(question.answers[0].encode())])
            writer.append(ids, np.array([len(ids)]), size, np.array([len(prompt.ids)]))
            cut["documents_cut"] += prompt.cut
            cut["answers_cut"] += len(rows.whole_answer(question)) > len(answer)
    return cut


def write_answers(
    model: Path,
    rows: Rows,
    prompts: Sequence[FinetuningPrompt],
    config: EvaluationConfig,
    progress: Callable[[int, int], None],
) -> list[str]:
    """Generate the model's greedy answer to each prompt."""
    scorer = Scorer(load_checkpoint_model(model, config.device, config.precision), config.batch_tokens)
    requests = [GenerationRequest(prompt.ids, (), rows.answer_tokens) for prompt in prompts]
    written = Generator(scorer, rows.tokenizer).write(requests, progress_counter(progress, len(requests)))
    return [answer.text.strip() for answer in written]


def answer_scores(task: Task, predictions: Sequence[str], questions: Sequence[Question]) -> list[dict[str, float]]:
    """The task's metrics of each answer."""
    if task.metrics == ROUGE:
        scores = rouge_scores(predictions, [question.answers for question in questions])
    else:
        scores = [
            squad_scores(prediction, [(answer,) for answer in question.answers])
            for prediction, question in zip(predictions, questions, strict=True)
        ]
    return [{metric: score[metric] for metric in task.metrics} for score in scores]


ROUGE_TYPES = ("rouge1", "rouge2", "rougeL")
GEOMETRIC_MEAN = "rouge_geometric_mean"


def rouge_scores(predictions: Sequence[str], answers: Sequence[Sequence[str]]) -> list[dict[str, float]]:
    """ROUGE-1, -2 and -L of each prediction, in [0, 1], each for the accepted answer that is best for it.

    SCROLLS' score is the geometric mean G of the three means over items, and no mean over items itself. Here an item
    has its linearised value (delta method): G + G / 3 · Σ (R_i - mean R) / mean R over the three. The mean of these is
    G, and their spread gives its standard error and paired tests. They are 0 where one of the means is 0.
    """
    scorer = RougeScorer(list(ROUGE_TYPES), use_stemmer=False)
    best = [scorer.score_multi(accepted, text) for text, accepted in zip(predictions, answers, strict=True)]
    items = [{name: float(scores[name].fmeasure) for name in ROUGE_TYPES} for scores in best]
    means = {name: math.fsum(scores[name] for scores in items) / len(items) for name in ROUGE_TYPES}
    geometric = math.prod(means.values()) ** (1 / len(means))

    def linearised(scores: dict[str, float]) -> float:
        changes = ((scores[name] - mean) / mean for name, mean in means.items())
        return geometric + geometric / len(means) * sum(changes) if geometric else 0.0

    return [scores | {GEOMETRIC_MEAN: linearised(scores)} for scores in items]


GROUP_VARIABLES = ("RANK", "LOCAL_RANK", "WORLD_SIZE")
"""Variables by which accelerate would train one model in all processes."""


def finetune_worker(context: StageContext, processes: int, requests: Requests) -> dict[str, JSON]:
    """Finish tasks that no other process has taken, on a GPU of its own; their results are in `context.work`."""
    _, local, _ = (os.environ.pop(name) for name in GROUP_VARIABLES)
    config = context.config
    device, training, evaluation = f"cuda:{local}", config.training, config.evaluation
    if resolve_device(training.device, "training.device").type == "cuda":
        training = replace(training, device=device)
    if resolve_device(evaluation.device, "evaluation.device").type == "cuda":
        evaluation = replace(evaluation, device=device)
    context = replace(context, config=replace(config, training=training, evaluation=evaluation))
    context, start = begin(context, requests)
    for name in pending_tasks(context):
        try:
            (context.work / "group" / f"{name}.taken").touch(exist_ok=False)
        except FileExistsError:
            continue
        try:
            finish(context, name, start)
        except InterruptedRunError:
            # Half a minute after this process ends, its agent kills the others.
            requests.wait_for_others()
            raise
    return {}


def main() -> int:
    """Fine-tune; 0 unless this process failed."""
    os.environ.update(OFFLINE)
    return run_worker(finetune_worker, all_report=True)
