"""What the papers' corpora would take, reckoned from one core's rates and the engine's overhead, both measured here.

python benchmarks/scale.py FILE [--megabytes 40] [--rounds 3] [--nodes 16] [--cores 64] [--json FILE]

FILE is what `corpus=files` reads. Every stage runs as it is, on the beginning of FILE, with an engine that calls the
shards here and keeps their CPU seconds apart from those of the stage's own process, which no cluster shortens. A stage
runs in a fresh process on a quarter of the text, to load what it loads, and again on a quarter and on all of it: the
difference is what text costs. Medians of rounds, but one of the search. Everything beyond FILE is extrapolated in
proportion to bytes or documents.
"""

import argparse
import json
import multiprocessing
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from engine import measure as measure_engine

from paribus.config.groups.corpus import FilesCorpus
from paribus.config.groups.evaluation import EvaluationConfig
from paribus.config.groups.execution import LocalEngineConfig, ScaleConfig, TrackingConfig
from paribus.config.groups.model import LlamaModel
from paribus.config.groups.ordering import MinHashDuplicates, NeighboursConfig, StandardOrdering, TfidfEmbedder
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
from paribus.stage import SilentListener, StageContext

GIB, ENCODER_BYTES = 2**30, 2**20
PAPER_DOCUMENTS, PAPER_DIMENSIONS = 235_266_464, 768
FIT_DOCUMENTS = TfidfEmbedder().fit_documents
ENCODERS = (MergeRankEncoder(), LongestFirstEncoder(), LeftToRightEncoder(), FewestEncoder(), DropoutEncoder())
SLOW = 16
"""Stages that take minutes a hundred megabytes get this part of the text."""
SMALL = 4
TRAINING_VECTORS, ITERATIONS, SAMPLE = 1_572_864, 10, 1_000
"""What `neighbours=paper` learns its lists from and how often, and queries whose true neighbours are found."""
SHARD_DOCUMENTS, LISTS, PROBES, RETRIEVED = 50_000_000, 32_768, 64, 50


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


@dataclass(frozen=True)
class Cost:
    """What a stage took: CPU seconds of shards and of its own process, bytes of its artefact and of its scratch."""

    text: int
    documents: int
    shards: int
    mapped: float
    serial: float
    artefact: int
    scratch: int
    memory: int


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

    engine = Here()
    output, work = root / made, root / f"{made}.work"
    for directory in (output, work):
        directory.mkdir()
    inputs = {stage: root / stage for stage in STAGES[name].inputs(config)}
    function = STAGES[name].build
    start = time.process_time()
    function(StageContext(config, inputs, output, work, SilentListener(), engine))
    seconds = time.process_time() - start
    corpus = CorpusArtifact(output if name == "corpus" else root / "corpus")
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return Cost(
        text=corpus.bytes("train_index"),
        documents=corpus.count("train_index"),
        shards=engine.shards,
        mapped=engine.seconds,
        serial=seconds - engine.seconds,
        artefact=size(output),
        scratch=size(work) - size(work / "tfidf_svd"),  # whose size does not follow the text
        memory=memory,
    )


def difference(name: str, made: str, small: tuple[RunConfig, Path], large: tuple[RunConfig, Path]) -> Cost:
    """What the larger of two inputs takes more."""
    run_stage(name, *small, f"{made}.loading")
    first, second = (run_stage(name, config, root, made) for config, root in (small, large))
    pairs = {key: max(0, value - asdict(first)[key]) for key, value in asdict(second).items()}
    return Cost(**(pairs | {"memory": second.memory}))


def size(directory: Path) -> int:
    """Bytes of the files below a directory."""
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())


def search_cost(documents: int = 12_000, queries: int = 512) -> dict[str, float]:
    """CPU seconds of a query of `neighbours=paper`: one code compared, all else with it, and the centroids.

    Queries come by the hundred, as the stage's blocks have them: faiss takes ten times as long for each of 100.
    """
    import faiss

    from paribus.ordering.arrays import unit_rows
    from paribus.ordering.nearest import ExactShard, InvertedShard, one_thread, train_index
    from paribus.ordering.search_plan import SearchPlan

    generator = np.random.default_rng(0)
    base = unit_rows(generator.normal(size=(documents, PAPER_DIMENSIONS)).astype(np.float32))
    lists = 32
    with one_thread():
        trained = train_index(base[:10_000], SearchPlan("ivf_pq", lists, 1, 256))
        start = time.process_time()
        shard = InvertedShard(base, trained, 1, NeighboursConfig().candidates)
        add = (time.process_time() - start) / documents
        took = {probes: _query(shard, base[:queries], probes) for probes in (4, 24)}
        centroids = faiss.IndexFlatIP(PAPER_DIMENSIONS)
        centroids.add(unit_rows(generator.normal(size=(LISTS, PAPER_DIMENSIONS)).astype(np.float32)))
        start = time.process_time()
        centroids.search(base[:queries], PROBES)
        coarse = (time.process_time() - start) / queries
        exact = _query(ExactShard(base), base[:queries], None) / documents
    code = (took[24] - took[4]) / (20 * documents / lists)
    rest = took[4] - code * 4 * documents / lists
    return {"code": code, "rest": rest, "coarse": coarse, "add": add, "exact": exact}


