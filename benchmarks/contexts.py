"""How long the stage `contexts` takes, and how long a training then takes until it knows what its steps read.

python benchmarks/contexts.py DIRECTORY [--tokens 256000000] [--documents 1000] [--length 1024] [--workers 1 2]
    [--packing concatenate best_fit one_document]

Writes an encoded corpus of random ids of a vocabulary of 32,000 below DIRECTORY, unless it is there: documents of 1 to
twice `--documents` tokens, in a random order. Then, each in a fresh process and with the corpus in the page cache: the
stage, a training's `open_data`, and the tokens and text of its budget, which are one epoch. Peak memory has mapped
files in it. Prints a Markdown table; CPU seconds are those of all threads of the stage.
"""

import argparse
import os
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from training_loops import random_tokenizer

from paribus.checks import compose_command
from paribus.config.arguments import parse
from paribus.config.schema import RunConfig
from paribus.engine.local import LocalEngine
from paribus.native.loader import ensure_compiled
from paribus.native.registry import SPANS
from paribus.ordering.contexts import build
from paribus.ordering.orders import write_order
from paribus.stage import SilentListener, StageContext
from paribus.tokenization.encoded_corpus import EncodedCorpusWriter
from paribus.training.data import Batches, amount_of
from paribus.training.train import open_data

VOCABULARY, AT_ONCE, BYTES_A_TOKEN = 32_000, 10_000, 4
HEAD = ["packing", "contexts", "workers", "stage s", "CPU s", "M tokens/CPU s", "peak GiB", "open_data s", "budget s"]


def write_corpus(directory: Path, tokens: int, mean: int) -> None:
    """Artefacts `tokens` and `order` below `directory`."""
    generator, tokenizer = np.random.default_rng(0), random_tokenizer(VOCABULARY)
    with EncodedCorpusWriter(directory / "tokens", tokenizer) as writer:
        while writer.tokens < tokens:
            sizes = generator.integers(1, 2 * mean, AT_ONCE)
            ids = generator.integers(0, VOCABULARY - 1, int(sizes.sum()), dtype=np.uint16)
            writer.append(ids, sizes, BYTES_A_TOKEN * sizes)
        documents = writer.documents
    (directory / "order").mkdir()
    write_order(directory / "order", generator.permutation(documents), kept=documents, removed=0)


def configuration(packing: str, length: int) -> RunConfig:
    """A run whose contexts are of `length` tokens."""
    sizes = [f"model.context_length={length}", "training.global_batch=1024", "budget.tokens=1B"]
    return compose_command(parse(["scale=tiny", f"packing={packing}", *sizes])).jobs[0].config


def stage(directory: Path, config: RunConfig, workers: int) -> list[float]:
    """Contexts that the stage measures, its seconds, those of all its threads, and its peak GiB."""
    inputs = {name: directory / name for name in ("tokens", "order")}
    output, work = directory / "contexts", directory / "work"
    for path in (output, work):
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir()
    began, used = time.perf_counter(), time.process_time()
    made = build(StageContext(config, inputs, output, work, SilentListener(), LocalEngine(workers)))
    spent = [time.perf_counter() - began, time.process_time() - used]
    return [float(str(made["contexts"])), *spent, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20]


def training(directory: Path, config: RunConfig) -> list[float]:
    """Seconds until a training has opened its data, and until it knows tokens and text of an epoch."""
    inputs = {name: directory / name for name in ("tokens", "order", "contexts")}
    nowhere = directory / "nowhere"
    began = time.perf_counter()
    data = open_data(StageContext(config, inputs, nowhere, nowhere, SilentListener(), LocalEngine(1)))
    opened = time.perf_counter()
    batches = Batches(data.contexts, config.training.global_batch, data.traversal)
    for amounts in (data.measured.targets, data.measured.text_bytes):
        amount_of(data.contexts.count - 1, batches, amounts)
    return [opened - began, time.perf_counter() - opened]


def measured(directory: Path, *given: str) -> list[float]:
    """What a fresh process of this script prints."""
    command = [sys.executable, __file__, str(directory), "--only", *given]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, text=True, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    return [float(number) for number in done.stdout.split()]


def main(given: argparse.Namespace) -> None:
    """Print the table."""
    ensure_compiled(SPANS)
    tokens, corpus = given.tokens, given.directory / f"{given.tokens}-{given.documents}"
    if not (corpus / "order" / "order.json").exists():
        shutil.rmtree(corpus, ignore_errors=True)
        write_corpus(corpus, tokens, given.documents)
    np.load(corpus / "tokens" / "ids.npy", mmap_mode="r").max()
    sys.stdout.write(f"| {' | '.join(HEAD)} |\n|---{'|---:' * (len(HEAD) - 1)}|\n")
    for packing in given.packing:
        for number in given.workers:
            contexts, *spent, peak = measured(corpus, "stage", packing, str(given.length), str(number))
            times = [*spent, tokens / spent[1] / 1e6]
            opened = measured(corpus, "training", packing, str(given.length))
            cells = [packing, f"{contexts:,.0f}", str(number), *(f"{value:.1f}" for value in times)]
            cells += [f"{value:.2f}" for value in (peak, *opened)]
            sys.stdout.write(f"| {' | '.join(cells)} |\n")
            sys.stdout.flush()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("directory", type=Path)
    parser.add_argument("--tokens", type=int, default=256_000_000)
    parser.add_argument("--documents", type=int, default=1000, help="mean tokens of a document")
    parser.add_argument("--length", type=int, default=1024)
    parser.add_argument("--packing", nargs="+", default=["concatenate", "best_fit", "one_document"])
    parser.add_argument("--workers", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--only", nargs="+", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    match asked.only:
        case ["stage", packing, length, workers]:
            found = stage(asked.directory, configuration(packing, int(length)), int(workers))
        case ["training", packing, length]:
            found = training(asked.directory, configuration(packing, int(length)))
        case _:
            main(asked)
            found = []
    sys.stdout.write(" ".join(map(str, found)))
