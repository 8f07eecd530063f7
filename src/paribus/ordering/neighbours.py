"""The stage `neighbours`: embeddings -> the nearest documents of each, and the recall of the index."""

import json
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from paribus.config.groups.ordering import NeighboursConfig
from paribus.config.units import format_size
from paribus.engine import Engine
from paribus.engine.gpus import visible_gpus
from paribus.engine.local import LocalEngine
from paribus.errors import ConfigurationError, DataError
from paribus.native.registry import RANKING
from paribus.ordering.arrays import NeighbourLists, create_lists, mean_of
from paribus.ordering.embeddings import Embeddings
from paribus.ordering.nearest import (
    ExactShard,
    Ids,
    InvertedShard,
    Neighbours,
    Shard,
    Vectors,
    let_faiss_use_one_thread,
    load_index,
    merge,
    nearest_documents,
    one_thread,
    save_index,
    train_index,
)
from paribus.ordering.search_plan import CENTROIDS_A_CODE, SearchPlan, plan_search
from paribus.stage import JSON, StageContext, compile_kernels
from paribus.store import files
from paribus.store.claims import exclusive

PLAN, TRAINED = "plan.json", "trained.faiss"
SOUGHT = 10
"""Nearest documents whose recall must reach `neighbours.recall` when the number of lists is chosen."""
Progress = Callable[[float, float, str], None]
DOCUMENTS_A_BLOCK = 2048
RECALLED = 20
"""Nearest documents that reported recall is a share of: as many as the orders make edges of."""
_ROUNDING = np.float32(1e-6)


def build(context: StageContext) -> dict[str, JSON]:
    """Write `neighbours.npy`, (n, k) int32, and `similarities.npy`, (n, k) float32."""
    config, listener = context.config.neighbours, context.listener
    compile_kernels(RANKING, listener)
    embeddings = Embeddings(context.inputs["embeddings"])

    def progress(done: float, total: float, doing: str) -> None:
        listener.progress(done, total, unit="blocks", doing=doing)

    plan, blocks, sample = NeighbourSearch(embeddings, config, context.engine, context.work, progress).run()
    ids, similarities = create_lists(context.output, blocks.documents, blocks.width)
    for block in range(blocks.count):
        part = slice(*blocks.bounds(block))
        ids[part], similarities[part] = blocks.read(block)
    lists = NeighbourLists(context.output)
    linked = lists.ids[:, 0] >= 0
    return {
        "documents": lists.count,
        "index": plan.index,
        "lists": plan.lists,
        "probes": plan.probes,
        "code_size": plan.code_size,
        "recall": sample.recall(lists),
        "recall_at": min(RECALLED, config.retrieved),
        "recall_sample": len(sample.documents),
        "without_neighbours": int(lists.count - linked.sum()),
        "mean_similarity_of_nearest": mean_of(lists.similarities[linked, 0]),
    }