def _query(shard: Any, queries: np.ndarray, probes: int | None) -> float:
    if probes is not None:
        shard.probe(probes)
    start = time.process_time()
    shard.nearest(queries, np.arange(len(queries)), RETRIEVED)
    return (time.process_time() - start) / len(queries)


def measure_round(path: Path, megabytes: float) -> dict[str, Any]:
    """One round, in this process' children: a fresh one for each stage."""
    found: dict[str, Any] = {}
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
            found[made] = asdict(pool.submit(difference, stage, made, *sides).result())

        run("corpus", "corpus", 1 / SLOW)
        run("embeddings", "embeddings", 1 / SLOW, embedder=TfidfEmbedder())
        run("duplicates", "duplicates", 1 / SLOW)
        run("corpus", "corpus", 1)
        run("vocabulary", "vocabulary", 1)
        for encoder in ENCODERS:
            run("tokens", f"tokens, {encoder.kind}", 1, encoder=encoder)
    return found


def medians(rounds: list[dict[str, Any]]) -> dict[str, Any]:
    """The median of each figure."""
    return {
        name: {key: statistics.median(one[name][key] for one in rounds) for key in figures}
        for name, figures in rounds[0].items()
    }


@dataclass(frozen=True)
class Corpus:
    """A corpus of a paper."""

    name: str
    text: float
    documents: float


@dataclass(frozen=True)
class Cluster:
    """Nodes, and what the engine adds."""

    nodes: int
    cores: int
    shard: float
    """Seconds of the stage's process a shard."""

    def hours(self, mapped: float, serial: float, shards: float) -> tuple[float, float]:
        """Hours of the map when its CPU seconds are spread over all cores, and of the one process."""
        return mapped / (self.nodes * self.cores) / 3600, (serial + shards * self.shard) / 3600


def corpora(document: float) -> list[Corpus]:
    """Those of the papers; `document` is the mean length in bytes of one where only one of the two is known."""
    return [
        Corpus("388 GiB of the Pile", 388 * GIB, 388 * GIB / document),
        Corpus("825 GiB, the Pile", 825 * GIB, 825 * GIB / document),
        Corpus("235M documents of CommonCrawl", PAPER_DOCUMENTS * document, PAPER_DOCUMENTS),
    ]


def rates_table(measured: dict[str, Any]) -> Iterator[str]:
    """What one core did."""
    yield "| stage | text MB | shards, MB/s of a core | own process, MB/s | artefact % | scratch % | peak MiB |"
    yield "|---|---:|---:|---:|---:|---:|---:|"
    for name, cost in measured.items():
        if name not in ("search", "engine"):
            megabytes = cost["text"] / 1e6
            rates = [f"{megabytes / cost[key]:,.3g}" if cost[key] > 0 else "–" for key in ("mapped", "serial")]
            shares = [f"{100 * cost[key] / cost['text']:.1f}" for key in ("artefact", "scratch")]
            yield f"| {' | '.join([name, f'{megabytes:.1f}', *rates, *shares])} | {cost['memory'] / 2**20:,.0f} |"


def corpus_table(corpus: Corpus, measured: dict[str, Any], cluster: Cluster) -> Iterator[str]:
    """The stages of one corpus."""
    yield f"**{corpus.name}**: {corpus.text / GIB:,.0f} GiB, {corpus.documents / 1e6:,.0f}M documents\n"
    nodes = f"{cluster.nodes} x {cluster.cores} cores"
    yield f"| stage | core-hours of shards | h on {nodes} | h of own process | shards | artefact GiB | scratch GiB |"
    yield "|---|---:|---:|---:|---:|---:|---:|"
    for name, cost in measured.items():
        if name not in ("search", "engine"):
            factor = corpus.text / cost["text"]
            serial = cost["serial"] * factor
            if name == "embeddings":  # its process fits TF-IDF, on so many documents and no more
                serial = cost["serial"] * min(corpus.documents, FIT_DOCUMENTS) / cost["documents"]
            shards = cost["shards"] * factor if name not in FEW_SHARDS else FEW_SHARDS[name](corpus)
            yield row(name, corpus, cluster, (cost["mapped"] * factor, serial, shards), cost)
    vectors = f"{corpus.documents * PAPER_DIMENSIONS * 2 / GIB:,.0f}"
    shards = f"{corpus.text / ENCODER_BYTES:,.0f}"
    yield f"| embeddings by an encoder, 768 dimensions | not measured | – | – | {shards} | {vectors} | {vectors} |"
    yield row("neighbours, IVF32768,PQ256", corpus, cluster, search(corpus, measured["search"], cluster), None)


