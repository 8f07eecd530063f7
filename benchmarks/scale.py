"""What the papers' corpora would take, reckoned from one core's rates and the engine's overhead, both measured here.

python benchmarks/scale.py FILE [--megabytes 40] [--rounds 3] [--nodes 16] [--cores 64]

FILE is what `corpus=files` reads. Every stage runs as it is, on the beginning of FILE, with an engine that calls the
shards here and keeps their CPU seconds apart from those of the stage's own process, which no cluster shortens. A stage
runs in a fresh process on a quarter of the text, to load what it loads, and again on a quarter and on all of it: the
difference is what text costs. Medians of rounds. Everything beyond FILE is extrapolated in
proportion to bytes or documents.
"""

import argparse
import multiprocessing
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from tables import table

from paribus.config.groups.corpus import FilesCorpus
from paribus.config.groups.evaluation import EvaluationConfig
from paribus.config.groups.execution import LocalEngineConfig, RayEngineConfig, ScaleConfig, TrackingConfig
from paribus.config.groups.model import LlamaModel
from paribus.config.groups.ordering import MinHashDuplicates, StandardOrdering, TfidfEmbedder
from paribus.config.groups.tokenization import (
    BPETokenizer,
    DropoutEncoder,
    FewestEncoder,
    LeftToRightEncoder,
    LongestFirstEncoder,
    MergeRankEncoder,
    PatternPretokenizer,
)
from paribus.config.groups.training import EqualTokensBudget, TrainingConfig
from paribus.config.schema import RunConfig
from paribus.corpus.artifact import ROW_GROUP_BYTES, SHARD_BYTES, CorpusArtifact
from paribus.engine.local import open_engine
from paribus.stage import SilentListener, StageContext

GIB, PAPER_DOCUMENTS = 2**30, 235_266_464
FIT_DOCUMENTS = TfidfEmbedder().fit_documents
ENCODERS = (MergeRankEncoder(), LongestFirstEncoder(), LeftToRightEncoder(), FewestEncoder(), DropoutEncoder())
SLOW = 16
"""Stages that take minutes a hundred megabytes get this part of the text."""
SMALL = 4
EMPTY_SHARDS, RAY_WORKERS = 2_000, 2
SHARD_SIZES = {"vocabulary": SHARD_BYTES, "embeddings": ROW_GROUP_BYTES, "duplicates": ROW_GROUP_BYTES}
"""Bytes of text of a shard, of stages for which FILE has one or two."""
Cost = dict[str, float]
"""CPU seconds of shards (`mapped`) and of the process (`serial`), their number, and bytes of text, files and memory."""


class Here:
    """An engine of one worker, in this process, that adds up what its shards take."""

    workers, shares_memory = 1, False

    def __init__(self) -> None:
        self.seconds, self.shards = 0.0, 0

    def map(self, function: Callable[[Any], Any], items: Iterable[Any], *, releases_gil: bool = False) -> Iterator[Any]:
        """Results in item order."""
        for item in items:
            start = time.process_time()
            result = function(item)
            self.seconds += time.process_time() - start
            self.shards += 1
            yield result

    def __enter__(self) -> "Here":
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is held."""


def configuration(path: Path, limit: int) -> RunConfig:
    """A run whose stages are measured."""
    return RunConfig(
        corpus=FilesCorpus(paths=(str(path),), limit=limit, heldout=0.01),
        pretokenizer=PatternPretokenizer(),
        tokenizer=BPETokenizer(vocab_size=32_000),
        encoder=MergeRankEncoder(),
        duplicates=MinHashDuplicates(),
        ordering=StandardOrdering(),
        model=LlamaModel(width=8, layers=1, heads=1, ffn_width=16),
        budget=EqualTokensBudget(tokens=1),
        training=TrainingConfig(),
        evaluation=EvaluationConfig(),
        tracking=TrackingConfig(),
        engine=LocalEngineConfig(),
        scale=ScaleConfig(),
    )


def run_stage(name: str, config: RunConfig, root: Path, made: str) -> Cost:
    """Run a stage whose inputs lie in `root` and leave its artefact there as `made`."""
    from paribus.pipeline.graph import STAGES

    engine, output, work = Here(), root / made, root / f"{made}.work"
    for directory in (output, work):
        directory.mkdir()
    inputs = {stage: root / stage for stage in STAGES[name].inputs(config)}
    start = time.process_time()
    STAGES[name].build(StageContext(config, inputs, output, work, SilentListener(), engine))
    seconds = time.process_time() - start
    corpus = CorpusArtifact(output if name == "corpus" else root / "corpus")
    return {
        "text": corpus.bytes("train"),
        "documents": corpus.count("train"),
        "shards": engine.shards,
        "mapped": engine.seconds,
        "serial": seconds - engine.seconds,
        "artefact": size(output),
        "scratch": size(work) - size(work / "tfidf_svd"),  # whose size does not follow the text
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }


def difference(name: str, made: str, small: tuple[RunConfig, Path], large: tuple[RunConfig, Path]) -> Cost:
    """What the larger of two inputs takes more; its memory is that of all."""
    run_stage(name, *small, f"{made}.loading")
    first, second = (run_stage(name, config, root, made) for config, root in (small, large))
    more = {key: max(0, value - first[key]) for key, value in second.items()}
    return more | {"memory": second["memory"]}


def size(directory: Path) -> int:
    """Bytes of the files below a directory."""
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())


def measure_round(path: Path, megabytes: float) -> dict[str, Cost]:
    """One round, in this process' children: a fresh one for each stage."""
    found: dict[str, Cost] = {}
    context = multiprocessing.get_context("spawn")
    with (
        tempfile.TemporaryDirectory() as directory,
        ProcessPoolExecutor(1, mp_context=context, max_tasks_per_child=1) as pool,
    ):

        def run(stage: str, made: str, share: float, **groups: Any) -> None:
            sides = []
            for part in (share / SMALL, share):
                root = Path(directory, f"{part:g}")
                root.mkdir(exist_ok=True)
                sides.append((replace(configuration(path, int(1e6 * megabytes * part)), **groups), root))
            found[made] = pool.submit(difference, stage, made, *sides).result()

        run("corpus", "corpus", 1 / SLOW)
        run("embeddings", "embeddings", 1 / SLOW, embedder=TfidfEmbedder())
        run("duplicates", "duplicates", 1 / SLOW)
        run("corpus", "corpus", 1)
        run("vocabulary", "vocabulary", 1)
        for encoder in ENCODERS:
            run("tokens", f"tokens, {encoder.kind}", 1, encoder=encoder)
    return found


