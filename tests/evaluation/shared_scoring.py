"""The stages after training in one process and in two: python shared_scoring.py ROOT NAME PROCESSES.

The launcher of processes handles signals and changes the environment, so each runs in a process of its own. What the
stage reported is written beside its artefact.
"""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from test_stage_pairs import MODEL, write_inputs

from paribus.config.groups.evaluation import EvaluationConfig
from paribus.errors import ParibusError
from paribus.evaluation.stage import build_scores, build_tasks
from paribus.stage import SilentListener
from paribus.tokenization import Tokenizer
from support.benchmark_records import RECORDS
from support.evaluations import WORDS, stage_context, write_checkpoints, write_drawn_corpus
from support.finetunings import finetuning_config, run_data, run_finetuned, write_checkpoint, write_task
from support.stages import context_at
from support.training_inputs import TRAINING, pair_config


def texts(root: Path, processes: int) -> None:
    """Choices, written answers and held-out text."""
    data, made = root / "data", (root / "tasks").exists()
    asked = {"tasks": ("continuation", "squad"), "data": str(data), "continuation_items": 20, "shots": (0, 1)}
    evaluation = EvaluationConfig(
        heldout_documents=20, device="cpu", processes=processes, batch_tokens=512, last_checkpoints=2, **asked
    )
    if not made:
        (data / "squad").mkdir(parents=True)
        for name, question, number in (("validation", "Who ran to {}?", 7), ("train", "Who else?", 1)):
            records = [RECORDS["squad"] | {"question": question.format(WORDS[place])} for place in range(number)]
            (data / "squad" / f"{name}.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
        write_drawn_corpus(root)
        write_checkpoints(
            root, Tokenizer.train([" ".join(WORDS)] * 3, vocab_size=300, special_tokens=["<|endoftext|>"])
        )
        build_tasks(stage_context(root, evaluation, "tasks", "corpus"))
    score(root, processes, stage_context(root, evaluation, f"config{processes}", "corpus").config)


def pairs(root: Path, processes: int) -> None:
    """Held-out targets and translations."""
    config = pair_config(training=replace(TRAINING, checkpoints=2))
    chosen = {"last_checkpoints": 2, "batch_tokens": 80, "translations": 9, "beams": 2, "processes": processes}
    config = replace(config, model=MODEL, evaluation=replace(config.evaluation, **chosen))
    if not (root / "tasks").exists():
        write_inputs(root)
        build_tasks(context_at(root / "tasks", root / "tasks.work", config, {"corpus": root / "corpus"}))
    score(root, processes, config)


def score(root: Path, processes: int, config: Any) -> None:
    report, name = SilentListener(), f"evaluation{processes}"
    inputs = {stage: root / stage for stage in ("corpus", "tasks", "training")}
    result = build_scores(context_at(root / name, root / f"{name}.work", config, inputs, listener=report))
    (root / f"{name}.json").write_text(json.dumps([result, sorted(report.metrics)]))


def finetuning(root: Path, processes: int) -> None:
    """Three tasks, of which two are fine-tuned on at once."""
    tasks = ("qasper", "narrative_qa", "contract_nli")
    config = finetuning_config(root, tasks=tasks, processes=processes)
    if not (root / "data").exists():
        for number, task in enumerate(tasks):
            write_task(root, task, examples=6 + 3 * number)
        write_checkpoint(root)
        run_data(root, config)
    run_finetuned(root, config, f"finetuning{processes}")


SCENARIOS = {"texts": texts, "pairs": pairs, "finetuning": finetuning}


def main(root: Path, name: str, processes: int) -> None:
    try:
        SCENARIOS[name](root, processes)
    except ParibusError as error:
        print(f"{type(error).__name__}: {error}")  # noqa: T201


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
