"""The stage `duplicates`: which documents of the training split stay. Tokenizer-free, and shared by every ordering."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from paribus.config.groups.embedding import EmbeddingDuplicates, ExactDuplicates, MinHashDuplicates
from paribus.corpus.artifact import CorpusArtifact
from paribus.engine import Engine
from paribus.errors import DataError
from paribus.native.loader import compile_kernels
from paribus.native.registry import AGREEMENT
from paribus.ordering.duplicates.groups import Groups, group
from paribus.ordering.duplicates.pairs import Pairs, equal_pairs
from paribus.ordering.duplicates.removed import write_duplicates
from paribus.ordering.parts import CorpusPart, corpus_parts
from paribus.stage import JSON, Reporter, StageContext


def build(context: StageContext) -> dict[str, JSON]:
    """Write which documents stay, and why the others do not.

    Of a group of duplicates, which is a connected component of pairs, the first document of the corpus stays. Raises
    DataError for an empty training split, or neighbours of another corpus.
    """
    corpus = CorpusArtifact(context.inputs["corpus"])
    parts = corpus_parts(corpus, context.work / "parts")
    count = parts[-1].start + parts[-1].rows
    groups = group(count, _pairs(context, parts, count))
    removed_bytes = write_duplicates(context.output, groups, parts)
    return _statistics(groups) | {
        "removed_bytes": removed_bytes,
        "removed_share": removed_bytes / max(1, corpus.bytes("train")),
    }


def _pairs(context: StageContext, parts: Sequence[CorpusPart], count: int) -> Pairs:
    match context.config.duplicates:
        case ExactDuplicates():
            from paribus.ordering.duplicates.exact import digest_part

            _compute(digest_part, parts, context.engine, context.report)
            return equal_pairs(np.concatenate([np.load(part.target, allow_pickle=False) for part in parts]))
        case MinHashDuplicates() as config:
            from paribus.ordering.duplicates.minhash import minhash_pairs
            from paribus.ordering.duplicates.signatures import sign_part

            compile_kernels(AGREEMENT, context.report)
            _compute(partial(sign_part, config), parts, context.engine, context.report)
            return minhash_pairs(parts, config, context.report)
        case EmbeddingDuplicates() as config:
            return _embedding_pairs(context.inputs["neighbours"], config, count)
        case config:
            raise TypeError(f"duplicates={config.kind} removes nothing")


def _embedding_pairs(neighbours: Path, config: EmbeddingDuplicates, count: int) -> Pairs:
    from paribus.ordering.duplicates.embedding import embedding_pairs
    from paribus.ordering.neighbours.lists import NeighbourLists

    lists = NeighbourLists(neighbours)
    if lists.count != count:
        raise DataError(f"{lists.path}: neighbours of {lists.count} documents, but the training split has {count}")
    return embedding_pairs(lists, config.threshold)


def _compute(
    function: Callable[[CorpusPart], CorpusPart], parts: Sequence[CorpusPart], engine: Engine, report: Reporter
) -> None:
    """Map over parts; what is finished lies in the stage's working directory and is not done again after a kill."""
    total, done = parts[-1].start + parts[-1].rows, 0
    for part in engine.map(function, parts):
        done += part.rows
        report.progress(done, total, unit="documents", doing="hashing documents")


def _statistics(groups: Groups) -> dict[str, JSON]:
    return {
        "documents": len(groups.first),
        "removed": int((~groups.kept).sum()),
        "groups": len(groups.sizes),
        "largest_group": int(groups.sizes.max(initial=1)),
    }
