"""The duplicates artefact: which documents stay (`kept.npy`), and why the others do not (`removed.parquet`)."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from paribus.errors import DataError
from paribus.ordering.arrays import save_array
from paribus.ordering.duplicates.groups import Groups
from paribus.ordering.parts import CorpusPart

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


class Duplicates:
    """Reads the duplicates in directory `path`.

    Raises DataError, naming the file, where one is missing or cut short, or where they disagree: documents are kept or
    removed, and a removed one names a kept one that comes before it.
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        self.kept = self._kept()
        """(n,) bool: documents, in corpus order, that stay."""
        removed = self.removed("document", "kept")
        self._check(removed["document"].to_numpy(), removed["kept"].to_numpy())

    def removed(self, *columns: str) -> pa.Table:
        """Documents that do not stay, in corpus order; all columns where none is named.

        `document` and `kept` are indices in corpus order of the document and of the one that stays for it, `id` and
        `kept_id` their ids, `similarity` that to the document that linked it, `bytes` those of its text.
        """
        try:
            return pq.read_table(self.path / REMOVED, columns=list(columns) or SCHEMA.names)
        except (OSError, pa.ArrowException) as error:
            raise DataError(f"{self.path / REMOVED}: no readable table of removed documents ({error})") from error

    def _kept(self) -> npt.NDArray[np.bool_]:
        try:
            kept: npt.NDArray[np.bool_] = np.load(self.path / KEPT, allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise DataError(f"{self.path / KEPT}: no readable array of kept documents ({error})") from error
        if kept.dtype != np.bool_ or kept.ndim != 1:
            raise DataError(f"{self.path / KEPT}: bool (documents,) is expected, but this is {kept.dtype} {kept.shape}")
        return kept

    def _check(self, documents: npt.NDArray[np.int64], first: npt.NDArray[np.int64]) -> None:
        if not np.array_equal(documents, np.flatnonzero(~self.kept)):
            raise DataError(
                f"{self.path}: {REMOVED} lists {len(documents)} documents, which are not the "
                f"{int((~self.kept).sum())} of {len(self.kept)} that {KEPT} does not keep"
            )
        if not ((first >= 0) & (first < documents)).all() or not self.kept[first].all():
            raise DataError(f"{self.path / REMOVED}: a document is removed in favour of one that does not stay")


def write_duplicates(directory: Path, groups: Groups, parts: Sequence[CorpusPart]) -> int:
    """Write the artefact of the documents of `parts`; the bytes of text that are removed."""
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
    of = groups.first[documents]
    columns = [documents, names.take(removed), of, [ids[leader] for leader in of.tolist()]]
    columns += [groups.similarities[documents], sizes.take(removed)]
    return pa.table(dict(zip(SCHEMA.names, columns, strict=True)), schema=SCHEMA)
