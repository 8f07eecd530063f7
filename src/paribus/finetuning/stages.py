"""The stages `finetuning_data` and `finetuned`: from files to examples, from a checkpoint to scores."""

import os

from paribus.evaluation.stages import OFFLINE
from paribus.finetuning import data
from paribus.pipeline.context import JSON, StageContext


def build_data(context: StageContext) -> dict[str, JSON]:
    """Write the examples of every task (`paribus.finetuning.data`), before anything is trained."""
    return data.build(context)


def build(context: StageContext) -> dict[str, JSON]:
    """Fine-tune the last checkpoint on each task: `items.parquet`, `predictions.parquet`, `statistics.json`.

    `metrics.jsonl` has the training of each task, a line a step, and its scores. A task that a killed process had
    finished is not done again. Returns the mean of each measure over items. Raises NumericalError where a training or
    a model's output is not a number, OutOfMemoryError where memory does not suffice.
    """
    os.environ.update(OFFLINE)
    from paribus.finetuning.run import finetune_tasks

    return finetune_tasks(context)
