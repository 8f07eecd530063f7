"""The order artefact: what is written is read, and what contradicts itself is refused by name."""

import hashlib
import json
import struct
from pathlib import Path

import numpy as np
import pytest

from paribus.errors import DataError
from paribus.ordering.orders import Order, order_digest, write_order


def written(directory: Path, documents: list[int], groups: list[int] | None = None, kept: int | None = None) -> Path:
    directory.mkdir()
    positions = None if groups is None else np.array(groups, dtype=np.int64)
    stay = len(set(documents)) if kept is None else kept
    write_order(directory, np.array(documents, dtype=np.int64), groups=positions, kept=stay, removed=2)
    return directory


def test_an_order_is_read_as_it_was_written(tmp_path: Path) -> None:
    order = Order(written(tmp_path / "order", [3, 0, 4]))
    assert order.documents.tolist() == [3, 0, 4] and order.documents.dtype == np.int64
    assert order.groups is None
    assert (len(order), order.kept, order.corpus_documents) == (3, 3, 5)
    assert order.digest == hashlib.sha256(struct.pack("<3q", 3, 0, 4)).hexdigest()


def test_an_order_with_groups_may_repeat_documents(tmp_path: Path) -> None:
    order = Order(written(tmp_path / "order", [3, 0, 0, 3, 4], groups=[0, 2, 4, 5]))
    assert order.groups is not None and order.groups.tolist() == [0, 2, 4, 5]
    summary = json.loads((tmp_path / "order" / "order.json").read_text())
    assert summary == {"documents": 5, "kept": 3, "entries": 5, "repeats": 2, "digest": order.digest}


def test_the_digest_is_that_of_little_endian_int64() -> None:
    assert order_digest(np.arange(3, dtype=np.int64)) == order_digest(np.arange(3, dtype=">i8"))
    assert order_digest(np.arange(3, dtype=np.int64)) != order_digest(np.array([0, 2, 1]))


@pytest.mark.parametrize(
    ("documents", "groups", "kept", "message"),
    [
        ([0, 1, 1], None, None, "1 entries repeat a document, without groups.npy"),
        ([0, 1, 7], None, None, "documents 0 to 7, but the corpus has 5"),
        ([0, 1, 2], None, 4, "3 distinct documents, but order.json says that 4 are kept"),
        ([0, 1, 2], [0, 2], None, "groups.npy: must ascend from 0 to the 3 entries"),
        ([0, 1, 2], [0, 2, 2, 3], None, "groups.npy: must ascend"),
    ],
)
def test_an_order_that_contradicts_itself_is_refused(
    tmp_path: Path, documents: list[int], groups: list[int] | None, kept: int | None, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        Order(written(tmp_path / "order", documents, groups, kept))


def test_entries_that_were_exchanged_change_the_digest(tmp_path: Path) -> None:
    path = written(tmp_path / "order", [3, 0, 4])
    np.save(path / "order.npy", np.array([0, 3, 4]))
    with pytest.raises(DataError, match=r"order\.npy: its digest is not the b57131b3244236dc…"):
        Order(path)


def test_an_order_cut_short_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "order", [3, 0, 4])
    np.save(path / "order.npy", np.array([3, 0]))
    with pytest.raises(DataError, match=r"order\.npy: has 2 entries, but order\.json says 3"):
        Order(path)
    (path / "order.npy").write_bytes((path / "order.npy").read_bytes()[:-4])
    with pytest.raises(DataError, match=r"order\.npy: no readable array"):
        Order(path)
