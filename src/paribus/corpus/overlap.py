"""The overlap of held-out documents with others: the largest share of their 8-grams that one other document has.

An 8-gram is eight consecutive words in lower case, or characters of scripts that are written without spaces (`words`).
The share is of the distinct 8-grams of the held-out document, however often the other has them. A document of fewer
words has one of all its words, which only a document of the same words shares. Of pairs, both sides count.
"""

import bisect
import hashlib
import itertools
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq
import regex

from paribus.corpus.artifact import (
    CorpusArtifact,
    Document,
    SplitWriter,
    batches,
    has_pairs,
    read_columns,
    read_shard,
    schema_of,
)
from paribus.engine import Engine
from paribus.errors import DataError
from paribus.native.loader import address, kernel, table_zeros
from paribus.stage import JSON, StageContext, StageListener

BATCH_BYTES = 2**22
LEVELS = (80, 50, 20)
"""Percents above which held-out documents are counted."""
Integers = npt.NDArray[np.int32]
Hashes = npt.NDArray[np.uint64]
Counts = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
NO_OWN = -1
SPARSE = 4
"""A table has 2^4 to 2^5 bits per key, so that one in 16 to 32 of other shingles passes them."""
SIZE = 8
"""Words in a shingle."""
_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
WORD = regex.compile(rf"[{_UNSPACED}]\p{{M}}*|[\w--[{_UNSPACED}]]+", regex.VERSION1)
"""A word, or one character, with its marks, of a script that is written without spaces."""
SPACED, UNSPACED, MARK = 1, 2, 4
"""Codes of `word_classes`: characters of words, characters that are words by themselves, and marks after these."""
_CLASSES = {SPACED: rf"[\w--[{_UNSPACED}]]", UNSPACED: rf"[{_UNSPACED}]", MARK: r"\p{M}"}


# The documents that have each shingle, as arrays that workers map into memory.
#
# Memory is proportional to the text of these documents. Shingles are compared by their 64-bit hashes.
@dataclass(frozen=True)
class ShingleTable:
    """The distinct shingles of documents 0 to n - 1, and the documents that have them."""

    bits: Hashes
    """(2^b / 4,) words, a bit for each value of the upper b + 4 bits of a hash: set if a key has that value."""
    keys: Hashes
    """Hashes of the shingles, ascending."""
    buckets: npt.NDArray[np.int64]
    """(2^b + 1,): first key for each value of the upper b bits, and the number of keys."""
    starts: npt.NDArray[np.int64]
    """(keys + 1,): first of each key's documents in `owners`, and the length of that."""
    owners: Integers
    """Documents by key, ascending."""
    sizes: npt.NDArray[np.int64]
    """(n,) distinct shingles of each document."""

    @classmethod
    def of(cls, hashes: Hashes, counts: Counts) -> Self:
        """The table of documents from their `shingle_hashes`."""
        owners = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
        order = np.lexsort((owners, hashes))
        hashes, owners = hashes[order], owners[order]
        distinct = np.append(True, (hashes[1:] != hashes[:-1]) | (owners[1:] != owners[:-1]))[: len(hashes)]
        hashes, owners = hashes[distinct], owners[distinct]
        starts = np.append(np.flatnonzero(np.append(True, hashes[1:] != hashes[:-1])[: len(hashes)]), len(hashes))
        keys = hashes[starts[:-1]]
        width = max(2, len(keys).bit_length())
        bounds = np.arange(1, 2**width, dtype=np.uint64) << np.uint64(64 - width)
        buckets = np.concatenate([[0], np.searchsorted(keys, bounds), [len(keys)]])
        sizes = np.bincount(owners, minlength=len(counts)).astype(np.int64)
        return cls(_bits(keys, width + SPARSE), keys, buckets.astype(np.int64), starts.astype(np.int64), owners, sizes)

    @property
    def shift(self) -> int:
        """64 - b."""
        return 65 - (len(self.buckets) - 1).bit_length()

    def save(self, directory: Path) -> None:
        """Write the arrays into an existing directory."""
        for array in fields(self):
            np.save(directory / f"{array.name}.npy", getattr(self, array.name), allow_pickle=False)

    @classmethod
    def load(cls, directory: Path) -> Self:
        """The table that `save` wrote, memory-mapped."""
        paths = (directory / f"{field.name}.npy" for field in fields(cls))
        return cls(*(np.load(path, mmap_mode="r", allow_pickle=False) for path in paths))


