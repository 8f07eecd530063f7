"""Streaming decompression of .gz, .zst and .bz2 that notices a missing end.

Python's own file objects do not do for this: `zstandard`'s stream reader ends silently in the middle of a frame, and
`bz2` takes a damaged later stream for trailing garbage. Here every frame, member or stream must be whole.
"""

import bz2
import io
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Protocol

import zstandard

from paribus.errors import DataError

CHUNK_BYTES = 64 * 2**10
BUFFER_BYTES = 2**20


class ArchiveError(DataError):
    """A compressed file ends too early or is damaged."""


class Frame(Protocol):
    """An incremental decompressor of one frame."""

    @property
    def eof(self) -> bool:
        """Whether the frame's end has been read."""

    @property
    def unused_data(self) -> bytes:
        """Bytes after the frame's end."""

    def decompress(self, data: bytes, /) -> bytes:
        """Decompressed bytes for the next compressed ones."""


def _gzip_member() -> Frame:
    return zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)


def _zstd_frame() -> Frame:
    frame: Frame = zstandard.ZstdDecompressor().decompressobj()
    return frame


FRAMES: dict[str, Callable[[], Frame]] = {"gz": _gzip_member, "zst": _zstd_frame, "bz2": bz2.BZ2Decompressor}


class DecompressedFile(io.RawIOBase):
    """The decompressed bytes of all frames of an archive; ArchiveError where it is truncated or damaged."""

    def __init__(self, path: Path, raw: BinaryIO, compression: str) -> None:
        self._path, self._raw, self._compression = path, raw, compression
        self._frame: Frame | None = None
        self._frames = 0
        self._compressed = b""
        self._decompressed = memoryview(b"")

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]
        """Fill `buffer` with what the next compressed bytes give; 0 after the last frame."""
        while not self._decompressed:
            chunk = self._compressed or self._raw.read(CHUNK_BYTES)
            self._compressed = b""
            if not chunk:
                if self._frame is not None:
                    raise ArchiveError(f"{self._path}: truncated .{self._compression} archive, its end is missing")
                return 0
            self._decompressed = memoryview(self._feed(chunk))
        size = min(len(buffer), len(self._decompressed))
        buffer[:size] = self._decompressed[:size]
        self._decompressed = self._decompressed[size:]
        return size

    def _feed(self, chunk: bytes) -> bytes:
        if self._frame is None:
            if self._compression == "gz" and self._frames:  # gzip members may be padded with zeros
                chunk = chunk.lstrip(b"\0")
                if not chunk:
                    return b""
            self._frame = FRAMES[self._compression]()
            self._frames += 1
        try:
            data = self._frame.decompress(chunk)
        except (zlib.error, zstandard.ZstdError, OSError) as error:
            raise ArchiveError(f"{self._path}: damaged .{self._compression} archive ({error})") from error
        if self._frame.eof:
            self._compressed, self._frame = self._frame.unused_data, None
        return data


def open_decompressed(path: Path, raw: BinaryIO, compression: str | None) -> BinaryIO:
    """`raw`, opened from `path`, as a buffered stream of decompressed bytes; itself where it is plain."""
    if compression is None:
        return raw
    return io.BufferedReader(DecompressedFile(path, raw, compression), BUFFER_BYTES)
