"""Speed of scoring beside lm-eval's own model class `hf` on the same checkpoint, with the scores compared.

python benchmarks/evaluation.py --data DIR [--checkpoint DIR] [--tasks piqa boolq] [--shots 0 5] [--items 200]

DIR holds benchmark files as `evaluation.data` does. Both get the same requests and device in one process and take
turns; measured is the whole way from text to scores, and for paribus once more where the requests are encoded, as they
are for a run's further checkpoints. Without a checkpoint, a model with random weights is saved, with a tokenizer
trained on the questions, and scored. The exit status is 1 where scores differ by more than 1e-5, in nats or relative to
the score, whichever is less.
"""

import argparse
import logging
import os
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from paribus.evaluation.stage import OFFLINE

os.environ.update(OFFLINE)

import numpy as np
import torch
from lm_eval.models.huggingface import HFLM
from machine import described, say
from tables import table

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

TOLERANCE, BATCH, SEED = 1e-5, 32, 1234
"""Of a score; requests of a batch of `hf`; what draws examples."""
MODEL = LlamaModel(width=256, layers=4, heads=4, ffn_width=1024, context_length=2048)
HEAD = ("task", "requests", "lm-eval `hf`, s", "paribus, s", "encoded, s", "`hf` / paribus", "largest difference")


def main(given: argparse.Namespace) -> int:
    """Measure and print the table; 1 where scores differ."""
    logging.getLogger("lm_eval").setLevel(logging.ERROR)
    device = resolve_device("auto", "the device")
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        write_tasks(directory, given)
        checkpoint = given.checkpoint
        if checkpoint is None:
            files = [directory / f"{name}{kind}.jsonl" for name in given.tasks for kind in ("", ".fewshot")]
            texts = [f"{item['query']} {' '.join(item['choices'])}" for file in files for item in read_records(file)]
            checkpoint = write_checkpoint(directory / "checkpoint", texts, given.vocabulary, MODEL)
        shape = load_checkpoint_model(checkpoint, "cpu").architecture
        tasks = [(task, shots) for task in given.tasks for shots in given.shots]
        rows, differences = zip(*(measure(directory, checkpoint, *one, given.rounds) for one in tasks), strict=True)
    sys.stdout.write(
        f"{described(('torch', 'transformers', 'lm_eval'))}; {device.type}, {torch.get_num_threads()} threads. "
        f"{shape.kind}, {shape.layers} layers of {shape.width}, vocabulary {shape.vocab_size:,}, context "
        f"{shape.context_length:,}, float32; {BATCH} requests a batch of hf, {SCORED_TOKENS[device.type]:,} tokens one "
        f"of ours; medians of {given.rounds} rounds.\n\n{table([*HEAD, 'left out'], rows)}"
    )
    return int(max(differences) > TOLERANCE)


def write_tasks(directory: Path, given: argparse.Namespace) -> None:
    """The tasks' files, with the first `--items` questions."""
    for name in given.tasks:
        benchmark = BENCHMARKS[name]
        items = benchmark_items(str(given.data), benchmark, max(given.shots))
        items = ItemSet(items.evaluated[: given.items], items.fewshot, items.fewshot_source)
        write_task(directory, name, items, benchmark.prompt)


def write_checkpoint(checkpoint: Path, texts: list[str], vocab_size: int, model: LlamaModel) -> Path:
    """A model with random weights and its tokenizer, as a checkpoint of a run has them."""
    tokenizer = Tokenizer.train(texts, vocab_size=vocab_size, special_tokens=["<|endoftext|>"])
    save_model(build_model(model, tokenizer.vocab_size, seed=0, eos_id=tokenizer.eos_id), checkpoint)
    tokenizer.to_huggingface(split_special_tokens=True).save_pretrained(checkpoint)
    tokenizer.save(checkpoint / "tokenizer")
    return checkpoint


def measure(directory: Path, checkpoint: Path, name: str, shots: int, rounds: int) -> tuple[list[str], float]:
    """Both contestants in turns, over the requests of one task: a line of the table, and the largest difference."""
    requests = build_requests([load_task(directory, name, shots)], SEED)
    device = str(resolve_device("auto", "the device"))
    theirs = HFLM(pretrained=str(checkpoint), dtype="float32", device=device, batch_size=BATCH)
    scorer = Scorer(load_checkpoint_model(checkpoint, device))
    tokenizer = evaluation_tokenizer(checkpoint / "tokenizer")
    for warm in (theirs, HarnessModel(scorer, tokenizer)):
        warm.loglikelihood(requests[:BATCH], disable_tqdm=True)
    seconds: dict[str, list[float]] = {"hf": [], "paribus": [], "encoded": []}
    differences = []
    for turn in range(rounds):
        say(f"{name}, {shots} shots, round {turn + 1}")
        ours, encoded = HarnessModel(scorer, tokenizer), HarnessModel(scorer, tokenizer)
        noted = encoded.encode(requests)
        contestants: dict[str, Any] = {"hf": theirs, "paribus": ours, "encoded": encoded}
        scores = {}
        for contestant in random.Random(turn).sample(list(contestants), len(contestants)):
            began = time.perf_counter()
            answers = contestants[contestant].loglikelihood(requests, disable_tqdm=True)
            seconds[contestant].append(time.perf_counter() - began)
            scores[contestant] = np.array([score for score, _ in answers])
        # Requests whose prompt is cut or of which a token crosses the boundary: lm-eval scores these otherwise.
        unlike = noted.truncated | noted.crossed.keys()
        alike = np.array([(one.task_name, one.doc_id) not in unlike for one in requests])
        apart = np.abs(scores["hf"] - scores["paribus"]) / np.maximum(1, np.abs(scores["hf"]))
        differences.append(float(apart[alike].max(initial=0)))
    median = {contestant: statistics.median(times) for contestant, times in seconds.items()}
    told = [f"{name}, {shots} shots", f"{len(requests):,}", *(f"{value:.2f}" for value in median.values())]
    ratio, largest, left_out = median["hf"] / median["paribus"], max(differences), int((~alike).sum())
    return [*told, f"{ratio:.2f}", f"{largest:.1e}", str(left_out)], largest


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="directory with <task>/<split>.jsonl[.gz]")
    parser.add_argument("--checkpoint", type=Path, help="directory step_XXXXXXXX of a run; default: random weights")
    parser.add_argument("--tasks", nargs="+", choices=sorted(BENCHMARKS), default=["piqa", "boolq"])
    parser.add_argument("--shots", nargs="+", type=int, default=[0, 5])
    parser.add_argument("--items", type=int, default=200, help="questions a task")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--vocabulary", type=int, default=8192, help="of the model with random weights")
    sys.exit(main(parser.parse_args()))
