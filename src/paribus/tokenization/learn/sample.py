"""The text that a tokenizer is trained on: the beginning of the training split."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

from paribus.corpus.artifact import CorpusArtifact, Document, read_shard
from paribus.engine import Engine
from paribus.stage import Reporter
from paribus.store import files
from paribus.tokenization.learn.train import PreTokenPieces, count_pretokens
from paribus.tokenization.learn.word_counts import WordCounts, sum_counts
from paribus.tokenization.pretokenize.cutter import Cutter
from paribus.tokenization.pretokenize.patterns import Pretokenizer

_REPORT_BYTES = 2**20


@dataclass(frozen=True)
class CountedPart:
    """The first documents of a shard of the corpus, and the file that keeps the counts of their pre-tokens."""

    shard: Path
    documents: int
    bytes: int
    target: Path


class LearningSample:
    """The first documents of the training split up to `most` bytes, counted and reported as they pass.

    None takes all of the split; the first document counts whatever its size.
    """

    def __init__(self, corpus: CorpusArtifact, most: int | None, report: Reporter) -> None:
        size = corpus.bytes("train")
        self._corpus, self._total, self._report = corpus, min(size, most or size), report
        self.documents = self.bytes = 0

    def __iter__(self) -> Iterator[str]:
        reported = self.documents = self.bytes = 0
        for document in self._corpus.documents("train"):
            if self.documents and self.bytes + document.bytes > self._total:
                break
            self.documents += 1
            self.bytes += document.bytes
            if self.bytes - reported >= _REPORT_BYTES:
                reported = self.bytes
                self._tell()
            yield from document.texts
        self._report.progress(self.bytes, self.bytes, unit="bytes", doing="counting pre-tokens")

    def words(self, pretokenizer: str | Cutter, engine: Engine, work: Path) -> WordCounts:
        """Counts of the pre-tokens, made shard by shard; what is finished stays in directory `work`."""
        directory = work / "counts"
        directory.mkdir(exist_ok=True)
        parts = list(self._parts(directory))
        cut = Pretokenizer(pretokenizer) if isinstance(pretokenizer, str) else pretokenizer
        self.documents = self.bytes = 0
        for part, _ in zip(parts, engine.map(partial(count_part, cut), parts), strict=True):
            self.documents += part.documents
            self.bytes += part.bytes
            self._tell()
        return sum_counts(map(_read, parts))

    def _tell(self) -> None:
        self._report.progress(self.bytes, self._total, unit="bytes", doing="counting pre-tokens")

    def _parts(self, directory: Path) -> Iterator[CountedPart]:
        left, first = self._total, True
        for shard in self._corpus.shards("train"):
            sizes: npt.NDArray[np.int64] = pq.read_table(shard, columns=["bytes"]).column("bytes").to_numpy()
            ends = np.cumsum(sizes)
            taken = int(np.searchsorted(ends, left, side="right"))
            # The first document counts whatever its size.
            taken = max(taken, 1) if first and len(sizes) else taken
            if taken:
                bytes = int(ends[taken - 1])
                yield CountedPart(shard, taken, bytes, directory / f"{shard.stem}-{taken:09d}.npz")
                left, first = left - bytes, False
            if taken < len(sizes):
                return


def count_part(pretokenizer: PreTokenPieces, part: CountedPart) -> None:
    """Count the pre-tokens of a part into its file, unless that is done."""
    if not part.target.exists():
        words = count_pretokens(_texts(islice(read_shard(part.shard), part.documents)), pretokenizer)
        with files.replacing(part.target) as aside, aside.open("wb") as file:
            np.savez(file, spellings=words.spellings, offsets=words.offsets, counts=words.counts)


def _texts(documents: Iterator[Document]) -> Iterator[str]:
    for document in documents:
        yield from document.texts


def _read(part: CountedPart) -> WordCounts:
    with np.load(part.target, allow_pickle=False) as saved:
        return WordCounts(saved["spellings"], saved["offsets"], saved["counts"])
