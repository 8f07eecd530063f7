"""The roots in which recorded runs are made again: one of its own for each rerun, until that is finished."""

import dataclasses
import tempfile
from functools import partial
from pathlib import Path

from paribus.checks import checked_run
from paribus.config.schema import RunConfig
from paribus.pipeline.graph import build_graph
from paribus.pipeline.recorder import is_done
from paribus.pipeline.records import UNREADABLE, moved_config, read_run_record
from paribus.pipeline.root import OutputRoot
from paribus.store import files
from paribus.store.claims import is_held
from paribus.store.files import read_object_if_any
from paribus.store.provenance import loaded_code

CODE = "rerun.json"
"""In the root of a rerun: by what code it was begun."""


def made_again(original: RunConfig, root: Path) -> RunConfig:
    """A recorded run in another root, of which no tracker is told."""
    untracked = dataclasses.replace(original.tracking, kind="none")
    return dataclasses.replace(original, root=str(root), tracking=untracked, experiment=None)


def in_empty_root(original: RunConfig, run_id: str) -> RunConfig:
    """The same run in a root that was made for it."""
    reruns = OutputRoot.of(original).reruns
    reruns.mkdir(exist_ok=True)
    return made_again(original, Path(tempfile.mkdtemp(prefix=f"{run_id}-", dir=reruns)))


def tell_code(again: RunConfig) -> None:
    """Write into its root which code begins it."""
    files.write_json(Path(again.root) / CODE, {"code": loaded_code().digest})


def unfinished(original: RunConfig, run_id: str) -> RunConfig | None:
    """The last rerun of this run that this code began, devices and all, that was stopped or failed and is nobody's now.

    None without one: what other code or packages made says nothing of this run made again here.
    """
    begun = OutputRoot.of(original).reruns.glob(f"{run_id}-*")
    of_this_code = [path for path in begun if read_object_if_any(path / CODE).get("code") == loaded_code().digest]
    left = [again for again in (made_again(original, path) for path in of_this_code) if _is_left(again, run_id)]
    return max(left, key=partial(_started, run_id), default=None)


def _started(run_id: str, again: RunConfig) -> float:
    record = read_run_record(OutputRoot.of(again).run(run_id))
    return float(record["started"]) if record else 0.0


def _is_left(again: RunConfig, run_id: str) -> bool:
    root = OutputRoot.of(again)
    record = read_run_record(root.run(run_id))
    if record is None or record["status"] == UNREADABLE or is_held(root.run_claim(run_id), root.lease_seconds):
        return False
    same = checked_run(moved_config(record["config"], root.path) | {"sweep": None}) == again
    return same and not is_done(run_id, build_graph(again, root.cache), root, again.until)
