"""Standard streams that raise no errors, so that printing never decides how a run ends."""

import io
import os
import sys
from typing import Any


class _Outlet(io.FileIO):
    """A file descriptor whose failed writes are dropped; `errors` holds the last one."""

    def __init__(self, descriptor: int, errors: list[OSError]) -> None:
        super().__init__(descriptor, "wb", closefd=False)
        self._errors = errors

    def write(self, data: Any, /) -> int:
        try:
            return os.write(self.fileno(), data)
        except BrokenPipeError:  # the reader has seen enough, as `head` does
            return len(data)
        except OSError as error:
            self._errors[:] = [error]
            return len(data)


def guard_streams() -> list[OSError]:
    """Have standard streams escape what they cannot encode and drop failed writes; return a list for the last error."""
    errors = list[OSError]()
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        # A stream that somebody replaced is theirs; None was closed before the start.
        if stream is not None and stream is getattr(sys, f"__{name}__"):
            buffer, at_once = io.BufferedWriter(_Outlet(stream.fileno(), errors)), stream.write_through
            guarded = io.TextIOWrapper(
                buffer, stream.encoding, "backslashreplace", line_buffering=stream.line_buffering or at_once
            )
            setattr(sys, name, guarded)
    return errors
