"""Scores and fine-tuning of several processes, which are those of one.

The launcher of processes handles signals and changes the environment, so each stage runs in a process of its own: this
file is also the program `python test_stage_processes.py ROOT SCENARIO PROCESSES`. What a stage reported is written
beside its artefact.
"""

import json
import sys
from pathlib import Path

import psutil
import pytest

from paribus.config.groups.evaluation import EvaluationConfig
from paribus.errors import ParibusError
from paribus.evaluation.stage import build_scores, build_tasks
from paribus.tokenization import Tokenizer
from support.benchmark_records import RECORDS
from support.evaluations import WORDS, evaluation_context, write_checkpoints, write_drawn_corpus
from support.finetunings import finetuning_config, run_data, run_finetuned, write_checkpoint, write_task
from support.stages import files
from support.training_processes import Program, begin_program, members_below
from support.waiting import wait_until

TIMES = ("device_hours", "_per_second", "seconds", "utilization")


def score_texts(root: Path, processes: int) -> None:
    """Choices, written answers and held-out text."""
    data = root / "data"
    evaluation = EvaluationConfig(
        tasks=("continuation", "squad"), data=str(data), continuation_items=20, shots=(0, 1), heldout_documents=20,
        device="cpu", processes=processes, batch_tokens=512, last_checkpoints=2,
    )  # fmt: skip
    if not (root / "tasks").exists():
        (data / "squad").mkdir(parents=True)
        for split, records in (("validation", 7), ("train", 1)):
            lines = [json.dumps(RECORDS["squad"] | {"question": f"{split} {WORDS[i]}?"}) for i in range(records)]
            (data / "squad" / f"{split}.jsonl").write_text("\n".join(lines))
        write_drawn_corpus(root)
        tokenizer = Tokenizer.train([" ".join(WORDS)] * 3, vocab_size=300, special_tokens=["<|endoftext|>"])
        write_checkpoints(root, tokenizer)
        build_tasks(evaluation_context(root, evaluation, "tasks", "corpus"))
    context = evaluation_context(root, evaluation, f"evaluation{processes}", "corpus", "tasks", "training")
    result = build_scores(context)
    reported = sorted(context.listener.metrics)  # type: ignore[attr-defined]
    (root / f"evaluation{processes}.json").write_text(json.dumps([result, reported]))


def finetune(root: Path, processes: int) -> None:
    """Three tasks, of which two are fine-tuned on at once."""
    tasks = ("qasper", "narrative_qa", "contract_nli")
    config = finetuning_config(root, tasks=tasks, processes=processes)
    if not (root / "data").exists():
        for number, task in enumerate(tasks):
            write_task(root, task, examples=6 + 3 * number)
        write_checkpoint(root)
        run_data(root, config)
    run_finetuned(root, config, f"finetuning{processes}")


SCENARIOS = {"texts": score_texts, "finetuning": finetune}


def start(root: Path, scenario: str, processes: int) -> Program:
    return begin_program([__file__, str(root), scenario, str(processes)], OMP_NUM_THREADS=str(processes))


def run(root: Path, scenario: str, processes: int) -> str:
    process = start(root, scenario, processes)
    output, errors = process.communicate(timeout=200)
    assert process.returncode == 0, errors
    return output


def reported(path: Path) -> list[tuple[str, float, int]]:
    """All metrics but those of time."""
    metrics = sorted(map(tuple, json.loads(path.read_text())))
    return [metric for metric in metrics if not metric[0].endswith(TIMES)]


def resume(root: Path) -> None:
    """Fine-tune to the end in two processes, if these were stopped, and in one; both end with the same bytes."""
    if not (root / "finetuning2" / "statistics.json").exists():
        (root / "finetuning2").rmdir()
        assert run(root, "finetuning", 2) == ""
    assert run(root, "finetuning", 1) == ""
    assert files(root / "finetuning1") == files(root / "finetuning2")


@pytest.mark.slow
def test_two_processes_score_to_the_bytes_of_one(tmp_path: Path) -> None:
    for processes in (1, 2):
        assert run(tmp_path, "texts", processes) == ""
    assert (tmp_path / "evaluation2.work" / "group").is_dir()
    of_one, of_two = (files(tmp_path / f"evaluation{processes}") for processes in (1, 2))
    assert {"heldout.parquet", "items.parquet", "statistics.json"} <= of_one.keys()
    assert of_one == of_two
    results = [json.loads((tmp_path / f"evaluation{processes}.json").read_text()) for processes in (1, 2)]
    assert results[0] == results[1]
    assert len(results[0][1]) > 3


@pytest.mark.slow
def test_tasks_fine_tuned_on_at_once_end_with_the_bytes_of_one_after_the_other(tmp_path: Path) -> None:
    for processes in (1, 2):
        assert run(tmp_path, "finetuning", processes) == ""
    tasks = sorted(path.stem for path in (tmp_path / "finetuning2.work" / "group").glob("*.taken"))
    assert tasks == ["contract_nli", "narrative_qa", "qasper"]
    assert files(tmp_path / "finetuning1") == files(tmp_path / "finetuning2")
    of_one, of_two = (reported(tmp_path / f"finetuning{number}.reported.json") for number in (1, 2))
    assert of_one == of_two
    assert {name.split("/")[1] for name, _, _ in of_one} >= set(tasks)


@pytest.mark.slow
def test_a_killed_process_ends_all_and_finished_tasks_are_not_repeated(tmp_path: Path) -> None:
    process = start(tmp_path, "finetuning", 2)
    work = tmp_path / "finetuning2.work"
    wait_until(lambda: list(work.glob("*.json")), process)
    members_below(psutil.Process(process.pid))["0"].kill()
    output, errors = process.communicate(timeout=60)
    if "InfrastructureError" in output:
        assert "was killed from outside" in output, errors
    finished = {path: path.stat().st_mtime_ns for path in work.glob("*.json")}
    resume(tmp_path)
    assert {path: path.stat().st_mtime_ns for path in finished} == finished


if __name__ == "__main__":
    try:
        SCENARIOS[sys.argv[2]](Path(sys.argv[1]), int(sys.argv[3]))
    except ParibusError as error:
        print(f"{type(error).__name__}: {error}")  # noqa: T201