@dataclass(frozen=True)
class Blocks:
    """The blocks of `documents` documents in directory `work`."""

    work: Path
    documents: int
    width: int
    """Neighbours per document."""

    @property
    def count(self) -> int:
        return -(-self.documents // DOCUMENTS_A_BLOCK)

    def bounds(self, block: int) -> tuple[int, int]:
        """First document of a block, and the one after its last."""
        first = block * DOCUMENTS_A_BLOCK
        return first, min(first + DOCUMENTS_A_BLOCK, self.documents)

    def searched(self, block: int) -> int:
        """Number of shards merged into a block so far; 0 where its file is missing or cut short."""
        try:
            return int(self._load(block, "shards")[0])
        except (FileNotFoundError, DataError):
            return 0

    def are_searched(self, shards: int) -> bool:
        """True if so many shards are merged into every block."""
        return all(self.searched(block) >= shards for block in range(self.count))

    def read(self, block: int) -> Neighbours:
        """The block's neighbours so far; DataError where its file cannot be read."""
        try:
            ids, similarities = self._load(block, "ids", "similarities")
            return ids, similarities
        except FileNotFoundError:
            return self._empty(block)

    def add(self, block: int, shard: int, found: Neighbours) -> None:
        """Merge the neighbours that shard number `shard` has for the block, unless they are in it already.

        Another process may search the same shards: the file is read in one step, and replaced only if its number of
        shards is still the one that was read.
        """
        searched = self.searched(block)
        if searched > shard:
            return
        if searched < shard:
            raise DataError(f"{self._path(block)}: has {searched} shards, not {shard}; run the command again")
        before = self._empty(block)
        if shard:
            merged, *lists = self._load(block, "shards", "ids", "similarities")
            if merged != shard:
                return  # another process has merged more
            before = lists[0], lists[1]
        ids, similarities = merge(before, found, self.width)
        with exclusive(self.work):
            if self.searched(block) == shard:
                with files.replacing(self._path(block)) as aside, aside.open("wb") as file:
                    np.savez(file, ids=ids, similarities=similarities, shards=np.int64(shard + 1))

    def _load(self, block: int, *names: str) -> list[npt.NDArray[Any]]:
        path = self._path(block)
        try:
            with np.load(path, allow_pickle=False) as saved:
                return [saved[name] for name in names]
        except (EOFError, ValueError, KeyError, zipfile.BadZipFile) as error:
            raise DataError(f"{path}: no readable neighbours ({error}); remove it and run the command again") from error

    def _empty(self, block: int) -> Neighbours:
        first, last = self.bounds(block)
        shape = (last - first, self.width)
        return np.full(shape, -1, dtype=np.int64), np.zeros(shape, dtype=np.float32)

    def _path(self, block: int) -> Path:
        first, last = self.bounds(block)
        return self.work / f"block_{first:09d}_{last:09d}.npz"


@dataclass(frozen=True)
class ShardSource:
    """The documents `start` to `stop` of `embeddings`."""

    embeddings: Embeddings
    start: int
    stop: int
    candidates: int
    """Candidates that are ranked per neighbour."""

    def load(self) -> tuple[Vectors, Ids]:
        """The vectors that have a direction, and their documents."""
        vectors = self.embeddings.rows(self.start, self.stop)
        real = np.flatnonzero(vectors.any(axis=1))
        return vectors if len(real) == len(vectors) else vectors[real], real + self.start

    def index(self, base: Vectors, trained: Path | None, probes: int, devices: Sequence[Any] = ()) -> Shard:
        """The vectors `base` in a copy of the index in file `trained`, of which `probes` lists are searched.

        Without such a file all vectors are compared, on `devices` of PyTorch if there are any.
        """
        if trained is not None:
            return InvertedShard(base, load_index(trained), probes, self.candidates)
        if not devices:
            return ExactShard(base)
        from paribus.ordering.nearest_gpu import DeviceShard

        return DeviceShard(base, devices)


class BlockSearch:
    """Searches shard number `number` by `plan` (None: exactly) and merges the neighbours into `blocks`.

    Several threads may call it at once. A process that unpickles it opens the shard itself, from `source` and the index
    in file `trained`, as that is too large to be sent.
    """

    def __init__(
        self, source: ShardSource, blocks: Blocks, number: int, plan: SearchPlan | None, trained: Path
    ) -> None:
        self.source, self.blocks, self.number, self.plan, self.trained = source, blocks, number, plan, trained
        self._shard: Shard | None = None
        self._rows: Ids = np.zeros(0, dtype=np.int64)

    def open(self, base: Vectors, rows: Ids, devices: Sequence[Any] = ()) -> None:
        """Make the shard of the vectors `base` of the documents `rows`, on `devices` if there are any."""
        inverted = self.plan is not None and self.plan.index != "flat"
        probes = self.plan.probes if self.plan else 0
        self._shard = self.source.index(base, self.trained if inverted else None, probes, devices)
        self._rows = rows

    def __call__(self, block: int) -> None:
        if self._shard is None:
            raise RuntimeError("a shard was searched before it was opened")
        let_faiss_use_one_thread()
        first, last = self.blocks.bounds(block)
        queries, documents = self.source.embeddings.rows(first, last), np.arange(first, last)
        neighbours = nearest_documents(self._shard, self._rows, queries, documents, self.blocks.width)
        self.blocks.add(block, self.number, neighbours)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_shard": None, "_rows": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        let_faiss_use_one_thread()
        self.open(*self.source.load())


@dataclass(frozen=True)
class RecallSample:
    """Documents evenly spread over the corpus and their exact neighbours so far."""

    documents: Ids
    blocks: Blocks

    @classmethod
    def spread(cls, documents: int, size: int, work: Path, count: int) -> "RecallSample":
        """`size` of `documents` documents, with blocks in `work` for `count` neighbours of each."""
        chosen = np.unique(np.linspace(0, documents - 1, min(size, documents)).astype(np.int64))
        directory = work / "sample"
        directory.mkdir(exist_ok=True)
        return cls(chosen, Blocks(directory, len(chosen), count))

    def compare(self, number: int, shard: ExactShard, rows: Ids, embeddings: Embeddings) -> None:
        """Search shard `number` exactly."""
        for block in range(self.blocks.count):
            if self.blocks.searched(block) <= number:
                documents = self.documents[slice(*self.blocks.bounds(block))]
                queries = embeddings.take(documents)
                self.blocks.add(block, number, nearest_documents(shard, rows, queries, documents, self.blocks.width))

    def recall(self, lists: NeighbourLists) -> float | None:
        """Share of the sample's nearest neighbours that are in `lists`; None without a sample."""
        if not len(self.documents):
            return None
        truth = [np.concatenate(part) for part in zip(*map(self.blocks.read, range(self.blocks.count)), strict=True)]
        width = self.blocks.width
        ids, similarities = lists.ids[self.documents, :width], lists.similarities[self.documents, :width]
        return recall_of((ids.astype(np.int64), similarities), (truth[0], truth[1]))


# Memory holds the vectors and the index of one shard and a few blocks. Each block has a file, in which the lists of
# several shards are merged by exact cosines, so that the result does not depend on the number of threads.
@dataclass(frozen=True)
class NeighbourSearch:
    """One search, resumable in `work`: shards are indexed in turn, and each is searched for all blocks of documents."""

    embeddings: Embeddings
    config: NeighboursConfig
    engine: Engine
    work: Path
    progress: Progress

    def run(self) -> tuple[SearchPlan, Blocks, RecallSample]:
        """The index that was used, the neighbours of all documents, and the exact neighbours of a sample."""
        documents = len(self.embeddings)
        blocks = Blocks(self.work, documents, self.config.retrieved)
        sample = RecallSample.spread(
            documents, self.config.recall_sample, self.work, min(RECALLED, self.config.retrieved)
        )
        saved = self.work / PLAN
        plan = SearchPlan(**json.loads(saved.read_text(encoding="utf-8"))) if saved.exists() else None
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

    def _plan(self, base: Vectors) -> SearchPlan:
        """Choose and train the index, and choose how many lists to search by the shard `base`."""
        is_one_shard = len(self.embeddings) <= self.config.shard_documents
        documents = len(base) if is_one_shard else len(self.embeddings)
        plan = plan_search(documents, self.embeddings.dimensions, self.config)
        if plan.index != "flat":
            plan = self._train(plan)
        if plan.lists and not plan.probes:
            plan = replace(plan, probes=self._enough_probes(base, plan))
        files.write_json(self.work / PLAN, asdict(plan))
        return plan

    def _train(self, plan: SearchPlan) -> SearchPlan:
        """Train the index of a plan, with no more lists than there are vectors to learn from."""
        documents = len(self.embeddings)
        chosen = np.unique(np.linspace(0, documents - 1, min(plan.training_vectors, documents)).astype(np.int64))
        vectors = self.embeddings.take(chosen)  # evenly spread over the corpus
        vectors = np.ascontiguousarray(vectors[vectors.any(axis=1)])
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
                share = recall_of(shard.nearest(queries, chosen, count), truth)
                # Beyond some number, more lists find hardly more.
                if share >= self.config.recall or (probes > 8 and share < before + 0.001):
                    return probes
                before, probes = share, 2 * probes
        return plan.lists

    def _search(self, search: BlockSearch, base: Vectors, rows: Ids, shards: int) -> None:
        blocks, number = search.blocks, search.number
        pending = [block for block in range(blocks.count) if blocks.searched(block) <= number]
        done = number * blocks.count + blocks.count - len(pending)
        devices = search_devices(self.config, base) if search.plan is None or search.plan.index == "flat" else []
        # A GPU answers one thread at a time.
        engine: Engine = LocalEngine(len(devices)) if devices else self.engine
        if engine.shares_memory:
            search.open(base, rows, devices)
        for _ in engine.map(search, pending, releases_gil=True):
            done += 1
            self.progress(done, shards * blocks.count, "searching neighbours")


def search_devices(config: NeighboursConfig, base: Vectors) -> list[Any]:
    """PyTorch's devices for the shard `base`; none where it is searched on CPUs, with the same result.

    `auto` takes GPUs where `neighbours.index` is flat, and they have room. Raises ConfigurationError for `gpu` where
    there is none or no room.
    """
    insists = config.device == "gpu"
    if not len(base) or not (insists or (config.device == "auto" and config.index == "flat" and visible_gpus())):
        return []
    import torch

    from paribus.modeling.device import free_gpu_bytes, usable_gpus
    from paribus.ordering.nearest_gpu import bytes_needed

    devices = [torch.device("cuda", number) for number in range(usable_gpus())]
    if insists and not devices:
        raise ConfigurationError("neighbours.device is gpu, and PyTorch sees none here; use auto or cpu")
    free = min(map(free_gpu_bytes, devices), default=0)
    needed = bytes_needed(len(base), base.shape[1], DOCUMENTS_A_BLOCK)
    if needed <= free:
        return devices
    if insists:
        raise ConfigurationError(
            f"neighbours.shard_documents: {len(base):,} vectors take {format_size(needed)} of a GPU, and "
            f"{format_size(free)} are free; lower it, or use neighbours.device=cpu"
        )
    return []


def recall_of(found: Neighbours, truth: Neighbours) -> float:
    """Share of true neighbours for which one at least as near was found; 1 without true neighbours.

    Both are lists of one length; documents as near as the last true neighbour count, whichever of them were found.
    """
    real = truth[0] >= 0
    last = np.where(real, truth[1], np.inf).min(axis=1)
    hits = ((found[0] >= 0) & (found[1] >= last[:, None] - _ROUNDING)).sum(axis=1)
    counts = real.sum(axis=1)
    return float(np.minimum(hits, counts).sum() / counts.sum()) if counts.sum() else 1.0
