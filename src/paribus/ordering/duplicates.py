"""The stage `duplicates`: which documents of the training split stay. Tokenizer-free, and shared by every ordering."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from paribus.config.groups.ordering import EmbeddingDuplicates, ExactDuplicates, MinHashDuplicates
from paribus.corpus.artifact import CorpusArtifact, CorpusPart, batches, corpus_parts
from paribus.corpus.overlap import words
from paribus.engine import Engine
from paribus.errors import DataError
from paribus.native.loader import address, kernel
from paribus.native.registry import AGREEMENT
from paribus.ordering.arrays import FileRows, NeighbourLists, map_array, open_array, save_array
from paribus.stage import JSON, StageContext, StageListener, compile_kernels

Indices = npt.NDArray[np.int64]
WORDS = 2
"""Numbers of 64 bits in a digest."""
ROWS_AT_ONCE = 262_144
SIGNATURES_AT_ONCE = 65_536
SEED = 1
"""Seed of the hash functions; another seed is another estimate."""
NO_WORD = "\0"
"""First character of the only shingle of a text without words; no word holds it."""
RECALL = 0.99
"""Least probability that two documents at the threshold are candidates; more similar ones have a larger one."""
KEPT, REMOVED = "kept.npy", "removed.parquet"
SCHEMA = pa.schema(
    [
        ("document", pa.int64()),
        ("id", pa.string()),
        ("kept", pa.int64()),
        ("kept_id", pa.string()),
        ("similarity", pa.float32()),
        ("bytes", pa.int64()),
    ]
)


def build(context: StageContext) -> dict[str, JSON]:
    """Write the documents that stay, and for each of the others the reason why it does not.

    Of a group of duplicates, which is a connected component of pairs, the first document of the corpus stays. Raises
    DataError for an empty training split, or neighbours of another corpus.
    """
    corpus = CorpusArtifact(context.inputs["corpus"])
    parts = corpus_parts(corpus, context.work / "parts")
    count = parts[-1].start + parts[-1].rows
    groups = group(count, _find_pairs(context, parts, count))
    removed_bytes = write_duplicates(context.output, groups, parts)
    return {
        "documents": len(groups.first),
        "removed": int((~groups.kept).sum()),
        "groups": len(groups.sizes),
        "largest_group": int(groups.sizes.max(initial=1)),
        "removed_bytes": removed_bytes,
        "removed_share": removed_bytes / max(1, corpus.bytes("train")),
    }


class Pairs(NamedTuple):
    """Three arrays of one length: the two documents of each pair, in either order, and their similarity."""

    first: Indices
    second: Indices
    similarities: npt.NDArray[np.float32]

    @classmethod
    def joined(cls, parts: Iterable["Pairs"]) -> "Pairs":
        columns = zip(cls.none(), *parts, strict=True)
        return cls(*(np.concatenate(column) for column in columns))

    @classmethod
    def none(cls) -> "Pairs":
        return cls(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.float32))


def _find_pairs(context: StageContext, parts: Sequence[CorpusPart], count: int) -> Pairs:
    match context.config.duplicates:
        case ExactDuplicates():
            _compute(digest_part, parts, context.engine, context.listener)
            return equal_pairs(np.concatenate([np.load(part.target, allow_pickle=False) for part in parts]))
        case MinHashDuplicates() as config:
            compile_kernels(AGREEMENT, context.listener)
            _compute(partial(sign_part, config), parts, context.engine, context.listener)
            return minhash_pairs(parts, config, context.listener)
        case EmbeddingDuplicates() as config:
            lists = NeighbourLists(context.inputs["neighbours"])
            if lists.count != count:
                message = f"neighbours of {lists.count} documents, but the training split has {count}"
                raise DataError(f"{lists.path}: {message}")
            return embedding_pairs(lists, config.threshold)
        case config:
            raise TypeError(f"duplicates={config.kind} removes nothing")


def _compute(
    function: Callable[[CorpusPart], CorpusPart], parts: Sequence[CorpusPart], engine: Engine, listener: StageListener
) -> None:
    """Map over parts; finished ones have a file in the stage's working directory and are not repeated after a kill."""
    total, done = parts[-1].start + parts[-1].rows, 0
    for part in engine.map(function, parts):
        done += part.rows
        listener.progress(done, total, unit="documents", doing="hashing documents")