@dataclass(frozen=True)
class Overlaps:
    """Held-out documents by their distinct texts, and the largest share of each that one other document has."""

    texts: npt.NDArray[np.int64]
    """(documents,) number of each document's text among the n distinct ones."""
    table: ShingleTable
    hashes: Hashes
    counts: Counts
    """(n,) number of the `hashes` of each distinct text; the table is made from both."""
    most: Integers
    """(n,) largest number of distinct shingles that one training document shares with each text."""

    @property
    def shares(self) -> npt.NDArray[np.float64]:
        """(documents,) overlap of each document."""
        shares: npt.NDArray[np.float64] = (self.most / self.table.sizes)[self.texts]
        return shares

    def components(self, threshold: float) -> npt.NDArray[np.int64]:
        """(documents,) component of each; two documents are linked if one has more than `threshold` of the other."""
        # The smallest number of shingles whose share is above the threshold.
        sizes = self.table.sizes
        least = np.floor(threshold * sizes).astype(np.int64)
        least += least / sizes <= threshold
        least -= (least - 1) / sizes > threshold
        parents = SharedShingles(self.table).components(self.hashes, self.counts, least.astype(np.int32))
        return parents[self.texts].astype(np.int64)


def measure(corpus: CorpusArtifact, work: Path, engine: Engine, listener: StageListener) -> Overlaps:
    """Compare the held-out split with the training split of a corpus; workers read a table in directory `work`."""
    texts, hashes, counts = _heldout(corpus)
    table, directory = ShingleTable.of(hashes, counts), work / "shingles"
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    table.save(directory)
    most, shards = np.zeros(len(counts), np.int32), corpus.shards("train")
    for done, most_of_shard in enumerate(engine.map(partial(most_shared, directory), shards), 1):
        most = np.maximum(most, most_of_shard)
        listener.progress(done, len(shards), unit="shards", doing="comparing held-out with training text")
    shutil.rmtree(directory)
    return Overlaps(texts, table, hashes, counts, most)


def raised(overlaps: Overlaps, documents: Iterable[Document]) -> npt.NDArray[np.float64]:
    """(documents,) overlaps with the training split and with `documents`."""
    shared = SharedShingles(overlaps.table)
    for batch in _batches(document.texts for document in documents):
        shared.add(batch)
    shares: npt.NDArray[np.float64] = (np.maximum(overlaps.most, shared.most) / overlaps.table.sizes)[overlaps.texts]
    return shares


def summary(shares: npt.NDArray[np.float64]) -> dict[str, JSON]:
    """Numbers for a record: how many documents there are, how many have an overlap above each level, and the mean."""
    above: dict[str, JSON] = {f"above_{level}": int((shares > level / 100).sum()) for level in LEVELS}
    return {"documents": len(shares), **above, "mean": float(shares.mean())}


def most_shared(table: Path, shard: Path) -> Integers:
    """Most shingles of each text of a saved table that one document of a shard shares; called in workers."""
    shared = SharedShingles(ShingleTable.load(table))
    for batch in _batches(read_columns(shard, ("text", "target"))):
        shared.add(batch)
    return shared.most


def _heldout(corpus: CorpusArtifact) -> tuple[npt.NDArray[np.int64], Hashes, Counts]:
    """Number of each held-out document's text, and hashes and counts of the distinct texts."""
    numbers: dict[tuple[str, ...], int] = {}
    documents = corpus.documents("heldout")
    texts = np.array([numbers.setdefault(document.texts, len(numbers)) for document in documents], np.int64)
    parts = [shingle_hashes(batch) for batch in _batches(numbers)]
    return texts, np.concatenate([hashes for hashes, _ in parts]), np.concatenate([counts for _, counts in parts])


def _batches(documents: Iterable[tuple[str, ...]]) -> Iterator[list[tuple[str, ...]]]:
    return batches(documents, lambda texts: sum(map(len, texts)), BATCH_BYTES)


