"""What a fine-tuned model answers, and how good that is. Imports torch and lm_eval: import this module late."""

from collections.abc import Callable, Sequence
from pathlib import Path

from paribus.config.groups.evaluation import EvaluationConfig
from paribus.evaluation.measures.answers import squad_scores
from paribus.evaluation.measures.rouge import rouge_scores
from paribus.evaluation.models.checkpoints import load_checkpoint_model
from paribus.evaluation.models.generation import GenerationRequest, Generator
from paribus.evaluation.models.scoring import Scorer
from paribus.evaluation.progress import counter
from paribus.finetuning.data import Question
from paribus.finetuning.rows import FinetuningPrompt, Rows
from paribus.finetuning.tasks import ROUGE, Task


def write_answers(
    model: Path,
    rows: Rows,
    prompts: Sequence[FinetuningPrompt],
    config: EvaluationConfig,
    progress: Callable[[int, int], None],
) -> list[str]:
    """The model's greedy answer to each prompt."""
    scorer = Scorer(load_checkpoint_model(model, config.device, config.precision), config.batch_tokens)
    requests = [GenerationRequest(prompt.ids, (), rows.answer_tokens) for prompt in prompts]
    written = Generator(scorer, rows.tokenizer).write(requests, counter(progress, len(requests)))
    return [answer.text.strip() for answer in written]


def measured(task: Task, predictions: Sequence[str], questions: Sequence[Question]) -> list[dict[str, float]]:
    """The task's metrics of each answer."""
    if task.metrics == ROUGE:
        scores = rouge_scores(predictions, [question.answers for question in questions])
    else:
        scores = [
            squad_scores(prediction, [(answer,) for answer in question.answers])
            for prediction, question in zip(predictions, questions, strict=True)
        ]
    return [{metric: score[metric] for metric in task.metrics} for score in scores]
