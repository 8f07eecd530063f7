"""The neighbours of every document: shards of documents are indexed in turn and searched by blocks of all documents.

Memory holds the vectors and the index of one shard and a few blocks. What is found goes to a file a block, and lists of
several shards are merged by exact cosines, so that the result does not depend on the number of threads.
"""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from paribus.config.groups.embedding import NeighboursConfig
from paribus.engine import Engine
from paribus.engine.local import LocalEngine
from paribus.errors import ConfigurationError
from paribus.ordering.embed.artifact import Embeddings
from paribus.ordering.neighbours.block_search import BlockSearch
from paribus.ordering.neighbours.blocks import Blocks
from paribus.ordering.neighbours.devices import search_devices
from paribus.ordering.neighbours.index import (
    ExactShard,
    InvertedShard,
    load_index,
    one_thread,
    save_index,
    train_index,
)
from paribus.ordering.neighbours.ranking import Ids, Vectors
from paribus.ordering.neighbours.recall import RECALLED, RecallSample, share_found
from paribus.ordering.neighbours.rule import CENTROIDS_A_CODE, SearchPlan, plan_search
from paribus.ordering.neighbours.source import ShardSource
from paribus.store import files

PLAN, TRAINED = "plan.json", "trained.faiss"
SOUGHT = 10
"""Nearest documents of which lists enough are searched to find `neighbours.recall`."""
Progress = Callable[[float, float, str], None]


@dataclass(frozen=True)
class NeighbourSearch:
    """One search, resumable in `work`."""

    embeddings: Embeddings
    config: NeighboursConfig
    engine: Engine
    work: Path
    progress: Progress

    def run(self) -> tuple[SearchPlan, Blocks, RecallSample]:
        """The index that was used, the neighbours of all documents, and those of a sample, found exactly."""
        documents = len(self.embeddings)
        blocks = Blocks(self.work, documents, self.config.retrieved)
        sample = RecallSample.spread(
            documents, self.config.recall_sample, self.work, min(RECALLED, self.config.retrieved)
        )
        plan = self._saved_plan()
        starts = range(0, documents, self.config.shard_documents)
        for number, start in enumerate(starts):
            if blocks.are_searched(number + 1) and sample.blocks.are_searched(number + 1):
                continue
            stop = min(start + self.config.shard_documents, documents)
            source = ShardSource(self.embeddings, start, stop, self.config.candidates)
            base, rows = source.load()
            if plan is None and len(base):
                plan = self._plan(base)
            with one_thread():
                sample.compare(number, ExactShard(base), rows, self.embeddings)
                search = BlockSearch(source, blocks, number, plan if len(base) else None, self.work / TRAINED)
                self._search(search, base, rows, len(starts))
        return plan or SearchPlan("flat"), blocks, sample

    def _saved_plan(self) -> SearchPlan | None:
        path = self.work / PLAN
        return SearchPlan(**json.loads(path.read_text(encoding="utf-8"))) if path.exists() else None

    def _plan(self, base: Vectors) -> SearchPlan:
        """The index, learned and, from the shard `base`, set up."""
        whole = len(self.embeddings) <= self.config.shard_documents
        documents = len(base) if whole else len(self.embeddings)
        plan = plan_search(documents, self.embeddings.dimensions, self.config)
        if plan.index != "flat":
            plan = self._train(plan)
        if plan.lists and not plan.probes:
            plan = replace(plan, probes=self._enough_probes(base, plan))
        files.write_json(self.work / PLAN, asdict(plan))
        return plan

    def _train(self, plan: SearchPlan) -> SearchPlan:
        """Train the index of a plan, with no more lists than there are vectors to learn from."""
        vectors = self._training_vectors(plan)
        if not len(vectors):
            return SearchPlan("flat")
        if plan.code_size and len(vectors) < CENTROIDS_A_CODE:
            raise ConfigurationError(
                f"neighbours.index: ivf_pq learns its codes from {CENTROIDS_A_CODE} vectors or more that have a "
                f"direction, and of those it looked at {len(vectors)} have one; use flat or ivf"
            )
        lists = min(plan.lists, len(vectors))
        plan = replace(plan, lists=lists, probes=min(plan.probes, lists))
        if not (self.work / TRAINED).exists():
            self.progress(0, 1, "training the index")
            save_index(train_index(vectors, plan), self.work / TRAINED)
        return plan

    def _training_vectors(self, plan: SearchPlan) -> Vectors:
        """Vectors evenly spread over the corpus."""
        documents = len(self.embeddings)
        chosen = np.unique(np.linspace(0, documents - 1, min(plan.training_vectors, documents)).astype(np.int64))
        vectors = self.embeddings.take(chosen)
        return np.ascontiguousarray(vectors[vectors.any(axis=1)])

    def _enough_probes(self, base: Vectors, plan: SearchPlan) -> int:
        """The fewest of 1, 2, 4, ... lists that find enough of the nearest rows of one shard."""
        self.progress(0, 1, "choosing how many lists to search")
        chosen = np.unique(np.linspace(0, len(base) - 1, self.config.recall_sample).astype(np.int64))
        queries, count = base[chosen], min(SOUGHT, self.config.retrieved)
        with one_thread():
            truth = ExactShard(base).nearest(queries, chosen, count)
            shard = InvertedShard(base, load_index(self.work / TRAINED), 1, self.config.candidates)
            before, probes = 0.0, 1
            while probes < plan.lists:
                shard.probe(probes)
                share = share_found(shard.nearest(queries, chosen, count), truth)
                # Beyond some number, what is missed is not missed for want of lists.
                if share >= self.config.recall or (probes > 8 and share < before + 0.001):
                    return probes
                before, probes = share, 2 * probes
        return plan.lists

    def _search(self, search: BlockSearch, base: Vectors, rows: Ids, shards: int) -> None:
        blocks, number = search.blocks, search.number
        left = [block for block in range(blocks.count) if blocks.searched(block) <= number]
        done = number * blocks.count + blocks.count - len(left)
        devices = search_devices(self.config, base) if search.plan is None or search.plan.index == "flat" else []
        # A GPU answers one thread at a time.
        engine: Engine = LocalEngine(len(devices)) if devices else self.engine
        if engine.shares_memory:
            search.open(base, rows, devices)
        for _ in engine.map(search, left, releases_gil=True):
            done += 1
            self.progress(done, shards * blocks.count, "searching neighbours")