# Near copies on one side: held-out documents that are nearly whole in training text move there, with all linked ones.
#
# Linked to a document are its near copies among the held-out documents, theirs in turn, the documents of its group, and
# those with the same text, of a pair the same source. A document moves to its place in the source, so the training
# split keeps the order of the source.
@dataclass
class Drawn:
    """The held-out documents in the order in which they were drawn."""

    places: list[int] = field(default_factory=list)
    """Number of training documents before each in the source."""
    groups: list[int] = field(default_factory=list)
    """Number of the first document of the same group, for each."""
    texts: list[int] = field(default_factory=list)
    """Number of the first document with the same text (of pairs, the same source), for each."""
    _first: dict[str, int] = field(default_factory=dict)
    _first_of_text: dict[bytes, int] = field(default_factory=dict)

    def add(self, place: int, group: str | None, text: bytes) -> None:
        """Append a document; `text` is in UTF-8."""
        number = len(self.places)
        self.places.append(place)
        self.groups.append(number if group is None else self._first.setdefault(group, number))
        key = hashlib.blake2b(text, digest_size=16).digest()
        self.texts.append(self._first_of_text.setdefault(key, number))


def separate(context: StageContext, drawn: Drawn) -> tuple[list[int], list[Document], dict[str, JSON]]:
    """Move near copies from `heldout/` to `train/` of the output, and write the overlaps of the others.

    Returns the documents that moved, as numbers among the drawn ones and as documents, and the `summary` of those that
    stay held out. DataError where none would.
    """
    corpus, threshold = CorpusArtifact(context.output), context.config.corpus.near_duplicate
    overlaps = measure(corpus, context.work, context.engine, context.listener)
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
    return np.flatnonzero(moves).tolist(), moved, summary(shares[~moves])


def _together(near: Flags, links: Sequence[npt.NDArray[np.int64]]) -> Flags:
    """(documents,) True for near copies of training documents, and for all documents that are linked to them.

    Documents with one number in one of the `links`, each (documents,), are linked.
    """
    moves = near
    while True:
        grown = moves
        for labels in links:
            grown = np.isin(labels, labels[grown])
        if (grown == moves).all():
            return moves
        moves = grown


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
    """The held-out documents where `chosen` is True, in order."""
    return itertools.compress(corpus.documents("heldout"), chosen.tolist())


def _insert(context: StageContext, corpus: CorpusArtifact, places: Sequence[int], moved: Sequence[Document]) -> None:
    """Rewrite the training shards that get documents; one with place n comes after n training documents."""
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
    rewritten = context.engine.map(partial(with_arrivals, directory, has_pairs(corpus)), work)
    for done, ((shard, _), path) in enumerate(zip(work, rewritten, strict=True), 1):
        path.replace(shard)
        context.listener.progress(done, len(work), unit="shards", doing="moving near copies to training text")


def with_arrivals(directory: Path, pairs: bool, work: tuple[Path, Sequence[tuple[int, Document]]]) -> Path:
    """Write a shard with arrivals, each before its row, to a file below `directory`; called in workers."""
    shard, arrivals = work
    folder = directory / shard.stem
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    writer = SplitWriter(folder, schema_of("train", pairs=pairs), float("inf"))
    waiting = list(reversed(arrivals))
    for row, document in enumerate(read_shard(shard)):
        while waiting and waiting[-1][0] <= row:
            writer.add(waiting.pop()[1])
        writer.add(document)
    for _, document in reversed(waiting):
        writer.add(document)
    writer.close()
    (path,) = folder.iterdir()
    return path


def _write_heldout(directory: Path, corpus: CorpusArtifact, moves: Flags, shares: npt.NDArray[np.float64]) -> None:
    """Rewrite the held-out split without the documents that moved, with overlaps; `directory` is temporary."""
    shutil.rmtree(directory, ignore_errors=True)
    writer = SplitWriter(directory, schema_of("heldout", pairs=has_pairs(corpus)))
    for document, share in zip(_chosen(corpus, ~moves), shares[~moves].tolist(), strict=True):
        writer.add(replace(document, overlap=share))
    writer.close()
    shutil.rmtree(corpus.path / "heldout")
    directory.replace(corpus.path / "heldout")


