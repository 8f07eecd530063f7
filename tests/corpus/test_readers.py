"""Decompression that notices a missing end, whatever the number of frames."""

import bz2
import gzip
import io
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from paribus.corpus.paths import COMPRESSIONS, compression_of, format_of
from paribus.corpus.readers import ArchiveError, open_decompressed

COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "zst": zstandard.ZstdCompressor().compress,
}


def decompressed(data: bytes, compression: str) -> bytes:
    return open_decompressed(Path("some.txt"), io.BytesIO(data), compression).read()


@pytest.mark.parametrize("compression", COMPRESSIONS)
@given(parts=st.lists(st.binary(min_size=1, max_size=300), min_size=1, max_size=4))
def test_every_frame_of_an_archive_is_read(compression: str, parts: list[bytes]) -> None:
    archive = b"".join(COMPRESS[compression](part) for part in parts)
    assert decompressed(archive, compression) == b"".join(parts)


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_archive_is_streamed_whole_and_every_cut_or_damage_is_noticed(compression: str) -> None:
    compress = COMPRESS[compression]
    text = b"".join(b"%d bottles\n" % number for number in range(400_000))
    assert decompressed(compress(text), compression) == text
    frame, refused = compress(b"one line\nand another\n" * 20), [compress(b"text") + b"garbage" * 10]
    refused += [before + frame[:end] for end in range(1, len(frame)) for before in (b"", frame)]
    empty_frame = compress(b"a") + compress(b"") + compress(b"b")
    if compression == "bz2":
        refused.append(empty_frame)
    else:
        assert decompressed(empty_frame, compression) == b"ab"
    for archive in refused:
        with pytest.raises(ArchiveError, match=rf"some\.txt: truncated or damaged \.{compression} archive"):
            decompressed(archive, compression)


def test_suffixes_name_the_format() -> None:
    known = {"a.jsonl": ("jsonl", None), "b.c.JSONL.ZST": ("jsonl", "zst"), "x.parquet": ("parquet", None)}
    known |= {"x.txt.bz2": ("txt", "bz2"), "x.tar.txt.gz": ("txt", "gz")}
    assert {name: (format_of(Path(name)), compression_of(Path(name))) for name in known} == known
    for name in ("a", "a.csv", "a.gz", "jsonl", "a.jsonl.xz", "a.jsonl.gz.gz", "a.txt.tar.gz"):
        assert format_of(Path(name)) is None
