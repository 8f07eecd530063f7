"""Writes records of runs with known scores, as the stages would have left them."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from paribus.reporting.compare import Comparison
from paribus.reporting.notes import notes as all_notes
from paribus.reporting.runs import FinishedRun
from paribus.tracking.events import EventLog

FACTORS = ("tokenizer", "encoder", "ordering")
ENVIRONMENT = {"torch": "2.13.0", "device": "cpu", "precision": "fp32", "digest.corpus": "c0ffee" * 8}

Accuracy = Mapping[tuple[str, int], Sequence[float]]


def config_of(factors: Mapping[str, str], seed: int = 0, **changes: Any) -> dict[str, Any]:
    """A nested configuration whose tokenizer, encoder and ordering follow the labels."""
    config: dict[str, Any] = {
        "corpus": {"kind": "pydocs", "limit": None},
        "tokenizer": {"kind": factors.get("tokenizer", "bpe"), "vocab_size": 4096},
        "encoder": {"kind": factors.get("encoder", "merge_rank")},
        "ordering": {"kind": factors.get("ordering", "standard")},
        "model": {"width": 128, "layers": 4},
        "training": {"learning_rate": 3e-4, "betas": [0.9, 0.95]},
        "seed": seed,
    }
    if config["ordering"]["kind"] == "in_context":
        config["ordering"]["neighbours"] = 10
    for path, value in changes.items():
        group, field = path.split("__")
        config[group] = {**config[group], field: value}
    return config


def write_scores(
    directory: Path,
    accuracy: Accuracy,
    *,
    heldout: Sequence[tuple[float, int]] = (),
    statistics: Mapping[str, Any] | None = None,
    checkpoints: int = 1,
    later: Sequence[Accuracy] = (),
    metric: str = "acc",
) -> Path:
    """An `evaluation` artefact: accuracy of each item by (task, shots), and (bits, bytes) of each held-out document.

    `later` has the accuracy of the checkpoints after the first, where it is another.
    """
    directory.mkdir(parents=True)
    items = [
        (checkpoint, task, shots, f"{task}-{item:04d}", f"hash-{task}-{item}", metric, float(value))
        for checkpoint, scored in enumerate([accuracy, *(later or [accuracy] * (checkpoints - 1))])
        for (task, shots), values in scored.items()
        for item, value in enumerate(values)
    ]
    columns = ["checkpoint", "task", "shots", "item", "doc_hash", "metric", "value"]
    types = {"checkpoint": "int64", "shots": "int64", "value": "float64"}
    pd.DataFrame(items, columns=columns).astype(types).to_parquet(directory / "items.parquet")
    documents = [
        (checkpoint, f"doc-{index:03d}", float(bits), int(size))
        for checkpoint in range(checkpoints)
        for index, (bits, size) in enumerate(heldout)
    ]
    types = {"checkpoint": "int64", "bits": "float64", "bytes": "int64"}
    table = pd.DataFrame(documents, columns=["checkpoint", "document", "bits", "bytes"]).astype(types)
    table.to_parquet(directory / "heldout.parquet")
    (directory / "statistics.json").write_text(json.dumps(statistics or {"heldout": {}, "tasks": {}}), encoding="utf-8")
    return directory


def record(
    root: Path,
    run_id: str,
    factors: Mapping[str, str],
    accuracy: Accuracy,
    *,
    seed: int = 0,
    config: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
    training: Mapping[str, Any] | None = None,
    **scores: Any,
) -> FinishedRun:
    """A run below `root` with its scores on disk."""
    return FinishedRun(
        run_id=run_id,
        config=config if config is not None else config_of(factors, seed),
        factors=dict(factors),
        environment=environment if environment is not None else ENVIRONMENT,
        training=training
        if training is not None
        else {"tokens": 1_000_000, "text_bytes": 3_500_000, "final_loss": 4.0},
        scores=write_scores(root / "artifacts" / run_id, accuracy, **scores),
        directory=root / "runs" / run_id,
    )


def demo_runs(root: Path, *, seeds: Sequence[int] = (0,), items: int = 500, curves: bool = True) -> list[FinishedRun]:
    """Eight combinations of tokenizer, encoder and ordering for each seed, with made-up scores."""
    combinations = [
        (tokenizer, encoder, ordering)
        for tokenizer in ("bpe", "scaffold_bpe")
        for encoder in ("merge_rank", "longest_first")
        for ordering in ("standard", "in_context")
    ]
    generator = np.random.default_rng(7)
    names = [f"continuation-{item:04d}" for item in range(items)]
    difficulty = generator.normal(size=items)
    sizes = generator.integers(200, 4_000, size=120)
    runs = []
    for index, labels in enumerate(combinations):
        for seed in seeds:
            noise = np.random.default_rng([index, seed])
            shift = 0.12 * index - 0.5 + 0.05 * noise.normal()
            bytes_per_token = 3.4 + 0.15 * (index // 2)
            buckets = {"1-3": 0, "4-6": 1, "7-9": 2, "10-12": 3, "13-15": 4}
            lengths = {name: int(1e5 * np.exp(-n * 3 / bytes_per_token)) for name, n in buckets.items()}
            runs.append(
                record(
                    root,
                    f"{index}{seed}a9f3c1",
                    dict(zip(FACTORS, labels, strict=True)),
                    {
                        ("continuation", shots): difficulty + 0.8 * noise.normal(size=items) < shift + 0.03 * shots
                        for shots in (0, 5)
                    },
                    seed=seed,
                    heldout=[(float(s * (2.31 - 0.012 * index + 0.25 * noise.normal())), int(s)) for s in sizes],
                    statistics={
                        "heldout": {
                            "bytes_per_token": bytes_per_token, "entropy": 9.1 + 0.05 * index, "redundancy": 0.24,
                            "token_lengths": lengths, "frequency_by_rank": zipf(bytes_per_token),
                        },
                        "tasks": {"continuation": {"chance": 0.25, "truncated_items": {"5": names[: 3 + index]}}},
                    },
                    training={
                        "tokens": 8_388_608, "text_bytes": int(8_388_608 * bytes_per_token), "steps": 256,
                        "parameters": 1_900_000, "flops": 9.6e13, "epochs": 0.8, "device_hours": 0.02 + 0.001 * index,
                        "final_loss": 5.1 - 0.03 * index,
                    },
                )
            )  # fmt: skip
            if curves:
                _write_events(runs[-1], noise)
    return runs


def zipf(bytes_per_token: float) -> list[list[int]]:
    """Occurrences by rank, falling faster where tokens are shorter."""
    ranks = np.unique(np.round(np.geomspace(1, 4_000, 64)).astype(int))
    return [[int(rank), int(9e4 * rank ** (-3.6 / bytes_per_token)) + 1] for rank in ranks]


def _write_events(run: FinishedRun, noise: np.random.Generator) -> None:
    with EventLog(run.directory / "events.jsonl") as log:
        log.start(run.run_id, run.run_id, None, {"kind": "none"})
        for step in range(8, 257, 8):
            loss = run.training["final_loss"] + 3.2 * np.exp(-step / 60) + 0.03 * noise.normal()
            log.metric("train/loss", float(loss), step)
            for name in ("tokens", "text_bytes", "flops"):
                log.metric(f"train/{name}", run.training[name] * step / 256, step)


def notes(comparison: Comparison) -> list[str]:
    """The sentences beside a table, all of them."""
    return all_notes(comparison).lines


def with_texts(run: FinishedRun, **sets: list[tuple[float, int]]) -> FinishedRun:
    """The run with bits and bytes of the documents of sets of texts, cut into tokens of four bytes."""
    assert run.scores is not None
    lines = [
        (name, 0, f"test/{n}", bits, size, -(-size // 4))
        for name, found in sets.items()
        for n, (bits, size) in enumerate(found)
    ]
    table = pd.DataFrame(lines, columns=["text_set", "checkpoint", "document", "bits", "bytes", "tokens"])
    table.to_parquet(run.scores / "texts.parquet")
    statistics = {"heldout": {}, "tasks": {}, "texts": {name: {} for name in sets}}
    (run.scores / "statistics.json").write_text(json.dumps(statistics))
    return run
