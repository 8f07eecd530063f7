"""Units of work over the documents of a corpus: a row group of a Parquet shard each, or a piece of one.

What a unit gives depends on its documents alone, so neither the number of workers nor a kill shows in an artefact.
"""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from paribus.corpus.artifact import CorpusArtifact
from paribus.errors import DataError


@dataclass(frozen=True)
class CorpusPart:
    """Consecutive documents of a shard of the training split, and the file that keeps what is computed from them."""

    shard: Path
    group: int
    """Row group of the shard."""
    first: int
    """Its first row in the row group."""
    rows: int
    start: int
    """Index, in corpus order, of its first document."""
    target: Path

    def columns(self, *names: str) -> pa.Table:
        """Columns of its documents."""
        with pq.ParquetFile(self.shard) as file:
            return file.read_row_group(self.group, columns=list(names)).slice(self.first, self.rows)

    def texts(self) -> list[str]:
        """Its documents."""
        texts: list[str] = self.columns("text").column("text").to_pylist()
        return texts


def corpus_parts(corpus: CorpusArtifact, directory: Path, *, bytes: int | None = None) -> list[CorpusPart]:
    """The training split in corpus order, results below `directory`; DataError where the split is empty.

    A part is a row group, or about `bytes` of one: for work so slow that a row group is too much to lose.
    """
    parts = list(_parts(corpus, directory, bytes))
    if not parts:
        raise DataError(
            "The training split has no documents to put in order: give more text, or lower `corpus.heldout`"
        )
    return parts


def _parts(corpus: CorpusArtifact, directory: Path, size: int | None) -> Iterator[CorpusPart]:
    directory.mkdir(parents=True, exist_ok=True)
    start = 0
    for shard in corpus.shards("train"):
        metadata = pq.read_metadata(shard)
        for group in range(metadata.num_row_groups):
            for first, rows in _pieces(metadata.row_group(group), size):
                # The range, since what parts of another size left behind must not be taken for this one.
                target = directory / f"{shard.stem}-{group:05d}-{first:08d}-{first + rows:08d}.npy"
                yield CorpusPart(shard, group, first, rows, start, target)
                start += rows


def _pieces(group: pq.RowGroupMetaData, size: int | None) -> Iterator[tuple[int, int]]:
    """(first row, rows) of pieces with equally many rows."""
    pieces = 1 if size is None else min(group.num_rows, math.ceil(group.total_byte_size / size))
    bounds = [group.num_rows * piece // pieces for piece in range(pieces + 1)]
    yield from ((first, last - first) for first, last in itertools.pairwise(bounds))
