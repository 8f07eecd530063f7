"""What a process of a training does before its first step, with a corpus as large as the papers': seconds and memory.

python benchmarks/training_start.py [--tokens 100e9] [--documents 140e6] [--context-length 2048] [--directory DIR]

The artefacts `tokens`, `order` and `contexts` are made up: ids are zeros that take no room on the disk, documents are
equally long, in random order, and a token stands for four bytes. A process of its own opens them as a training does,
resolves its budget and reads the first batch. By then all is in memory, as on a node that made it, but the ids, of
which the file system is asked for every part that the batch has.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np

BYTES_A_TOKEN, SAMPLED = 4, 4096


def main(given: argparse.Namespace) -> None:
    """Make the artefacts, let a fresh process start a training on them, and print what it says."""
    with tempfile.TemporaryDirectory(dir=given.directory) as directory:
        root = Path(directory)
        make(root, int(given.tokens), int(given.documents), given.context_length)
        done = subprocess.run([sys.executable, __file__, "--measure", str(root)], stdout=subprocess.PIPE, check=True)
    for name, value in json.loads(done.stdout).items():
        sys.stdout.write(f"{name}: {value}\n")


def make(root: Path, tokens: int, documents: int, context_length: int) -> None:
    """The three artefacts below `root`."""
    for name in ("tokens", "order", "contexts"):
        (root / name).mkdir()
    length = tokens // documents
    _tokens(root / "tokens", length, documents)
    _order(root / "order", documents)
    _contexts(root / "contexts", length * BYTES_A_TOKEN, (length + 1) * documents, context_length)


def _tokens(directory: Path, length: int, documents: int) -> None:
    from paribus.tokenization import Tokenizer
    from paribus.tokenization.encoded_corpus import IDS, OFFSETS, SOURCE_BYTES, TOKENIZER

    Tokenizer.train((), algorithm="bytes", special_tokens=("<|endoftext|>",)).save(directory / TOKENIZER)
    np.lib.format.open_memmap(directory / IDS, "w+", "<u2", (length * documents,))
    np.save(directory / OFFSETS, np.arange(documents + 1, dtype="<i8") * length)
    np.save(directory / SOURCE_BYTES, np.full(documents, length * BYTES_A_TOKEN, dtype="<i8"))


def _order(directory: Path, documents: int) -> None:
    from paribus.ordering.orders import write_order

    write_order(directory, np.random.default_rng(0).permutation(documents), kept=documents, removed=0)


def _contexts(directory: Path, document_bytes: int, tokens: int, context_length: int) -> None:
    """Of the stream of all documents, each of which an end-of-document token without bytes follows."""
    from paribus.ordering.contexts import array_path, write_summary

    def before(token: np.ndarray) -> np.ndarray:
        """Bytes of text before a token of the stream."""
        document, within = np.divmod(token, document_bytes // BYTES_A_TOKEN + 1)
        return document * document_bytes + within * BYTES_A_TOKEN

    count = (tokens - 1) // context_length
    begins = np.arange(count, dtype=np.int64) * context_length
    places, ends = before(begins), before(begins + context_length + 1)
    arrays = {
        "places": places,
        "ends": ends,
        "text_bytes": before(begins + context_length + 1) - before(begins + 1),
        "targets": np.full(count, context_length, dtype=np.int64),
        "sampled": np.stack(
            [np.arange(SAMPLED), np.sort(np.random.default_rng(0).integers(0, count, SAMPLED))], axis=1
        ),
    }
    for name, array in arrays.items():
        np.save(array_path(directory, name), array)
    text = tokens // (document_bytes // BYTES_A_TOKEN + 1) * document_bytes
    left_out = tokens - count * context_length - 1
    sizes = {"context_length": context_length, "ordered_bytes": text, "corpus_bytes": text}
    write_summary(directory, contexts=count, left_out_tokens=left_out, **sizes)


def measure(root: Path) -> dict[str, float]:
    """Seconds that a process with its libraries loaded takes up to its first batch, and the most memory it had."""
    seconds: dict[str, float] = {}

    @contextmanager
    def timed(name: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        seconds[f"{name}, s"] = round(time.perf_counter() - start, 2)

    from scale import configuration

    from paribus.stage import SilentListener, StageContext
    from paribus.tokenization import Tokenizer
    from paribus.training.train import open_data, prepare

    loaded = _most_memory()
    contexts = json.loads((root / "contexts" / "contexts.json").read_text())
    config = configuration(root, 1)
    budget = replace(config.budget, tokens=contexts["contexts"] * contexts["context_length"])
    config = replace(config, model=replace(config.model, context_length=contexts["context_length"]), budget=budget)
    inputs = {name: root / name for name in ("tokens", "order", "contexts")}
    (root / "work").mkdir()
    context = StageContext(config, inputs, root / "output", root / "work", SilentListener(), None)  # type: ignore[arg-type]
    with timed("opening tokens, order and contexts"):
        data = open_data(context)
    with timed("budget and checkpoints"):
        run = prepare(context, Tokenizer.load(root / "tokens" / "tokenizer"), data, None)
    with timed("first batch"):
        run.batches.rows(0)
    return seconds | {"steps": run.budget.steps, "memory, GiB": round((_most_memory() - loaded) / 2**30, 2)}


def _most_memory() -> int:
    """Bytes, mapped files included; `ru_maxrss` would begin with the most of the process that started this one."""
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) * 1024


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=float, default=100e9)
    parser.add_argument("--documents", type=float, default=140e6)
    parser.add_argument("--context-length", type=int, default=2048)
    parser.add_argument("--directory", type=Path)
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if not 1 <= asked.documents <= asked.tokens or not 1 <= asked.context_length < asked.tokens:
        parser.error("give a token a document and more tokens than a context has, at least")
    if asked.measure:
        json.dump(measure(asked.measure), sys.stdout)
    else:
        main(asked)
