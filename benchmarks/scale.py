"""What the search for neighbours of the papers' corpora would take on CPUs, reckoned from one core's rates.

python benchmarks/scale.py [--nodes 16] [--cores 64]

`neighbours=paper` compares quantized vectors of 768 dimensions in 32,768 lists. Measured is what a query and a vector
cost in an index of fewer lists; everything beyond is extrapolated in proportion to documents, of 6.4 kB each where a
corpus names only bytes.
"""

import argparse
import sys
import time
from collections.abc import Callable

import faiss
import numpy as np
from tables import table

from paribus.config.groups.ordering import NeighboursConfig
from paribus.ordering.arrays import unit_rows
from paribus.ordering.nearest import ExactShard, InvertedShard, one_thread, train_index
from paribus.ordering.search_plan import SearchPlan

GIB, DIMENSIONS, DOCUMENT_BYTES = 2**30, 768, 6_400
SHARD_DOCUMENTS, LISTS, PROBES, RETRIEVED = 50_000_000, 32_768, 64, 50
MEASURED_DOCUMENTS, MEASURED_LISTS, QUERIES = 12_000, 32, 512
"""Queries come by the hundred, as the stage's blocks have them: faiss takes ten times as long for each of 100."""
CORPORA = {
    "388 GiB of the Pile": 388 * GIB / DOCUMENT_BYTES,
    "825 GiB, the Pile": 825 * GIB / DOCUMENT_BYTES,
    "235M documents of CommonCrawl": 235_266_464.0,
}


def main(nodes: int, cores: int) -> None:
    """Measure and print what a query takes, and a table of the corpora."""
    cost = search_cost()
    sys.stdout.write(
        f"- IVF32768,PQ256, 768 dimensions: {1e9 * cost['code']:.0f} ns a code compared, {1e3 * cost['coarse']:.2f} ms "
        f"a query for the centroids and {1e3 * cost['rest']:.2f} ms for the rest, {1e6 * cost['add']:.0f} µs to add a "
        f"vector beside its centroid, {1e9 * cost['exact']:.0f} ns to compare one exactly.\n"
        f"- A node holds {SHARD_DOCUMENTS * DIMENSIONS * 4 / GIB:.0f} GiB of vectors and "
        f"{SHARD_DOCUMENTS * 264 / GIB:.0f} GiB of codes of a shard of 50M documents.\n\n"
    )
    rows = []
    for name, documents in CORPORA.items():
        seconds = search_seconds(documents, cost, nodes * cores)
        hours = [f"{seconds / 3600:,.1f}", f"{seconds / 3600 / (nodes * cores):,.1f}"]
        disk = [f"{documents * RETRIEVED * size / GIB:,.0f}" for size in (8, 12)]
        rows.append([name, f"{documents / 1e6:,.0f}M", *hours, *disk])
    head = ["corpus", "documents", "core-hours", f"h on {nodes} x {cores} cores", "artefact GiB", "scratch GiB"]
    sys.stdout.write(table(head, rows))


def search_cost() -> dict[str, float]:
    """CPU seconds of a query: one code compared, all else with it, and the centroids; and of adding a vector."""
    generator = np.random.default_rng(0)
    base = unit_rows(generator.normal(size=(MEASURED_DOCUMENTS, DIMENSIONS)).astype(np.float32))
    queries, own = base[:QUERIES], np.arange(QUERIES)
    with one_thread():
        trained = train_index(base[:10_000], SearchPlan("ivf_pq", MEASURED_LISTS, 1, 256))
        began = time.process_time()
        shard = InvertedShard(base, trained, 1, NeighboursConfig().candidates)
        add, took = (time.process_time() - began) / MEASURED_DOCUMENTS, {}
        for probes in (4, 24):
            shard.probe(probes)
            took[probes] = seconds_a_query(lambda: shard.nearest(queries, own, RETRIEVED))
        centroids = faiss.IndexFlatIP(DIMENSIONS)
        centroids.add(unit_rows(generator.normal(size=(LISTS, DIMENSIONS)).astype(np.float32)))
        coarse = seconds_a_query(lambda: centroids.search(queries, PROBES))
        whole = ExactShard(base)
        exact = seconds_a_query(lambda: whole.nearest(queries, own, RETRIEVED)) / MEASURED_DOCUMENTS
    a_list = MEASURED_DOCUMENTS / MEASURED_LISTS
    code = (took[24] - took[4]) / (20 * a_list)
    return {"code": code, "rest": took[4] - code * 4 * a_list, "coarse": coarse, "add": add, "exact": exact}


def seconds_a_query(search: Callable[[], object]) -> float:
    """CPU seconds of each of `QUERIES`."""
    began = time.process_time()
    search()
    return (time.process_time() - began) / QUERIES


def search_seconds(documents: float, cost: dict[str, float], cores: int) -> float:
    """CPU seconds of the search; every node indexes every shard for itself, with one core while its others wait."""
    shards, codes = -(-documents // SHARD_DOCUMENTS), PROBES / LISTS * documents
    queries = documents * (shards * (cost["rest"] + cost["coarse"]) + codes * cost["code"])
    return queries + (cost["add"] + cost["coarse"]) * documents * cores


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=16)
    parser.add_argument("--cores", type=int, default=64)
    given = parser.parse_args()
    main(given.nodes, given.cores)
