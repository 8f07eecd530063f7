"""With what the attempts were made whose work a stage goes on with: a training may last longer than an installation."""

from collections.abc import Mapping
from typing import Any

from paribus.pipeline.graph import Node
from paribus.pipeline.record.made_with import made_with
from paribus.store import files
from paribus.store.artifacts import Store
from paribus.store.files import read_object_if_any


def note_attempt(node: Node, store: Store, provenance: Mapping[str, Any]) -> list[dict[str, str]]:
    """Note what the attempt that begins is made with; what others were made with whose work it goes on with.

    Only who holds the claim of the artefact may call it.
    """
    noted, here = store.attempts(*node.place), made_with(provenance)
    goes_on = any(store.work(*node.place).iterdir())
    before = read_object_if_any(noted).get("attempts", []) if goes_on else []
    files.write_json(noted, {"attempts": [*before, *([] if here in before else [here])]})
    return [attempt for attempt in before if attempt != here]
