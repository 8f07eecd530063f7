"""How long the stage `contexts` takes, and how long a training then takes until it knows what its steps read.

python benchmarks/contexts.py DIRECTORY [--tokens 256000000]

Writes an encoded corpus of random ids of a vocabulary of 32,000 below DIRECTORY, unless it is there: documents of 1,000
tokens on average, in a random order. Then, each in a fresh process and with the corpus in the page cache: the stage, a
training's `open_data`, and the tokens and text of its budget, which are one epoch. Peak memory has mapped files in it.
Prints a Markdown table; CPU seconds are those of all threads of the stage.
"""

import argparse
import multiprocessing
import resource
import shutil
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from tables import table
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

VOCABULARY, AT_ONCE, BYTES_A_TOKEN, MEAN = 32_000, 10_000, 4, 1_000
OVERRIDES = ("scale=tiny", "model.context_length=1024", "training.global_batch=1024", "budget.tokens=1B")
HEAD = ["packing", "contexts", "workers", "stage s", "CPU s", "M tokens/CPU s", "peak GiB", "open_data s", "budget s"]


def main(root: Path, tokens: int) -> None:
    """Print the table."""
    ensure_compiled(SPANS)
    directory, rows = root / f"{tokens}", []
    if not (directory / "order" / "order.json").exists():
        shutil.rmtree(directory, ignore_errors=True)
        write_corpus(directory, tokens)
    np.load(directory / "tokens" / "ids.npy", mmap_mode="r").max()
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context, max_tasks_per_child=1) as fresh:
        for packing in ("concatenate", "best_fit", "one_document"):
            config = compose_command(parse([*OVERRIDES, f"packing={packing}"])).jobs[0].config
            for workers in (1, 2):
                contexts, *spent, peak = fresh.submit(stage, directory, config, workers).result()
                opened = fresh.submit(training, directory, config).result()
                times = [f"{value:.1f}" for value in (*spent, tokens / spent[1] / 1e6)]
                told = [f"{value:.2f}" for value in (peak, *opened)]
                rows.append([packing, f"{contexts:,.0f}", str(workers), *times, *told])
    sys.stdout.write(table(HEAD, rows))


def write_corpus(directory: Path, tokens: int) -> None:
    """Artefacts `tokens` and `order` below `directory`."""
    generator, tokenizer = np.random.default_rng(0), random_tokenizer(VOCABULARY)
    with EncodedCorpusWriter(directory / "tokens", tokenizer) as writer:
        while writer.tokens < tokens:
            sizes = generator.integers(1, 2 * MEAN, AT_ONCE)
            ids = generator.integers(0, VOCABULARY - 1, int(sizes.sum()), dtype=np.uint16)
            writer.append(ids, sizes, BYTES_A_TOKEN * sizes)
        documents = writer.documents
    (directory / "order").mkdir()
    write_order(directory / "order", generator.permutation(documents), kept=documents, removed=0)


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
    nowhere, began = directory / "nowhere", time.perf_counter()
    data = open_data(StageContext(config, inputs, nowhere, nowhere, SilentListener(), LocalEngine(1)))
    opened = time.perf_counter()
    batches = Batches(data.contexts, config.training.global_batch, data.traversal)
    for amounts in (data.measured.targets, data.measured.text_bytes):
        amount_of(data.contexts.count - 1, batches, amounts)
    return [opened - began, time.perf_counter() - opened]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--tokens", type=int, default=256_000_000)
    given = parser.parse_args()
    main(given.directory, given.tokens)