def _bits(keys: Hashes, width: int) -> Hashes:
    """A bit for each value of the upper `width` bits, 64 per word, set where a key has that value."""
    places = keys >> np.uint64(64 - width)
    words = np.zeros(2 ** (width - 6), np.uint64)
    np.bitwise_or.at(words, (places >> np.uint64(6)).astype(np.int64), np.uint64(1) << (places & np.uint64(63)))
    return words


class SharedShingles:
    """Most shingles of each document of a table that one other document shares."""

    def __init__(self, table: ShingleTable) -> None:
        self._table = table
        documents = len(table.sizes)
        self.most: Integers = np.zeros(documents, np.int32)
        """(n,) largest number of distinct shingles that a document shares with one of those that were added."""
        self._seen: Integers = table_zeros((len(table.keys) + 1,), np.int32)
        self._shared: Integers = np.zeros(documents, np.int32)
        self._touched: Integers = np.zeros(documents, np.int32)

    def add(self, documents: Sequence[Sequence[str]]) -> None:
        """Compare the table with more documents, each of one text or several."""
        hashes, counts = shingle_hashes(documents)
        nothing = np.zeros(1, np.int32)
        self._count(hashes, counts, NO_OWN, nothing, nothing)

    def components(self, hashes: Hashes, counts: Counts, least: Integers) -> Integers:
        """(n,) first document of each one's component; i is joined with documents that share least[i] or more.

        `hashes` and `counts` are those that the table was made of.
        """
        parents = np.arange(len(counts), dtype=np.int32)
        self._count(hashes, counts, 0, least, parents)
        for document, parent in enumerate(parents.tolist()):
            parents[document] = parents[parent]  # a parent is an earlier document, which has its root by now
        return parents

    def _count(self, hashes: Hashes, counts: Counts, own: int, least: Integers, parents: Integers) -> None:
        table = self._table
        scratch: tuple[Any, ...] = (self._seen, self._shared, self._touched, self.most)
        kernel("count_shared")(
            address(hashes), address(counts), len(counts), address(table.bits), table.shift - SPARSE,
            address(table.keys), address(table.buckets), table.shift, address(table.starts), address(table.owners),
            *map(address, scratch), own, address(least), address(parents),
        )  # fmt: skip


def shingle_hashes(documents: Sequence[Sequence[str]]) -> tuple[Hashes, Counts]:
    """Hashes of the shingles of each document, which has one text or several, and their numbers, (documents,).

    Hashes are in order of documents and repeat with their shingles. A text of fewer words than a shingle has one, of
    all its words; one without words has one, of its characters.
    """
    texts = [text.lower().encode() for document in documents for text in document]
    data = np.frombuffer(b"".join(texts) or b"\0", np.uint8)
    starts = np.array([0, *itertools.accumulate(map(len, texts))], np.int64)
    hashes, recent = np.empty(len(data) + len(texts), np.uint64), np.empty(SIZE, np.uint64)
    counts = np.empty(len(texts), np.int64)
    form = (len(texts), address(word_classes()), SIZE, address(recent))
    written = kernel("hash_shingles")(address(data), address(starts), *form, address(hashes), address(counts))
    if not documents:
        return hashes[:0], counts
    firsts = np.array([0, *itertools.accumulate(map(len, documents))][:-1], np.int64)
    return hashes[:written], np.add.reduceat(counts, firsts)


def words(text: str) -> Sequence[str]:
    """Words of a text in lower case."""
    matches: list[str] = WORD.findall(text.lower())
    return matches


@cache
def word_classes() -> npt.NDArray[np.uint8]:
    """Sum of the codes of each codepoint, uint8 (0x110000,), by which kernels find the words of `WORD`."""
    table = np.zeros(0x110000, np.uint8)
    all_characters = np.arange(0x110000, dtype="<u4").tobytes().decode("utf-32-le", "surrogatepass")
    for code, pattern in _CLASSES.items():
        for run in regex.finditer(f"{pattern}+", all_characters, regex.VERSION1):
            table[run.start() : run.end()] += code
    table.flags.writeable = False
    return table
