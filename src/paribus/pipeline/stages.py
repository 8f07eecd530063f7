"""The closed list of stages. Adding one touches its room, a line here, and the packages that decide its numbers.

The latter are in `store/packages.py`, which `reporting` reads without knowing stages; a test tells when they are not.

The order of this list decides nothing but that of tables. A run makes the inputs of a stage in the order in which the
stage declares them, so what may fail cheaply is declared before what is dear: the tasks before the training. No run
needs `context_statistics` or `token_statistics`; `paribus orders` and `paribus tokens` do. Only runs with a
`finetuning` have its stages.
"""

from paribus.config.groups.finetuning import NoFinetuning
from paribus.config.schema import RunConfig
from paribus.corpus.stage import CORPUS
from paribus.evaluation import stage as evaluation
from paribus.finetuning import stage as finetuning
from paribus.ordering import stage as ordering
from paribus.stage import Stage
from paribus.tokenization.stage import TOKENS, VOCABULARY
from paribus.training.stage import FIRST_TRAINING, TRAINING

STAGES: dict[str, Stage] = {
    stage.name: stage
    for stage in (
        CORPUS,
        VOCABULARY,
        TOKENS,
        ordering.EMBEDDINGS,
        ordering.NEIGHBOURS,
        ordering.LEXICAL_NEIGHBOURS,
        ordering.DUPLICATES,
        ordering.ORDER,
        ordering.CONTEXTS,
        ordering.CONTEXT_STATISTICS,
        FIRST_TRAINING,
        TRAINING,
        evaluation.TASKS,
        evaluation.PROMPTS,
        evaluation.EVALUATION,
        evaluation.TOKEN_STATISTICS,
        finetuning.FINETUNING_DATA,
        finetuning.FINETUNING,
    )
}
Place = tuple[str, str]
"""Where an artefact is in the store: the name of the stage that it is kept by, and its key."""
EVALUATION, FINETUNING = evaluation.EVALUATION.name, finetuning.FINETUNING.name


def run_targets(config: RunConfig) -> tuple[str, ...]:
    """The stages that a run is made for, and before them what should fail before anything is trained."""
    return (EVALUATION,) if isinstance(config.finetuning, NoFinetuning) else ("finetuning_data", EVALUATION, FINETUNING)


def place_of(name: str, key: str) -> Place:
    """Where the artefact of a run's stage is; names that this code does not know are taken as they are."""
    return artefact_of(name), key


def artefact_of(name: str) -> str:
    """The stage that the artefact of a run's stage is kept by."""
    return STAGES[name].artefact if name in STAGES else name


def named(stage: str) -> str:
    """The name of a stage, as wide as the longest, so that what is said after names stands below each other."""
    return stage.ljust(max(map(len, STAGES)))
