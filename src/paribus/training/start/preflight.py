"""Everything about a start that can be refused before anything runs, from JSON files alone."""

from paribus.config.groups.start import CheckpointStart
from paribus.config.schema import RunConfig
from paribus.errors import DataError
from paribus.training.start.agreement import disagreements
from paribus.training.start.locate import checkpoint_directory


def problems(config: RunConfig) -> list[tuple[str, str]]:
    """(config path, what is wrong) of every disagreement; that there is no checkpoint, its fingerprint tells."""
    start = config.start
    if not isinstance(start, CheckpointStart):
        return []
    try:
        directory = checkpoint_directory(start)
    except DataError:
        return []
    try:
        return list(disagreements(config.model, directory, longer_context=start.longer_context))
    except DataError as error:
        return [("start", str(error))]
