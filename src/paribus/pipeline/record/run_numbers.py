"""What a finished run puts into tables, from the records of its artefacts."""

from collections.abc import Mapping
from typing import Any

from paribus.pipeline.stages import FINETUNED, SCORES
from paribus.store.artifact import Store


def run_numbers(stages: Mapping[str, Mapping[str, Any]], store: Store) -> tuple[dict[str, float], int]:
    """Numbers of the run by name, and the training step they stand at; nothing for a run without scores.

    `stages` has the key of each artefact. Raises DataError for torn scores.
    """
    from paribus.reporting.table import numbers

    artifacts = {name: store.find(name, stage["key"]) for name, stage in stages.items()}
    scores, finetuned, trained = (artifacts.get(name) for name in (SCORES, FINETUNED, "checkpoints"))
    if scores is None or trained is None:
        return {}, 0
    training = trained.record()["result"]
    found = numbers.run_numbers(scores.path, finetuned.path if finetuned else None, training)
    return found, int(training.get("steps", 0))
