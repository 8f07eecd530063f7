"""End the event log of a run whose process is gone, so that no tracker shows it as running for ever."""

from pathlib import Path

from paribus.store.claims import acquire, run_claim
from paribus.store.files import RUN_RECORD, read_object_if_any
from paribus.tracking.events import FAILURE_TAG, FILE_NAME, EventLog, end_stopped

LEASE_SECONDS = 30.0
"""For how long this process may be silent while it closes a log; how long a run may be, its own claim says."""
_REASON = "infrastructure: the process of this run ended without a word, killed from outside or with its node"


def close_abandoned(run_directory: Path, root: Path) -> bool:
    """End the log of a run which has no end and which nobody has in hand; whether that was so.

    The process of a run holds a claim on it, below the output root `root`, for as long as it lives. The run has failed,
    unless its record says that it was done by then, or stopped after the stage that was asked for.
    """
    if run_directory.parent.name != "runs" or not (run_directory / FILE_NAME).is_file():
        return False
    held = acquire(run_claim(root, run_directory.name), LEASE_SECONDS)
    if held is None:
        return False
    with held, EventLog(run_directory / FILE_NAME) as events:
        if not events.is_open:
            return False
        record = read_object_if_any(run_directory / RUN_RECORD)
        if record.get("status") == "done":
            events.untag(FAILURE_TAG)
            events.end("FINISHED")
        elif record.get("status") == "stopped":
            end_stopped(events, str(record.get("until")))
        else:
            events.tag(FAILURE_TAG, _REASON)
            events.end("FAILED")
    return True
