"""The roots in which recorded runs are made again: one of its own for each rerun, until that is finished."""

import dataclasses
from pathlib import Path

from paribus.checks.command import checked_run
from paribus.config.schema import RunConfig
from paribus.errors import ConfigurationError
from paribus.pipeline.graph import build_graph
from paribus.pipeline.output_root import OutputRoot
from paribus.pipeline.record.run_record import UNREADABLE, moved_config, read_run_record
from paribus.pipeline.record.run_state import is_done
from paribus.store.claim import is_held

RERUNS = "reruns"
"""Their directory in the output root of what was recorded."""


def made_again(original: RunConfig, root: Path) -> RunConfig:
    """A recorded run in another root, of which no tracker is told."""
    untracked = dataclasses.replace(original.tracking, kind="none")
    return dataclasses.replace(original, root=str(root), tracking=untracked, experiment=None)


def unfinished(original: RunConfig, run_id: str) -> RunConfig | None:
    """The last rerun of this run, devices and all, that was stopped or failed and is nobody's now; None without one."""
    begun = list((OutputRoot.of(original).path / RERUNS).glob(f"{run_id}-*"))
    for path in sorted(begun, key=lambda path: path.stat().st_mtime, reverse=True):
        again = made_again(original, path)
        if _is_left(again, run_id):
            return again
    return None


def _is_left(again: RunConfig, run_id: str) -> bool:
    root = OutputRoot.of(again)
    record = read_run_record(root.run(run_id))
    if record is None or record["status"] == UNREADABLE or is_held(root.run_claim(run_id), root.lease_seconds):
        return False
    try:
        same = checked_run(moved_config(record["config"], root.path) | {"sweep": None}) == again
    except ConfigurationError:
        return False  # of another version of paribus
    return same and not is_done(run_id, build_graph(again, root.cache), root, again.until)
