"""The stage `corpus`: reads the source, splits it and writes the corpus artefact."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from paribus.config.groups.corpus import CorpusConfig, FilesCorpus, HuggingFaceCorpus, ParallelCorpus, PydocsCorpus
from paribus.corpus.artifact import CorpusWriter, split_of
from paribus.corpus.datasets import HuggingFaceSource, PydocsSource
from paribus.corpus.files import FilesSource, ParallelSource, Skipped, Source, SourceDocument
from paribus.corpus.overlap import Drawn, separate
from paribus.corpus.paths import first_of, versions
from paribus.engine import Engine
from paribus.errors import DataError
from paribus.native.registry import SHINGLES
from paribus.stage import JSON, StageContext, StageListener, compile_kernels

SKIPPED_FILE = "skipped.jsonl"
_BUCKET_BITS = 20


def build(context: StageContext) -> dict[str, JSON]:
    """Write `train/`, `heldout/` and, where records were left out, `skipped.jsonl`; return the counts.

    The result has `documents` and `bytes` (UTF-8), in all, by split, and of what `corpus.sample` leaves out
    (`unsampled`); `exact_duplicates`; `skipped` by reason; `digest` (SHA-256 of ids and texts in corpus order, and of
    the numbers of documents that moved); `stopped_at` (`limit` or `end`); `overlap` of the held-out documents with
    training and what was `moved` there; for `pydocs` the `packages` and, for `parallel`, the `target_bytes` of each
    split, which its `bytes` include. DataError where a record cannot be read or a split would be empty.
    """
    config = context.config.corpus
    compile_kernels(SHINGLES, context.listener)
    source, sample = open_source(config, context.engine, context.work), _sample(context)
    census, pairs = Census(), isinstance(config, ParallelCorpus)
    reading = SourcePass(source, config.limit, context.listener, "reading")
    with CorpusWriter(context.output, heldout=config.heldout, pairs=pairs) as writer:
        drawn = _copy(reading, sample, writer, census, context.output / SKIPPED_FILE)
    if isinstance(source, FilesSource) and source.without_documents:
        named = "; ".join(first_of(source.without_documents))
        context.listener.message(f"files without a document ({SKIPPED_FILE} says why): {named}")
    _require_both_splits(config, source, writer, census)
    places, moved, overlap = separate(context, drawn)
    census.move(places)
    moved_bytes = sum(document.bytes for document in moved)
    moved_targets = sum(len((document.target or "").encode()) for document in moved)
    result = census.result() | {"stopped_at": "end" if reading.complete else "limit", "overlap": overlap}
    result["moved"] = {"documents": len(moved), "bytes": moved_bytes}
    for split, written in writer.splits.items():
        sign = 1 if split == "train" else -1
        target_bytes = written.target_bytes + sign * moved_targets
        targets: dict[str, JSON] = {"target_bytes": target_bytes} if pairs else {}
        documents, size = written.documents + sign * len(moved), written.bytes + sign * moved_bytes
        result[split] = {"documents": documents, "bytes": size} | targets
    return result | ({"packages": dict(versions(config.packages))} if isinstance(config, PydocsCorpus) else {})


def open_source(config: CorpusConfig, engine: Engine, work: Path) -> Source:
    """The source that `config` describes; directory `work` is for files that its workers read ahead."""
    match config:
        case PydocsCorpus():
            return PydocsSource(config, engine)
        case FilesCorpus():
            return FilesSource(config, engine, work)
        case HuggingFaceCorpus():
            return HuggingFaceSource(config)
        case ParallelCorpus():
            return ParallelSource(config)


@dataclass(frozen=True)
class Sample:
    """The texts whose 64-bit hash is below `below`, so that a smaller sample is part of a larger one."""

    below: int
    seed: int = 0
    """Seed of the hash."""

    def keeps(self, text: bytes) -> bool:
        """True if a text (UTF-8) is in the sample; independent of its split."""
        return _hash(text, self.seed) < self.below


def _sample(context: StageContext) -> Sample | None:
    """The configured sample; None keeps all. A sample by size takes a pass over the source of its own."""
    config = context.config.corpus
    match config.sample:
        case None:
            return None
        case int(size):
            source = open_source(config, context.engine, context.work)
            reading = SourcePass(source, config.limit, context.listener, "choosing")
            documents = (item for item in reading if isinstance(item, SizedDocument))
            training = (document for document in documents if _is_training(document, config.heldout))
            return of_size(size, training, config.sample_seed)
        case share:
            return Sample(round(share * 2**64), config.sample_seed)


@dataclass(frozen=True, slots=True)
class SizedDocument:
    """A document with its text, and of a pair its target, in UTF-8."""

    item: SourceDocument
    text: bytes
    target: bytes | None

    @property
    def size(self) -> int:
        """Bytes of text, of a pair those of both sides."""
        return len(self.text) + len(self.target or b"")


class SourcePass:
    """One pass over a source, up to `limit` bytes of text; `doing` describes it in progress messages.

    `complete` is False afterwards if the limit ended it. DataError where not even the first document fits.
    """

    def __init__(self, source: Source, limit: int | None, listener: StageListener, doing: str) -> None:
        self.source, self.complete = source, True
        self._limit, self._listener, self._doing = limit, listener, doing
        self._documents = self._bytes = 0

    def __iter__(self) -> Iterator[SizedDocument | Skipped]:
        with closing(self.source.items()) as items:
            for item in items:
                if isinstance(item, Skipped):
                    yield item
                    self._progress()
                    continue
                target = None if item.target is None else item.target.encode()
                document = SizedDocument(item, item.text.encode(), target)
                if self._limit is not None and self._bytes + document.size > self._limit:
                    if not self._documents:
                        first = f"the first document, {item.id}, has {document.size} bytes"
                        raise DataError(f"corpus.limit={self._limit}: {first}; raise the limit")
                    self.complete = False
                    return
                self._documents += 1
                self._bytes += document.size
                yield document
                self._progress()

    def _progress(self) -> None:
        doing, source = f"{self._doing} documents ({self._documents:,})", self.source
        done = source.done / source.total if source.total else 0.0
        if self._limit is not None and self._bytes / self._limit >= done:
            self._listener.progress(self._bytes, self._limit, unit="B", doing=doing)
        else:
            self._listener.progress(source.done, max(source.total, source.done), unit=source.unit, doing=doing)


def _is_training(document: SizedDocument, heldout: float) -> bool:
    return split_of(document.text, document.item.group, heldout) == "train"


class Census:
    """Counts and the digest of a corpus; remembers 16 bytes per distinct text to find exact duplicates."""

    def __init__(self) -> None:
        self.documents = self.bytes = self.exact_duplicates = self.unsampled = self.unsampled_bytes = 0
        self.skipped: Counter[str] = Counter()
        self._texts: set[bytes] = set()
        self._digest = hashlib.sha256()

    def add(self, id: bytes, text: bytes, target: bytes | None = None) -> None:
        """Count a document, or a pair of source and target, given in UTF-8."""
        self.documents += 1
        parts = (text,) if target is None else (text, target)
        self.bytes += sum(map(len, parts))
        self._digest.update(b"".join(len(part).to_bytes(8, "little") for part in (id, *parts)) + id)
        seen = hashlib.blake2b(digest_size=16)
        for part in parts:
            self._digest.update(part)
            seen.update(part if len(parts) == 1 else len(part).to_bytes(8, "little") + part)
        distinct = len(self._texts)
        self._texts.add(seen.digest())
        self.exact_duplicates += len(self._texts) == distinct

    def move(self, places: Iterable[int]) -> None:
        """Add to the digest which documents, by their number among the drawn held-out ones, moved to training."""
        for place in places:
            self._digest.update(place.to_bytes(8, "little"))

    def left_out(self) -> str:
        """Part of a message on the records that were left out; empty where none was."""
        reasons = ", ".join(f"{count} {reason}" for reason, count in sorted(self.skipped.items()))
        return f" (left out: {reasons})" if reasons else ""

    def result(self) -> dict[str, JSON]:
        """Numbers for the record: the digest is the SHA-256 of ids and texts, of both sides of pairs, in order.

        Before each id are the lengths of id and texts; at the end, what `move` added.
        """
        return {
            "documents": self.documents,
            "bytes": self.bytes,
            "exact_duplicates": self.exact_duplicates,
            "unsampled": {"documents": self.unsampled, "bytes": self.unsampled_bytes},
            "skipped": dict(sorted(self.skipped.items())),
            "digest": self._digest.hexdigest(),
        }


def _copy(reading: SourcePass, sample: Sample | None, writer: CorpusWriter, census: Census, skipped: Path) -> Drawn:
    """Write the documents, without training ones outside the sample, and count all; return the held-out ones drawn."""
    drawn = Drawn()
    for entry in reading:
        if isinstance(entry, Skipped):
            census.skipped[entry.reason] += 1
            with skipped.open("a", encoding="utf-8", errors="backslashreplace") as file:
                file.write(json.dumps(asdict(entry), ensure_ascii=False) + "\n")
        elif sample and _is_training(entry, writer.heldout) and not sample.keeps(entry.text):
            census.unsampled += 1
            census.unsampled_bytes += entry.size
        else:
            item, place = entry.item, writer.splits["train"].documents
            census.add(item.id.encode(), entry.text, entry.target)
            if writer.add(item.id, item.text, item.source, item.target, item.group) == "heldout":
                drawn.add(place, item.group, entry.text)
    return drawn


def _require_both_splits(config: CorpusConfig, source: Source, writer: CorpusWriter, census: Census) -> None:
    if not census.documents and not census.unsampled:
        raise DataError(f"the corpus is empty{census.left_out()}: {source.hint}")
    field = config.group_field
    groups = f"; corpus.group_field={field} draws whole groups, so one of more values may be needed" if field else ""
    for split, written in writer.splits.items():
        if split == "train" and not written.documents and census.unsampled:
            raise DataError(
                f"corpus.sample={config.sample}: none of the {census.unsampled} training documents is in the sample; "
                "raise corpus.sample, or give more text"
            )
        if not written.documents:
            is_by_file = isinstance(config, FilesCorpus) and config.txt_document == "file"
            change = "lower" if split == "train" else "raise"
            lines = "; corpus.txt_document=paragraph or line makes many documents of a .txt file" if is_by_file else ""
            raise DataError(
                f"corpus.heldout={config.heldout}: none of the {census.documents} documents{census.left_out()} falls "
                f"into the {split} split; {source.hint}, raise corpus.limit, or {change} corpus.heldout"
                f"{groups}{lines}"
            )


def of_size(size: int, documents: Iterable[SizedDocument], seed: int = 0) -> Sample:
    """The smallest sample whose text has at least `size` bytes; all documents where these have fewer.

    Of pairs the targets count, as in a budget. Documents are counted by the first 20 bits of their hashes, so 8 MiB of
    memory suffice for any number; of many millions the sample has a few more than needed.
    """
    sizes = np.zeros(2**_BUCKET_BITS, np.int64)
    for document in documents:
        counted = document.text if document.target is None else document.target
        sizes[_hash(document.text, seed) >> (64 - _BUCKET_BITS)] += len(counted)
    buckets = int(np.searchsorted(np.cumsum(sizes), size)) + 1
    return Sample(buckets << (64 - _BUCKET_BITS), seed)


def _hash(text: bytes, seed: int) -> int:
    salt = seed.to_bytes(hashlib.blake2b.SALT_SIZE, "little")
    return int.from_bytes(hashlib.blake2b(text, digest_size=8, person=b"sample", salt=salt).digest(), "big")