@dataclass(frozen=True)
class Groups:
    """Groups of duplicates among n documents, each with the document that stays for it."""

    first: Indices
    """(n,) first document of each document's group, which stays; itself for a document without duplicates."""
    similarities: npt.NDArray[np.float32]
    """(n,) similarity to the most similar document that it is paired with; 0 without duplicates."""

    @property
    def kept(self) -> npt.NDArray[np.bool_]:
        """(n,) documents that stay."""
        return np.asarray(self.first == np.arange(len(self.first)))

    @property
    def sizes(self) -> Indices:
        """Documents of each group of two or more, in the order of their first documents."""
        sizes = np.bincount(self.first, minlength=1)
        return sizes[sizes > 1]


def digests(contents: Iterable[bytes]) -> npt.NDArray[np.uint64]:
    """BLAKE2b of each content, (n, 2) uint64."""
    joined = b"".join(hashlib.blake2b(content, digest_size=8 * WORDS).digest() for content in contents)
    return np.frombuffer(joined, dtype="<u8").reshape(-1, WORDS)


def digest_part(part: CorpusPart) -> CorpusPart:
    """Write the digests of the texts of a part, unless their file exists."""
    if not part.target.exists():
        save_array(part.target, digests(text.encode() for text in part.texts()))
    return part


def embedding_pairs(lists: NeighbourLists, threshold: float) -> Pairs:
    """Pairs of documents and neighbours whose cosine is above `threshold`.

    In-Context Pretraining (arXiv 2310.10638, appendix A.1) finds near duplicates so: the ordering needs the lists of
    neighbours anyway.
    """
    parts = []
    for start in range(0, lists.count, ROWS_AT_ONCE):
        ids = lists.ids[start : start + ROWS_AT_ONCE].astype(np.int64)
        cosines = np.asarray(lists.similarities[start : start + ROWS_AT_ONCE])
        rows, columns = np.nonzero((ids >= 0) & (cosines > threshold))
        parts.append(Pairs(rows + start, ids[rows, columns], cosines[rows, columns]))
    return Pairs.joined(parts)


def minhash_pairs(parts: Sequence[CorpusPart], config: MinHashDuplicates, listener: StageListener) -> Pairs:
    """Pairs among the documents of signed parts whose estimated Jaccard similarity is `config.threshold` or more.

    Not all pairs, but enough to connect every group. Documents with equal signatures are paired with the first of them,
    which alone is compared with others.
    """
    signatures = FileRows([part.target for part in parts], [part.rows for part in parts])
    pairs = equal_pairs(_read_keys(parts, slice(0, 2)))
    distinct = np.delete(np.arange(len(signatures)), pairs.second)
    count = Bands.of(config).count
    for band in range(count):
        listener.progress(band, count, unit="bands", doing="comparing signatures")
        keys = _read_keys(parts, slice(2 + band, 3 + band))[distinct, 0]
        candidates = buckets(distinct, keys, group(len(signatures), pairs).first[distinct])
        pairs = Pairs.joined([pairs, *_confirmed(candidates, signatures, config.threshold)])
    listener.progress(count, count, unit="bands", doing="comparing signatures")
    return pairs


def _read_keys(parts: Sequence[CorpusPart], rows: slice) -> npt.NDArray[np.uint64]:
    """The keys `rows` of every document, (n, keys)."""
    return np.concatenate([map_array(keys_path(part.target))[rows].T for part in parts])


def _confirmed(candidates: Iterable[Indices], signatures: FileRows, threshold: float) -> Iterator[Pairs]:
    for batch in batches(candidates, len, SIGNATURES_AT_ONCE):  # files of signatures are opened once for many buckets
        rows = signatures.take(np.concatenate(batch))
        splits = np.split(rows, np.cumsum([len(bucket) for bucket in batch])[:-1])
        confirmed = (linked(bucket, part, threshold) for bucket, part in zip(batch, splits, strict=True))
        yield Pairs.joined(pairs for pairs in confirmed if len(pairs.first))


# MinHash signatures (Broder, 1997) by datasketch, and the keys by which equal parts of them are found.
#
# Hashes have 64 bits: with 32, two short documents of a large corpus would have one signature by chance.
def sign(texts: list[str], config: MinHashDuplicates) -> npt.NDArray[np.uint64]:
    """Signatures of documents, (n, permutations)."""
    from datasketch import MinHash  # takes 0.2 s, which stages that read the artefact need not spend

    sets = (sorted(shingles(text, config.shingle)) for text in texts)
    sketches = MinHash.generator(sets, num_perm=config.permutations, seed=SEED, scheme="affine64", hashfunc=_hash)
    return np.array([sketch.hashvalues for sketch in sketches], dtype=np.uint64).reshape(
        len(texts), config.permutations
    )


