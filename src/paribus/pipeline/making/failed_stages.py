"""The notes that failed stages leave in the output root, and what of that is tried again.

A command tries a stage once for all runs that share it: the note says in which command it failed and why. What may be
gone at the next attempt, a file server that does not answer say, is tried `retries` times before it is noted.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from paribus.errors import ParibusError, classify, is_full_disk
from paribus.pipeline.graph import Node
from paribus.pipeline.output_root import OutputRoot
from paribus.pipeline.record.failure import RETRIED
from paribus.store import files
from paribus.store.files import read_object_if_any


class RepeatedFailureError(ParibusError):
    """A stage is not tried, because it failed for an earlier run of the same command; `failure` is what it left."""

    def __init__(self, failure: Mapping[str, Any]) -> None:
        super().__init__(failure["message"])
        self.failure = failure


def refuse_repetition(node: Node, root: OutputRoot) -> None:
    """RepeatedFailureError for a stage that failed in this very command: it would fail again for every run."""
    failure = failed_before(node, root)
    if failure is not None:
        raise RepeatedFailureError(failure)


def failed_before(node: Node, root: OutputRoot) -> dict[str, Any] | None:
    """The failure of a stage that this command does not try again."""
    path = root.failure(node)
    if not path.is_file() or node.config.sweep is None:
        return None
    failure = {"class": "interrupted", "message": "", **read_object_if_any(path)}
    ended = failure.get("invocation") == node.config.sweep.invocation and failure["class"] != "interrupted"
    return failure if ended else None


def may_be_gone(error: BaseException) -> bool:
    """Whether another attempt may do better. A full disk stays full until somebody makes room."""
    return classify(error)["class"] in RETRIED and not is_full_disk(error)


def note_failure(node: Node, root: OutputRoot, error: BaseException) -> None:
    """Leave word of a failed stage for the other runs of its command."""
    invocation = node.config.sweep.invocation if node.config.sweep else None
    path = root.failure(node)
    with suppress(OSError):  # the failure itself may be a full disk; it is told all the same
        path.parent.mkdir(parents=True, exist_ok=True)
        files.write_json(path, {**classify(error), "stage": node.name, "invocation": invocation})
