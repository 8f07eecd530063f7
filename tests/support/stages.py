"""The context of a stage in directories of a test, and what the stage wrote there."""

from collections.abc import Mapping
from pathlib import Path

from paribus.config.schema import RunConfig
from paribus.engine.local import LocalEngine
from paribus.stage import SilentListener, StageContext, StageListener


def context_at(
    output: Path,
    work: Path,
    config: RunConfig,
    inputs: Mapping[str, Path],
    *,
    listener: StageListener | None = None,
    workers: int = 1,
) -> StageContext:
    """A context that writes to `output`, which is made and must be new, and finds in `work` what was there before."""
    output.mkdir(parents=True)
    work.mkdir(parents=True, exist_ok=True)
    return StageContext(config, inputs, output, work, listener or SilentListener(), LocalEngine(workers))


def files(directory: Path) -> dict[str, bytes]:
    """Contents of the files below a directory by relative path."""
    return {
        path.relative_to(directory).as_posix(): path.read_bytes() for path in directory.rglob("*") if path.is_file()
    }