def sign_part(config: MinHashDuplicates, part: CorpusPart) -> CorpusPart:
    """Write the signatures of a part and, beside them, their keys, unless that is done."""
    if not part.target.exists():
        signatures = sign(part.texts(), config)
        signature_keys = digests(row.tobytes() for row in signatures)
        bands = Bands.of(config).slices
        band_keys = [digests(row.tobytes() for row in signatures[:, band])[:, :1] for band in bands]
        save_array(keys_path(part.target), np.ascontiguousarray(np.hstack([signature_keys, *band_keys]).T))
        save_array(part.target, signatures)
    return part


def keys_path(target: Path) -> Path:
    """The file of the keys of the signatures in file `target`: (2 + bands, n), the first two of the whole signature."""
    return target.with_suffix(".keys.npy")


# Locality-sensitive hashing of MinHash signatures (Leskovec, Rajaraman and Ullman, 2020, chapter 3).
#
# A signature is cut into bands; documents that agree in a band are candidates, and are pairs if enough of their whole
# signatures agrees. Every band is a pass over one number per document, so memory does not grow with the bands; the
# signatures of a bucket are in memory together.
@dataclass(frozen=True)
class Bands:
    """`count` bands of `rows` values of a signature."""

    count: int
    rows: int

    @classmethod
    def of(cls, config: MinHashDuplicates) -> Self:
        """The longest bands, which have the fewest candidates, that miss at most 1 pair in 100 at the threshold."""
        fitting = (
            cls(config.permutations // rows, rows)
            for rows in range(config.permutations, 0, -1)
            if 1 - (1 - config.threshold**rows) ** (config.permutations // rows) >= RECALL
        )
        return next(fitting, cls(config.permutations, 1))

    @property
    def slices(self) -> list[slice]:
        """Columns of each band."""
        return [slice(band * self.rows, (band + 1) * self.rows) for band in range(self.count)]


def _hash(shingle: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(shingle, digest_size=8).digest(), "little")


def shingles(text: str, size: int) -> set[bytes]:
    """The sets of `size` consecutive words, each as UTF-8 with spaces between.

    A text of fewer words is one shingle of them all, one without any word a shingle of the whole text.
    """
    listed = words(text)
    if not listed:
        return {(NO_WORD + text).encode()}
    return {" ".join(listed[start : start + size]).encode() for start in range(max(1, len(listed) - size + 1))}


def buckets(documents: Indices, keys: npt.NDArray[np.uint64], first: Indices) -> Iterator[Indices]:
    """Documents with equal `keys` (n,) of one band, ascending in each bucket.

    `first` (n,) are the first documents of their groups so far; a bucket of one group is left out.
    """
    order, bounds = runs(keys[:, None])
    groups = first[order]
    apart = np.minimum.reduceat(groups, bounds[:-1]) < np.maximum.reduceat(groups, bounds[:-1])
    for run in np.flatnonzero(apart).tolist():
        yield documents[order[bounds[run] : bounds[run + 1]]]


def linked(documents: Indices, signatures: npt.NDArray[np.uint64], threshold: float) -> Pairs:
    """Pairs of `documents` (n,) of an estimated Jaccard of `threshold` or more: a tree for all that they connect.

    The estimate is the share of values in which two rows of `signatures` (n, permutations) agree. Time is quadratic in
    documents that are not alike.
    """
    permutations = signatures.shape[1]
    least = next(count for count in range(permutations + 1) if count / permutations >= threshold)
    whole = np.ascontiguousarray(signatures)
    short = whole.astype(np.uint16)
    waiting, reached, agreements = (np.arange(len(documents), dtype=np.int64) for _ in range(3))
    count, frontier, pairs = len(waiting), list[int](), list[Pairs]()
    while count:
        if not frontier:
            frontier, waiting, count = [int(waiting[0])], waiting[1:], count - 1
        current = frontier.pop()
        form = (permutations, current, least, address(waiting), count, address(reached), address(agreements))
        remaining = kernel("split_agreeing")(address(short), address(whole), *form)
        near = reached[: count - remaining]
        similarities = (agreements[: len(near)] / permutations).astype(np.float32)
        pairs.append(Pairs(np.full(len(near), documents[current]), documents[near], similarities))
        frontier += near.tolist()
        count = remaining
    return Pairs.joined(pairs)


def runs(keys: npt.NDArray[np.uint64]) -> tuple[Indices, Indices]:
    """Indices of the rows of (n, width) `keys`, equal rows together, ascending in each run, and the runs' bounds."""
    order = np.lexsort(keys.T[::-1])
    changes = np.flatnonzero((keys[order[1:]] != keys[order[:-1]]).any(axis=1)) + 1
    return order, np.concatenate([[0], changes, [len(keys)]])


def equal_pairs(keys: npt.NDArray[np.uint64]) -> Pairs:
    """Pairs of each row of (n, width) `keys` with the first row that equals it, similarity 1."""
    order, bounds = runs(keys)
    firsts = np.repeat(order[bounds[:-1]], np.diff(bounds))
    later = order != firsts
    return Pairs(firsts[later], order[later], np.ones(int(later.sum()), np.float32))


def group(count: int, pairs: Pairs) -> Groups:
    """Groups of `count` documents; time and memory are linear in documents and pairs."""
    linked = coo_array((np.ones(len(pairs.first), dtype=bool), (pairs.first, pairs.second)), shape=(count, count))
    _, labels = connected_components(linked, directed=False)
    similarities = np.zeros(count, np.float32)
    np.maximum.at(similarities, pairs.first, pairs.similarities)
    np.maximum.at(similarities, pairs.second, pairs.similarities)
    return Groups(np.unique(labels, return_index=True)[1][labels].astype(np.int64), similarities)


class Duplicates:
    """Reads the duplicates in directory `path`.

    Raises DataError, naming the file, where one is missing or cut short, or where they disagree: every document is kept
    or removed, and a removed one names a kept one that comes before it.
    """

    def __init__(self, path: Path) -> None:
        self.path, file = Path(path), path / KEPT
        self.kept: npt.NDArray[np.bool_] = np.asarray(open_array(file, "kept documents"))
        """(n,) bool: documents, in corpus order, that stay."""
        if self.kept.dtype != np.bool_ or self.kept.ndim != 1:
            raise DataError(f"{file}: bool (documents,) is expected, but this is {self.kept.dtype} {self.kept.shape}")
        documents, first = (column.to_numpy() for column in self.removed("document", "kept").columns)
        if not np.array_equal(documents, np.flatnonzero(~self.kept)):
            raise DataError(
                f"{self.path}: {REMOVED} lists {len(documents)} documents, which are not the "
                f"{int((~self.kept).sum())} of {len(self.kept)} that {KEPT} does not keep"
            )
        if not ((first >= 0) & (first < documents)).all() or not self.kept[first].all():
            raise DataError(f"{self.path / REMOVED}: a document is removed in favour of one that does not stay")

    def removed(self, *columns: str) -> pa.Table:
        """Documents that do not stay, in corpus order; all columns where none is named.

        `document` and `kept` are indices in corpus order of the document and of the one that stays for it, `id` and
        `kept_id` their ids, `similarity` as in `Groups`, `bytes` those of its text.
        """
        try:
            return pq.read_table(self.path / REMOVED, columns=list(columns) or SCHEMA.names)
        except (OSError, pa.ArrowException) as error:
            raise DataError(f"{self.path / REMOVED}: no readable table of removed documents ({error})") from error


def write_duplicates(directory: Path, groups: Groups, parts: Sequence[CorpusPart]) -> int:
    """Write the artefact of the documents of `parts`; returns the bytes of text that are removed."""
    kept = groups.kept
    save_array(directory / KEPT, kept)
    removed_bytes, ids = 0, dict[int, str]()
    leaders = np.unique(groups.first[~kept])
    with pq.ParquetWriter(directory / REMOVED, SCHEMA, compression="zstd") as file:
        for part in parts:
            table = _rows(part, groups, kept, leaders, ids)
            if table.num_rows:
                file.write_table(table)
                removed_bytes += sum(table["bytes"].to_pylist())
    return removed_bytes


def _rows(
    part: CorpusPart, groups: Groups, kept: npt.NDArray[np.bool_], leaders: npt.NDArray[np.int64], ids: dict[int, str]
) -> pa.Table:
    """Removed documents of one part; `ids` remembers those of first documents, which come before all of their group."""
    span = slice(part.start, part.start + part.rows)
    first, last = np.searchsorted(leaders, [span.start, span.stop])
    removed = np.flatnonzero(~kept[span])
    if first == last and not len(removed):
        return SCHEMA.empty_table()
    names, sizes = part.columns("id", "bytes").columns
    ids |= {leader: names[leader - part.start].as_py() for leader in leaders[first:last].tolist()}
    documents = removed + part.start
    leaders_of = groups.first[documents]
    columns = [documents, names.take(removed), leaders_of, [ids[leader] for leader in leaders_of.tolist()]]
    columns += [groups.similarities[documents], sizes.take(removed)]
    return pa.table(dict(zip(SCHEMA.names, columns, strict=True)), schema=SCHEMA)
