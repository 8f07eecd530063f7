"""How long a report of many runs takes: `python benchmarks/report.py [RUNS]`, 1,000 without a number.

Records of small runs are made in a temporary directory: two tasks of 100 items at 0 and 5 shots with four metrics, two
checkpoints, 100 held-out documents, a learning curve; 500 rows of two seeds. Then `compare` and `write_report` are
timed, each with what it reads from disk, and the imports apart, as a process has them once.
"""

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

TASKS, SHOTS, METRICS = ("boolq", "piqa"), (0, 5), ("acc", "acc_norm", "acc_bytes", "choice_bits")
ITEMS, DOCUMENTS, CHECKPOINTS, STEPS = 100, 100, 2, 100


def main() -> None:
    """Make the records, time the report, print a line for each part."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    started = time.perf_counter()
    import statsmodels.stats.api  # noqa: F401

    from paribus.reporting.compare import compare
    from paribus.reporting.report import write_report

    sys.stdout.write(f"imports                 {time.perf_counter() - started:6.2f} s\n")
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        runs = [_run(root, number) for number in range(count)]
        for what, function in (
            ("compare", lambda: compare(runs, ("tokenizer.vocab_size",))),
            ("compare and write", lambda: _write(write_report, runs, root)),
        ):
            wall, processor = time.perf_counter(), time.process_time()
            function()
            spent = time.perf_counter() - wall, time.process_time() - processor
            sys.stdout.write(f"{what:<18}{count:>6} {spent[0]:6.2f} s, {spent[1]:.2f} s of processor time\n")


def _write(write_report: Any, runs: list[Any], root: Path) -> None:
    write_report(runs, title="Many runs", factors=("tokenizer.vocab_size",), directory=root / "report")


def _run(root: Path, number: int) -> Any:
    from paribus.reporting.runs import FinishedRun

    row, seed = divmod(number, 2)
    generator = np.random.default_rng(number)
    directory, scores = root / "runs" / f"{number:016x}", root / "scores" / str(number)
    for path in (directory, scores):
        path.mkdir(parents=True)
    _write_scores(scores, generator, row)
    _write_events(directory, generator)
    return FinishedRun(
        run_id=f"{number:016x}",
        config={"tokenizer": {"kind": "bpe", "vocab_size": 1_000 + row}, "seed": seed} | _settings(),
        factors={"tokenizer.vocab_size": str(1_000 + row)},
        environment={f"code_version.stage{index}": "1" for index in range(30)},
        training={"tokens": 10**6, "text_bytes": 4 * 10**6, "steps": STEPS, "flops": 10**12, "final_loss": 4.0},
        scores=scores,
        directory=directory,
    )


def _settings() -> dict[str, dict[str, Any]]:
    """As many fields as a configuration has."""
    return {f"group{group}": {f"field{field}": field * 0.5 for field in range(12)} for group in range(12)}


def _write_scores(directory: Path, generator: np.random.Generator, row: int) -> None:
    keys = [(checkpoint, task, shots) for checkpoint in range(CHECKPOINTS) for task in TASKS for shots in SHOTS]
    lines = [
        (*key, f"{item:05d}", f"hash{item}", metric) for key in keys for item in range(ITEMS) for metric in METRICS
    ]
    columns = [list(column) for column in zip(*lines, strict=True)]
    values = (generator.random(len(lines)) < 0.4 + row / 5_000).astype(np.float64)
    names = ["checkpoint", "task", "shots", "item", "doc_hash", "metric", "value"]
    pq.write_table(pa.table([*columns, values], names=names), directory / "items.parquet")
    sizes = 200 + np.arange(DOCUMENTS)
    heldout = {
        "checkpoint": np.repeat(np.arange(CHECKPOINTS), DOCUMENTS),
        "document": [f"doc{index}" for index in range(DOCUMENTS)] * CHECKPOINTS,
        "bits": np.tile(sizes, CHECKPOINTS) * generator.normal(2, 0.1, CHECKPOINTS * DOCUMENTS),
        "bytes": np.tile(sizes, CHECKPOINTS),
    }
    pq.write_table(pa.table(heldout), directory / "heldout.parquet")
    statistics = {
        "bytes_per_token": 4.0,
        "token_lengths": {"1-3": 5 + row, "4-6": 3},
        "frequency_by_rank": [[1, 9], [9, 1]],
    }
    tasks = {task: {"chance": 0.5, "truncated_items": {"0": []}} for task in TASKS}
    (directory / "statistics.json").write_text(json.dumps({"heldout": statistics, "tasks": tasks}), encoding="utf-8")


def _write_events(directory: Path, generator: np.random.Generator) -> None:
    lines = []
    for step in range(1, STEPS + 1):
        loss = 4 + 3 * np.exp(-step / 30) + 0.05 * generator.normal()
        values = {"loss": loss, "tokens": 10_000 * step, "text_bytes": 40_000 * step, "flops": 10**10 * step}
        lines += [
            json.dumps({"event": "metric", "time": step, "name": f"train/{name}", "value": float(value), "step": step})
            for name, value in values.items()
        ]
    (directory / "events.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