FEW_SHARDS: dict[str, Callable[[Corpus], float]] = {
    "corpus": lambda corpus: 0.0,  # as many as there are files
    "vocabulary": lambda corpus: corpus.text / SHARD_BYTES,
    "embeddings": lambda corpus: corpus.text / ROW_GROUP_BYTES,
    "duplicates": lambda corpus: corpus.text / ROW_GROUP_BYTES,
}
"""Shards of stages for which FILE has one or two."""


def search(corpus: Corpus, cost: dict[str, float], cluster: Cluster) -> tuple[float, float, float]:
    """CPU seconds of the map and the process, and blocks, of `neighbours=paper` over vectors of 768 dimensions.

    Every node indexes every shard for itself, with one core while its others wait; the process trains the index and
    compares a sample with all documents.
    """
    shards = -(-corpus.documents // SHARD_DOCUMENTS)
    codes = PROBES / LISTS * corpus.documents
    queries = corpus.documents * (shards * (cost["rest"] + cost["coarse"]) + codes * cost["code"])
    add = (cost["add"] + cost["coarse"]) * corpus.documents
    serial = TRAINING_VECTORS * ITERATIONS * cost["coarse"] + SAMPLE * corpus.documents * cost["exact"]
    return queries + add * cluster.nodes * cluster.cores, serial, shards * corpus.documents / 2048


def row(
    name: str, corpus: Corpus, cluster: Cluster, work: tuple[float, float, float], cost: dict[str, float] | None
) -> str:
    """A line of a table."""
    mapped, serial, shards = work
    spread, alone = cluster.hours(mapped, serial, shards)
    disk = ["", ""]
    if cost is None:
        disk = [f"{corpus.documents * 50 * 8 / GIB:,.0f}", f"{corpus.documents * 50 * 12 / GIB:,.0f}"]
    else:
        disk = [f"{cost[key] / cost['text'] * corpus.text / GIB:,.0f}" for key in ("artefact", "scratch")]
    hours = [f"{hours:,.1f}" if hours >= 0.1 else f"{hours:.1g}" for hours in (mapped / 3600, spread, alone)]
    return f"| {' | '.join([name, *hours, f'{shards:,.0f}', *disk])} |"


def search_lines(cost: dict[str, float], cluster: Cluster) -> Iterator[str]:
    """What a query takes, and the memory of a node."""
    vectors = SHARD_DOCUMENTS * PAPER_DIMENSIONS * 4 / GIB
    yield f"`engine=ray`: {1000 * cluster.shard:.2f} ms of the stage's own process a shard."
    yield (
        f"IVF32768,PQ256, 768 dimensions: {1e9 * cost['code']:.0f} ns a code compared, {1e3 * cost['coarse']:.2f} ms a "
        f"query for the centroids and {1e3 * cost['rest']:.2f} ms for the rest, {1e6 * cost['add']:.0f} µs to add a "
        f"vector beside its centroid, {1e9 * cost['exact']:.0f} ns to compare one exactly."
    )
    yield (
        f"A node holds {vectors:.0f} GiB of vectors and {SHARD_DOCUMENTS * 264 / GIB:.0f} GiB of codes of a shard of "
        "50M documents."
    )


def main() -> None:
    """Measure and print Markdown tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--megabytes", type=float, default=40)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--nodes", type=int, default=16)
    parser.add_argument("--cores", type=int, default=64)
    parser.add_argument("--json", type=Path, help="measured figures: read if the file is there, else written")
    options = parser.parse_args()
    if options.json and options.json.exists():
        measured = json.loads(options.json.read_text())
    else:
        measured = medians([measure_round(options.file, options.megabytes) for _ in range(options.rounds)])
        measured["search"] = search_cost()
        engine = measure_engine("ray", 2, options.rounds)
        measured["engine"] = {"shard": statistics.median(engine.shard), "byte": statistics.median(engine.byte)}
        if options.json:
            options.json.write_text(json.dumps(measured, indent=1))
    document = measured["corpus"]["text"] / measured["corpus"]["documents"]
    cluster = Cluster(options.nodes, options.cores, measured["engine"]["shard"])
    largest = max(cost["memory"] for name, cost in measured.items() if name not in ("search", "engine")) / GIB
    lines = [*rates_table(measured), "", *search_lines(measured["search"], cluster)]
    lines += [
        f"{cluster.cores} workers as large as the largest stage above hold {cluster.cores * largest:.0f} GiB.",
        "",
    ]
    for corpus in corpora(document):
        lines += [*corpus_table(corpus, measured, cluster), ""]
    sys.stdout.write("\n".join(lines))


if __name__ == "__main__":
    main()
