"""Standard streams that a command outlives: nothing that it prints decides how it ends."""

import io
import os
import sys
from typing import Any


class _Outlet(io.FileIO):
    """A descriptor that takes everything; what could not be written is lost, and `errors` holds the reason."""

    def __init__(self, descriptor: int, errors: list[OSError]) -> None:
        super().__init__(descriptor, "wb", closefd=False)
        self._errors = errors

    def write(self, data: Any, /) -> int:
        try:
            return os.write(self.fileno(), data)
        except BrokenPipeError:  # as of `head`, which has read enough
            return len(data)
        except OSError as error:
            self._errors[:] = [error]
            return len(data)


def guard_streams() -> list[OSError]:
    """Have the standard streams of this process escape what they cannot show and ignore a reader that is gone.

    The list that is returned holds the last other error of writing, such as that of a full disk.
    """
    errors = list[OSError]()
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        # One that was replaced, or closed before the start, is somebody else's.
        if stream is not None and stream is getattr(sys, f"__{name}__"):
            buffer, at_once = io.BufferedWriter(_Outlet(stream.fileno(), errors)), stream.write_through
            guarded = io.TextIOWrapper(
                buffer, stream.encoding, "backslashreplace", line_buffering=stream.line_buffering or at_once
            )
            setattr(sys, name, guarded)
    return errors