def engine_seconds() -> float:
    """Seconds of the stage's process that a shard without work takes on `engine=ray`."""
    with (
        tempfile.TemporaryDirectory() as shared,
        open_engine(RayEngineConfig(workers=RAY_WORKERS), Path(shared)) as engine,
    ):
        list(engine.map(int, range(RAY_WORKERS)))
        start = time.perf_counter()
        list(engine.map(int, range(EMPTY_SHARDS)))
        return (time.perf_counter() - start) / EMPTY_SHARDS


def rates_table(stages: dict[str, Cost]) -> str:
    """What one core did."""
    rows = []
    for name, cost in stages.items():
        megabytes = cost["text"] / 1e6
        rates = [f"{megabytes / cost[key]:,.3g}" if cost[key] > 0 else "–" for key in ("mapped", "serial")]
        shares = [f"{100 * cost[key] / cost['text']:.1f}" for key in ("artefact", "scratch")]
        rows.append([name, f"{megabytes:.1f}", *rates, *shares, f"{cost['memory'] / 2**20:,.0f}"])
    rates_of = ["shards, MB/s of a core", "own process, MB/s"]
    return table(["stage", "text MB", *rates_of, "artefact %", "scratch %", "peak MiB"], rows)


def corpus_table(text: float, documents: float, stages: dict[str, Cost], engine: float, nodes: int, cores: int) -> str:
    """The stages of one corpus, hours spread over all cores and of the one process."""
    rows = []
    for name, cost in stages.items():
        factor = text / cost["text"]
        # The process of `embeddings` fits TF-IDF, on so many documents and no more; shards of `corpus` are its files.
        fitted = min(documents, FIT_DOCUMENTS) / cost["documents"] if name == "embeddings" else factor
        shards = 0.0 if name == "corpus" else cost["shards"] * factor
        shards = text / SHARD_SIZES[name] if name in SHARD_SIZES else shards
        mapped, serial = cost["mapped"] * factor, cost["serial"] * fitted + shards * engine
        hours = [seconds / 3600 for seconds in (mapped, mapped / (nodes * cores), serial)]
        told = [f"{value:,.1f}" if value >= 0.1 else f"{value:.1g}" for value in hours]
        disk = [f"{cost[key] * factor / GIB:,.0f}" for key in ("artefact", "scratch")]
        rows.append([name, *told, f"{shards:,.0f}", *disk])
    hours = ["core-hours of shards", f"h on {nodes} x {cores} cores", "h of own process"]
    head = ["stage", *hours, "shards", "artefact GiB", "scratch GiB"]
    return table(head, rows)


def main(given: argparse.Namespace) -> None:
    """Measure and print Markdown tables."""
    rounds = [measure_round(given.file, given.megabytes) for _ in range(given.rounds)]
    stages = {
        name: {key: statistics.median(one[name][key] for one in rounds) for key in cost}
        for name, cost in rounds[0].items()
    }
    engine = statistics.median(engine_seconds() for _ in range(given.rounds))
    largest = given.cores * max(one["memory"] for one in stages.values()) / GIB
    sys.stdout.write(
        f"{rates_table(stages)}\n"
        f"- `engine=ray`: {1000 * engine:.2f} ms of the stage's own process a shard.\n"
        f"- {given.cores} workers as large as the largest stage above hold {largest:.0f} GiB.\n"
    )
    document = stages["corpus"]["text"] / stages["corpus"]["documents"]
    for name, text, documents in (
        ("388 GiB of the Pile", 388 * GIB, 388 * GIB / document),
        ("825 GiB, the Pile", 825 * GIB, 825 * GIB / document),
        ("235M documents of CommonCrawl", PAPER_DOCUMENTS * document, PAPER_DOCUMENTS),
    ):
        title = f"**{name}**: {text / GIB:,.0f} GiB, {documents / 1e6:,.0f}M documents"
        sys.stdout.write(f"\n{title}\n\n{corpus_table(text, documents, stages, engine, given.nodes, given.cores)}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--megabytes", type=float, default=40)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--nodes", type=int, default=16)
    parser.add_argument("--cores", type=int, default=64)
    main(parser.parse_args())
