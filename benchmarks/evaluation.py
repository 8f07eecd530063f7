"""Speed of scoring beside lm-eval's own model class `hf` on the same checkpoint, with the scores compared.

python benchmarks/evaluation.py --data DIR [--checkpoint DIR] [--tasks piqa boolq] [--shots 0 5] [--output FILE]

DIR holds benchmark files as `evaluation.data` does. Both get the same requests, device and batch size in one process
and take turns; measured is the whole way from text to scores, and for paribus once more where the requests are encoded,
as they are for a run's further checkpoints. Without a checkpoint, a model with random weights is saved, with a
tokenizer trained on the questions, and scored. The exit status is 1 where scores differ by more than 1e-5, in nats or
relative to the score, whichever is less.
"""

import argparse
import logging
import os
import random
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from paribus.evaluation.stage import OFFLINE

os.environ.update(OFFLINE)

import numpy as np
import torch
from lm_eval.models.huggingface import HFLM

import paribus.tokenization.export  # noqa: F401 (AutoTokenizer learns of ParibusTokenizer)
from paribus.config.groups.model import LlamaModel
from paribus.evaluation.benchmarks import BENCHMARKS
from paribus.evaluation.data_files import benchmark_items
from paribus.evaluation.evaluate import HarnessModel, build_requests, load_task
from paribus.evaluation.items import ItemSet, read_records, write_task
from paribus.evaluation.prompts import evaluation_tokenizer
from paribus.evaluation.scoring import SCORED_TOKENS, Scorer, load_checkpoint_model
from paribus.modeling.device import resolve_device
from paribus.modeling.models import build_model, save_model
from paribus.tokenization import Tokenizer

TOLERANCE = 1e-5


@dataclass
class Measured:
    """One task with its shots."""

    name: str
    requests: int
    seconds: dict[str, list[float]] = field(default_factory=dict)
    difference: float = 0.0
    left_out: int = 0
    """Requests whose prompt is cut or of which a token crosses the boundary: lm-eval scores these otherwise."""

    def add(self, contestant: str, seconds: float) -> None:
        """Note one time of a contestant."""
        self.seconds.setdefault(contestant, []).append(seconds)

    def row(self) -> str:
        """A line of the table."""
        median = {name: statistics.median(times) for name, times in self.seconds.items()}
        cells = [f"{self.requests:,}", *(f"{median[name]:.2f}" for name in ("hf", "paribus", "encoded"))]
        ratio = f"{median['hf'] / median['paribus']:.2f}"
        return f"| {' | '.join([self.name, *cells, ratio, f'{self.difference:.1e}', str(self.left_out)])} |"


def main(given: argparse.Namespace) -> int:
    """Measure and print the table; 1 where scores differ."""
    logging.getLogger("lm_eval").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory() as directory:
        write_tasks(Path(directory), given)
        checkpoint = given.checkpoint or write_checkpoint(Path(directory), given)
        measured = [measure(Path(directory), checkpoint, name, shots, given) for name, shots in pairs(given)]
        shape = load_checkpoint_model(checkpoint, "cpu").architecture
    lines = [machine(given, shape), "", *HEADER, *(one.row() for one in measured)]
    sys.stdout.write("\n".join(lines) + "\n")
    if given.output:
        given.output.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return int(any(one.difference > TOLERANCE for one in measured))


HEADER = (
    "| task | requests | lm-eval `hf`, s | paribus, s | encoded, s | `hf` / paribus | largest difference | left out |",
    "|---|---|---|---|---|---|---|---|",
)


def pairs(given: argparse.Namespace) -> list[tuple[str, int]]:
    """Task and shots."""
    return [(name, shots) for name in given.tasks for shots in given.shots]


def write_tasks(directory: Path, given: argparse.Namespace) -> None:
    """The tasks' files, with the first `--items` questions."""
    for name in given.tasks:
        benchmark = BENCHMARKS[name]
        items = benchmark_items(str(given.data), benchmark, max(given.shots))
        items = ItemSet(items.evaluated[: given.items], items.fewshot, items.fewshot_source)
        write_task(directory, name, items, benchmark.prompt)


