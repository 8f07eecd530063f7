"""Everything about a start that can be refused before training: of JSON files before anything runs, then of tokens."""

from pathlib import Path

from paribus.config.groups.model import CheckpointStart
from paribus.config.schema import RunConfig
from paribus.errors import DataError
from paribus.training.start.agreement import disagreements
from paribus.training.start.locate import checkpoint_directory
from paribus.training.start.resumed import state_problems


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
        found = list(disagreements(config.model, directory, longer_context=start.longer_context))
        told = {path for path, _ in found}
        return found + [problem for problem in state_problems(config) if problem[0] not in told]
    except DataError as error:
        return [("start", str(error))]


def token_problems(config: RunConfig, tokenizer: Path) -> list[tuple[str, str]]:
    """(config path, what is wrong) of the run's vocabulary, once it is there, beside that of its checkpoint.

    Both are opened, so that a corpus is not encoded with tokens that its training will refuse. A checkpoint that is not
    there is told by its fingerprint.
    """
    start = config.start
    if not isinstance(start, CheckpointStart):
        return []
    from paribus.tokenization.existing import open_existing
    from paribus.training.start.vocabulary import token_problem

    try:
        directory = checkpoint_directory(start)
        problem = token_problem(open_existing(tokenizer), open_existing(directory), directory, start.vocabulary)
    except DataError:
        return []
    return [("start.vocabulary", problem)] if problem else []
