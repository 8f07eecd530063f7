"""Near copies on one side: held-out documents that training has nearly whole move there, with what belongs to them.

To a document belong its near copies among the held-out documents, theirs in turn, the documents of its group, and of a
pair those with the same source. What moves is put where the source has it, so the order of the training split is that
of the source.
"""

import bisect
import hashlib
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

from paribus.corpus.artifact import CorpusArtifact, Document, SplitWriter, has_pairs, read_shard, schema_of
from paribus.corpus.overlap import measure, over_shards, raised, summary
from paribus.errors import DataError
from paribus.stage import JSON, StageContext

Flags = npt.NDArray[np.bool_]


@dataclass
class Drawn:
    """The held-out documents as they were drawn, one after the other."""

    places: list[int] = field(default_factory=list)
    """Training documents before each in the source."""
    groups: list[int] = field(default_factory=list)
    """Number of the first document of each one's group."""
    texts: list[int] = field(default_factory=list)
    """Number of the first document with the same text, of pairs the same source."""
    _first: dict[str, int] = field(default_factory=dict)
    _first_of_text: dict[bytes, int] = field(default_factory=dict)

    def add(self, place: int, group: str | None, text: bytes) -> None:
        """Remember one; `text` is in UTF-8."""
        number = len(self.places)
        self.places.append(place)
        self.groups.append(number if group is None else self._first.setdefault(group, number))
        key = hashlib.blake2b(text, digest_size=16).digest()
        self.texts.append(self._first_of_text.setdefault(key, number))


@dataclass(frozen=True)
class Separated:
    """What the separation did."""

    moved: list[int]
    """Places of the documents that moved among those that were drawn."""
    bytes: int
    """Of their text, both sides of pairs."""
    target_bytes: int
    overlap: dict[str, JSON]
    """Of what stays held out (`overlap.summary`)."""


def separate(context: StageContext, drawn: Drawn) -> Separated:
    """Move near copies from `heldout/` to `train/` of the output, and write the overlaps of what stays.

    DataError where nothing would stay held out.
    """
    corpus, threshold = CorpusArtifact(context.output), context.config.corpus.near_duplicate
    overlaps = measure(corpus, context.work, context.engine, context.report)
    shares = overlaps.shares
    moves = np.zeros(len(shares), np.bool_)
    if threshold is not None and (shares > threshold).any():
        links = (overlaps.components(threshold), np.array(drawn.groups), np.array(drawn.texts))
        moves = _together(shares > threshold, links)
        _require_rest(moves, threshold, context.config.corpus.group_field)
        shares = raised(overlaps, _chosen(corpus, moves))
    moved = list(_chosen(corpus, moves))
    _insert(context, corpus, [drawn.places[number] for number in np.flatnonzero(moves)], moved)
    _write_heldout(context.work / "heldout", corpus, moves, shares)
    size, targets = sum(found.bytes for found in moved), sum(len((found.target or "").encode()) for found in moved)
    return Separated(np.flatnonzero(moves).tolist(), size, targets, summary(shares[~moves]))


def _together(near: Flags, links: Sequence[npt.NDArray[np.int64]]) -> Flags:
    """(documents,) those that are near copies of training documents, and all that are linked to them.

    Documents with one number in one of the `links`, each (documents,), are linked.
    """
    moves = near
    while True:
        more = moves
        for labels in links:
            more = np.isin(labels, labels[more])
        if (more == moves).all():
            return moves
        moves = more


def _require_rest(moves: Flags, threshold: float, group: str | None) -> None:
    if moves.all():
        grouped = f" or of one group (corpus.group_field={group}) with one" if group else ""
        raise DataError(
            f"corpus.near_duplicate={threshold}: each of the {len(moves)} held-out documents is a near copy of a "
            f"training document{grouped}, so none would stay held out; raise corpus.heldout or corpus.near_duplicate, "
            f"{'group by a field of more values, ' if group else ''}or set corpus.near_duplicate=null, which leaves "
            "near copies held out and counts them"
        )


def _chosen(corpus: CorpusArtifact, chosen: Flags) -> Iterator[Document]:
    """The held-out documents of some places, in order."""
    return (found for found, wanted in zip(corpus.documents("heldout"), chosen.tolist(), strict=True) if wanted)


def _insert(context: StageContext, corpus: CorpusArtifact, places: Sequence[int], moved: Sequence[Document]) -> None:
    """Write the training shards anew that get documents: one that follows n others comes after the n-th of these."""
    shards = corpus.shards("train")
    ends = np.cumsum([pq.read_metadata(shard).num_rows for shard in shards]).tolist()
    bounds = [bisect.bisect_right(places, end) for end in ends]
    work = []
    for shard, start, (first, last) in zip(shards, [0, *ends], pairwise([0, *bounds]), strict=False):
        if first < last:
            arrivals = [
                (place - start, replace(document, overlap=None))
                for place, document in zip(places[first:last], moved[first:last], strict=True)
            ]
            work.append((shard, arrivals))
    directory = context.work / "shards"
    shutil.rmtree(directory, ignore_errors=True)
    rewritten = over_shards(context.engine, partial(with_arrivals, directory, has_pairs(corpus)), work)
    for done, ((shard, _), path) in enumerate(zip(work, rewritten, strict=True), 1):
        path.replace(shard)
        context.report.progress(done, len(work), unit="shards", doing="moving near copies to training text")


def with_arrivals(directory: Path, pairs: bool, work: tuple[Path, Sequence[tuple[int, Document]]]) -> Path:
    """A shard with more documents, each before the row of its number: its file below `directory`; for workers."""
    shard, arrivals = work
    own = directory / shard.stem
    shutil.rmtree(own, ignore_errors=True)
    own.parent.mkdir(parents=True, exist_ok=True)
    writer = SplitWriter(own, schema_of("train", pairs=pairs), float("inf"))
    waiting = list(reversed(arrivals))
    for row, document in enumerate(read_shard(shard)):
        while waiting and waiting[-1][0] <= row:
            writer.add(waiting.pop()[1])
        writer.add(document)
    for _, document in reversed(waiting):
        writer.add(document)
    writer.close()
    (path,) = own.iterdir()
    return path


def _write_heldout(directory: Path, corpus: CorpusArtifact, moves: Flags, shares: npt.NDArray[np.float64]) -> None:
    """The held-out split without what moved, with overlaps, by way of `directory`."""
    shutil.rmtree(directory, ignore_errors=True)
    writer = SplitWriter(directory, schema_of("heldout", pairs=has_pairs(corpus)))
    for document, share in zip(_chosen(corpus, ~moves), shares[~moves].tolist(), strict=True):
        writer.add(replace(document, overlap=share))
    writer.close()
    shutil.rmtree(corpus.path / "heldout")
    directory.replace(corpus.path / "heldout")
