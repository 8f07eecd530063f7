"""Score checkpoints on tasks and held-out text. Imports lm_eval and torch: import this module late."""

import logging
from dataclasses import asdict, dataclass, field

from paribus.config.groups.model import EncoderDecoderModel
from paribus.evaluation.bits_per_byte import DocumentBits, document_bits
from paribus.evaluation.checkpoints import last_checkpoints, load_checkpoint_model, load_checkpoint_tokenizer
from paribus.evaluation.harness import HarnessModel, load_task, run_tasks, task_name
from paribus.evaluation.heldout import HELDOUT, read_heldout
from paribus.evaluation.heldout_pairs import TextPair, read_pairs
from paribus.evaluation.results import Row, item_rows, means, write_heldout_table, write_items_table
from paribus.evaluation.scoring import Scorer
from paribus.evaluation.target_bits import TargetScorer
from paribus.evaluation.task_files import read_config
from paribus.pipeline.context import JSON, StageContext
from paribus.store.atomic import write_json
from paribus.tokenization.statistics import corpus_statistics

BITS_PER_BYTE = "eval/bits_per_byte"
TEXT = "text/"
"""Prefix of what the tokenizer does with the held-out text, whatever the checkpoint."""
TEXT_NUMBERS = (
    "bytes_per_token", "tokens_per_word", "mean_token_length", "entropy", "redundancy", "renyi_efficiency",
    "used_tokens", "unused_tokens", "scaffold_share",
)  # fmt: skip


@dataclass
class Scored:
    """What the checkpoints of one run have given so far."""

    rows: list[Row] = field(default_factory=list)
    heldout: dict[int, DocumentBits] = field(default_factory=dict)
    truncated: dict[str, dict[str, int]] = field(default_factory=dict)
    """Task -> shots -> items whose prompt lost its beginning; the same at every checkpoint."""


def score_checkpoints(context: StageContext) -> dict[str, JSON]:
    """The stage `scores`; see `paribus.evaluation.stages.build_scores`."""
    logging.getLogger("lm_eval").setLevel(logging.ERROR)
    checkpoints = last_checkpoints(context.inputs["checkpoints"], context.config.evaluation.last_checkpoints)
    heldout = _Heldout(context)
    tokenizer = load_checkpoint_tokenizer(next(iter(checkpoints.values())))
    scored = Scored()
    for number, (step, path) in enumerate(checkpoints.items(), start=1):
        progress = _Progress(context, f"step {step} ({number} of {len(checkpoints)})")
        model = load_checkpoint_model(path, context.config.evaluation.device)
        if heldout.pairs is None:
            scorer = Scorer(model, context.config.evaluation.batch_size)
            if context.config.evaluation.tasks:
                _score_tasks(context, step, HarnessModel(scorer, tokenizer, progress.requests), scored)
            bits = document_bits(scorer, tokenizer, heldout.texts, progress.text)
        else:
            config = context.config
            length, size = config.model.context_length, config.evaluation.batch_size
            bits = TargetScorer(model, tokenizer, length, size).bits(heldout.pairs, progress.text)
        context.report.metric(BITS_PER_BYTE, bits.bits_per_byte, step=step)
        scored.heldout[step] = bits
    write_items_table(context.output / "items.parquet", scored.rows)
    write_heldout_table(context.output / "heldout.parquet", heldout.documents, scored.heldout)
    statistics = corpus_statistics(tokenizer, heldout.texts)
    for name in TEXT_NUMBERS:
        context.report.metric(TEXT + name, float(getattr(statistics, name)), step=max(checkpoints))
    tasks = _tasks(context, scored)
    write_json(context.output / "statistics.json", {"heldout": asdict(statistics), "tasks": tasks})
    return _result(scored, list(checkpoints))


class _Heldout:
    """The sample of held-out documents or pairs."""

    def __init__(self, context: StageContext) -> None:
        path = context.inputs["tasks"] / HELDOUT
        self.pairs: list[TextPair] | None = None
        if isinstance(context.config.model, EncoderDecoderModel):
            self.pairs = read_pairs(path)
            self.documents = [pair.id for pair in self.pairs]
            self.texts = [text for pair in self.pairs for text in (pair.source, pair.target)]
        else:
            self.documents, self.texts = (list(column) for column in zip(*read_heldout(path), strict=True))


def _score_tasks(context: StageContext, step: int, model: HarnessModel, scored: Scored) -> None:
    config, directory = context.config.evaluation, context.inputs["tasks"]
    pairs = [(name, shots) for name in config.tasks for shots in config.task_shots(name)]
    tasks = [load_task(directory, name, shots) for name, shots in pairs]
    samples = run_tasks(model, tasks, config.fewshot_seed)
    rows = [row for name, shots in pairs for row in item_rows(step, name, shots, samples[task_name(name, shots)])]
    for (name, shots, metric), value in means(rows).items():
        context.report.metric(measure(name, shots, metric), value, step=step)
    scored.rows += rows
    for name, shots in pairs:
        scored.truncated.setdefault(name, {})[str(shots)] = len(model.truncated[task_name(name, shots)])


def measure(task: str, shots: int, metric: str) -> str:
    """Name of a metric of the run."""
    return f"eval/{task}/{shots}shot/{metric}"


class _Progress:
    """Passes on what is done of a checkpoint."""

    def __init__(self, context: StageContext, doing: str) -> None:
        self._report = context.report
        self._doing = doing

    def requests(self, done: int, total: int) -> None:
        self._report.progress(done, total, unit="requests", doing=f"scoring tasks, {self._doing}")

    def text(self, done: int, total: int) -> None:
        self._report.progress(done, total, unit="bytes", doing=f"scoring held-out text, {self._doing}")


def _tasks(context: StageContext, scored: Scored) -> dict[str, JSON]:
    """What a reader of the tasks' scores must know."""
    tasks: dict[str, JSON] = {}
    for name in context.config.evaluation.tasks:
        metadata = read_config(context.inputs["tasks"], name)["metadata"]
        tasks[name] = {
            "chance": metadata["chance"],
            "items": len({row.item for row in scored.rows if row.task == name}),
            "fewshot_source": metadata["fewshot_source"],
            "truncated_prompts": dict(scored.truncated[name]),
        }
    return tasks


def _result(scored: Scored, steps: list[int]) -> dict[str, JSON]:
    """Means over items and checkpoints; every checkpoint has the same items."""
    values: dict[str, JSON] = {measure(*key): value for key, value in means(scored.rows).items()}
    bits = [result.bits_per_byte for result in scored.heldout.values()]
    values[BITS_PER_BYTE] = sum(bits) / len(bits)
    return {"checkpoints": [*steps], "metrics": values}
