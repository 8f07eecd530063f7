"""The roots in which recorded runs are made again: one of its own for each rerun, until that is finished."""

import dataclasses
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from paribus.checks.command import checked_run
from paribus.config.schema import RunConfig
from paribus.pipeline.graph import build_graph
from paribus.pipeline.output_root import OutputRoot
from paribus.pipeline.record.run_record import UNREADABLE, moved_config, read_run_record
from paribus.pipeline.record.run_state import is_done
from paribus.store import atomic
from paribus.store.claim import is_held
from paribus.store.code import loaded_code
from paribus.store.json_file import read_object_if_any

RERUNS = "reruns"
"""Their directory in the output root of what was recorded."""


BEGUN = "rerun.json"
"""In the root of a rerun: when and by what code it was begun."""


def made_again(original: RunConfig, root: Path) -> RunConfig:
    """A recorded run in another root, of which no tracker is told."""
    untracked = dataclasses.replace(original.tracking, kind="none")
    return dataclasses.replace(original, root=str(root), tracking=untracked, experiment=None)


def begin(original: RunConfig, run_id: str) -> RunConfig:
    """The same run in an empty root, in which is told what begins it."""
    reruns = OutputRoot.of(original).path / RERUNS
    reruns.mkdir(exist_ok=True)
    root = Path(tempfile.mkdtemp(prefix=f"{run_id}-", dir=reruns))
    atomic.write_json(root / BEGUN, {"begun": time.time(), "code": loaded_code().digest})
    return made_again(original, root)


def unfinished(original: RunConfig, run_id: str) -> RunConfig | None:
    """The last rerun of this run that this code began, devices and all, that was stopped or failed and is nobody's now.

    None without one: what other code or packages made says nothing of this run made again here.
    """
    begun = [(read_object_if_any(path / BEGUN), path) for path in _roots(original, run_id)]
    of_this = [(told, path) for told, path in begun if told.get("code") == loaded_code().digest]
    for _, path in sorted(of_this, key=lambda each: float(each[0]["begun"]), reverse=True):
        again = made_again(original, path)
        if _is_left(again, run_id):
            return again
    return None


def _roots(original: RunConfig, run_id: str) -> Iterator[Path]:
    return (OutputRoot.of(original).path / RERUNS).glob(f"{run_id}-*")


def _is_left(again: RunConfig, run_id: str) -> bool:
    root = OutputRoot.of(again)
    record = read_run_record(root.run(run_id))
    if record is None or record["status"] == UNREADABLE or is_held(root.run_claim(run_id), root.lease_seconds):
        return False
    same = checked_run(moved_config(record["config"], root.path) | {"sweep": None}) == again
    return same and not is_done(run_id, build_graph(again, root.cache), root, again.until)