def write_checkpoint(directory: Path, given: argparse.Namespace) -> Path:
    """A model with random weights and its tokenizer, as a checkpoint of a run has them."""
    files = [directory / f"{name}{kind}.jsonl" for name in given.tasks for kind in ("", ".fewshot")]
    texts = [f"{item['query']} {' '.join(item['choices'])}" for file in files for item in read_records(file)]
    tokenizer = Tokenizer.train(texts, vocab_size=given.vocabulary, special_tokens=["<|endoftext|>"])
    width, checkpoint = given.width, directory / "checkpoint"
    model = LlamaModel(
        width=width, layers=given.layers, heads=width // 64, ffn_width=4 * width, context_length=given.context_length
    )
    save_model(build_model(model, tokenizer.vocab_size, seed=0, eos_id=tokenizer.eos_id), checkpoint)
    tokenizer.to_huggingface(split_special_tokens=True).save_pretrained(checkpoint)
    tokenizer.save(checkpoint / "tokenizer")
    return checkpoint


def measure(directory: Path, checkpoint: Path, name: str, shots: int, given: argparse.Namespace) -> Measured:
    """Both contestants in turns, over the requests of one task."""
    requests = build_requests([load_task(directory, name, shots)], 1234)
    theirs = HFLM(
        pretrained=str(checkpoint),
        dtype="float32",
        device=str(resolve_device(given.device, "--device")),
        batch_size=given.batch_size,
    )
    scorer = Scorer(load_checkpoint_model(checkpoint, given.device), given.batch_tokens)
    tokenizer = evaluation_tokenizer(checkpoint / "tokenizer")
    measured = Measured(f"{name}, {shots} shots", len(requests))
    for warm in (theirs, HarnessModel(scorer, tokenizer)):
        warm.loglikelihood(requests[: given.batch_size], disable_tqdm=True)
    for turn in range(given.rounds):
        ours, encoded = HarnessModel(scorer, tokenizer), HarnessModel(scorer, tokenizer)
        encoded.encode(requests)
        contestants: list[tuple[str, Any]] = [("hf", theirs), ("paribus", ours), ("encoded", encoded)]
        answers = {}
        for contestant, model in random.Random(turn).sample(contestants, len(contestants)):
            start = time.perf_counter()
            answers[contestant] = model.loglikelihood(requests, disable_tqdm=True)
            measured.add(contestant, time.perf_counter() - start)
        compare(measured, requests, encoded, answers)
        sys.stderr.write(f"{time.strftime('%H:%M:%S')} {measured.name}, round {turn + 1}\n")
    return measured


def compare(measured: Measured, requests: list[Any], ours: HarnessModel, answers: dict[str, Any]) -> None:
    """Note the largest difference of scores, over those that both score alike."""
    encoded = ours.encode(requests)
    alike = np.array(
        [(one.task_name, one.doc_id) not in encoded.truncated | encoded.crossed.keys() for one in requests]
    )
    left, right = (np.array([score for score, _ in answers[name]])[alike] for name in ("hf", "paribus"))
    difference = np.abs(left - right) / np.maximum(1, np.abs(left))
    measured.difference = max(measured.difference, float(difference.max(initial=0)))
    measured.left_out = int((~alike).sum())


def machine(given: argparse.Namespace, shape: Any) -> str:
    """What was measured where."""
    versions = ", ".join(f"{name} {version(name)}" for name in ("torch", "transformers", "lm_eval"))
    device = resolve_device(given.device, "--device")
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else f"{os.cpu_count()} cores"
    return (
        f"{name}, {torch.get_num_threads()} threads, load average {os.getloadavg()[0]:.1f} at the end; "
        f"{time.strftime('%Y-%m-%d')}; {versions}. {shape.kind}, {shape.layers} layers of "
        f"{shape.width}, vocabulary {shape.vocab_size:,}, context {shape.context_length:,}, float32; "
        f"{given.batch_size} requests a batch of hf, "
        f"{given.batch_tokens or SCORED_TOKENS[device.type]:,} tokens one of ours; medians of {given.rounds} rounds."
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add = parser.add_argument
    add("--data", type=Path, required=True, help="directory with <task>/<split>.jsonl[.gz]")
    add("--checkpoint", type=Path, help="directory step_XXXXXXXX of a run; default: random weights")
    add("--tasks", nargs="+", choices=sorted(BENCHMARKS), default=["piqa", "boolq"])
    add("--shots", nargs="+", type=int, default=[0, 5])
    add("--items", type=int, default=200, help="questions a task")
    add("--batch-size", type=int, default=32, help="requests of a batch of hf")
    add("--batch-tokens", type=int, help="tokens of a batch of paribus; default: what it takes by itself")
    add("--rounds", type=int, default=3)
    add("--device", default="auto", help="auto, cpu, cuda or cuda:N")
    add("--width", type=int, default=256, help="of the model with random weights")
    add("--layers", type=int, default=4)
    add("--vocabulary", type=int, default=8192)
    add("--context-length", type=int, default=2048)
    add("--output", type=Path, help="file for the table")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main(_arguments()))
