"""The clock that stamps files: on a shared disk that is the server's, with which no clock of a node can be compared."""

from pathlib import Path

PROBE = ".clock"


def file_time_ns(directory: Path) -> int:
    """Nanoseconds since 1970 that a file written in `directory` at this moment is stamped with."""
    probe = directory / PROBE
    probe.touch()
    return probe.stat().st_mtime_ns
