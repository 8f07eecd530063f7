"""Graph of the artefacts that a configuration needs, with their keys, before anything is computed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from paribus.config.groups.evaluation import NoFinetuning
from paribus.config.identity import digest, to_plain
from paribus.config.schema import RunConfig
from paribus.corpus.stage import CORPUS
from paribus.errors import ParibusError
from paribus.evaluation import stage as evaluation
from paribus.ordering import stage as ordering
from paribus.reporting.measures import ITEMS_TO_JUDGE
from paribus.stage import Stage
from paribus.store.artifacts import Artifact, Store
from paribus.store.files import FileDigests
from paribus.tokenization.stage import TOKENS, VOCABULARY
from paribus.training.stage import FIRST_TRAINING, TRAINING

Place = tuple[str, str]
"""Place of an artefact in the store: the name of the stage under which it is stored, and its key."""
# The closed list of stages, in the order of tables. Adding one touches its room, a line here, and the packages that
# decide its numbers (`store/packages.py`). A run makes the inputs of a stage in the order in which the stage declares
# them, so what may fail cheaply is declared before what is dear: the tasks before the training.
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
        evaluation.FINETUNING_DATA,
        evaluation.FINETUNING,
    )
}
EVALUATION, FINETUNING = evaluation.EVALUATION.name, evaluation.FINETUNING.name


@dataclass(frozen=True)
class Node:
    """One artefact of a run."""

    stage: Stage
    key: str
    identity: Mapping[str, Any]
    inputs: Mapping[str, "Node"]
    config: RunConfig
    problem: str | None = None
    """Files outside the configuration that are not there, so that its key is provisional."""

    @property
    def name(self) -> str:
        """Name of the stage, of which a run has each once."""
        return self.stage.name

    @property
    def place(self) -> Place:
        return self.stage.artefact, self.key


def group_of_files(stage: Stage, config: RunConfig) -> str:
    """Name of the configuration group whose files a stage takes the fingerprint of; its own where it is of no group."""
    part = stage.outside.part(config) if stage.outside else None
    names = [field.name for field in fields(config) if getattr(config, field.name) is part]
    return names[0] if part is not None and names else stage.name


def build_graph(
    config: RunConfig,
    cache: Path,
    *,
    tolerate_missing: bool = False,
    targets: Sequence[str] | None = None,
    files_before: Mapping[str, Any] | None = None,
) -> dict[str, Node]:
    """Stage name -> node of what `targets` need, inputs before what needs them; the last one is the last target.

    Without `targets` they are those of a run. `files_before` are fingerprints by group, of a run that is on record:
    they replace those of the present files.

    Raises DataError or ConfigurationError when source files are missing, unless `tolerate_missing`, which a plan uses.
    """
    nodes: dict[str, Node] = {}

    def fingerprint(stage: Stage, stage_config: RunConfig) -> tuple[Mapping[str, Any], str | None]:
        """Return the fingerprint of the files that a stage reads, and the reason where it is provisional."""
        if files_before and (recorded := files_before.get(group_of_files(stage, stage_config))):
            return recorded, None
        try:
            return stage.take_fingerprint(stage_config, FileDigests(cache)), None
        except ParibusError as error:
            if not tolerate_missing:
                raise
            return {"missing": to_plain(stage.outside.part(stage_config)) if stage.outside else {}}, str(error)

    def visit(name: str) -> Node:
        if name not in nodes:
            stage = STAGES[name]
            stage_config = stage.config(config)
            inputs = {other: visit(other) for other in stage.inputs(stage_config)}
            files, problem = fingerprint(stage, stage_config)
            identity = {
                "stage": stage.artefact,
                "code_version": stage.code_version,
                "identity": stage.identity(stage_config) | ({"fingerprint": files} if files else {}),
                "inputs": {other: node.key for other, node in inputs.items()},
            }
            problem = problem or next((node.problem for node in inputs.values() if node.problem), None)
            nodes[name] = Node(stage, digest(identity), identity, inputs, stage_config, problem)
        return nodes[name]

    # The data of fine-tuning come first, so that they fail before anything is trained.
    tuned = ("finetuning_data", EVALUATION, FINETUNING)
    for target in targets or ((EVALUATION,) if isinstance(config.finetuning, NoFinetuning) else tuned):
        visit(target)
    return nodes


def needed_for(nodes: Mapping[str, Node], last: str | None) -> dict[str, Node]:
    """Stage `last` of a run and those that it needs, inputs before what needs them; all for None."""
    if last is None:
        return dict(nodes)
    needed = {last}
    for name, node in reversed(list(nodes.items())):
        needed |= node.inputs.keys() if name in needed else set()
    return {name: node for name, node in nodes.items() if name in needed}


def to_make(nodes: Mapping[str, Node], store: Store) -> set[str]:
    """Names of the nodes that are still to be made: those without an artefact, and those whose artefact was pruned of
    what one of these reads.
    """
    missing: set[str] = set()
    read: set[str] = set()
    for name, node in reversed(list(nodes.items())):
        artifact = store.find(*node.place)
        if artifact is None or (name in read and not artifact.whole):
            missing.add(name)
            read |= node.inputs.keys()
    return missing


def away(nodes: Mapping[str, Node]) -> str | None:
    """Reason why the keys of a run are provisional, so that nobody knows what was made; None where they are final."""
    problem = next((node.problem for node in nodes.values() if node.problem), None)
    return None if problem is None else f"whether it has run is not known without its files: {problem}"


def place_of(name: str, key: str) -> Place:
    """Place of the artefact of a run's stage; names that this code does not know are taken as they are."""
    return artefact_of(name), key


def artefact_of(name: str) -> str:
    """Name of the stage under which the artefact of a run's stage is stored."""
    return STAGES[name].artefact if name in STAGES else name


def named(stage: str) -> str:
    """The name of a stage, padded to the longest one, so that the texts after names align."""
    return stage.ljust(max(map(len, STAGES)))


def facts(stage: Stage, artifact: Artifact) -> str:
    """`284 documents, 100.1 KiB · 76 held out`; empty where the stage says nothing of its result."""
    try:
        return " · ".join(stage.facts(artifact.record()["result"]))
    except (KeyError, TypeError, ValueError):  # the artefact is published, so a line about it fails no run
        return ""


def few_documents(config: RunConfig, corpus: Artifact | None) -> str | None:
    """Message that too few held-out documents are scored for a table to judge by, with the remedy; None for enough."""
    requested = config.evaluation.heldout_documents
    scored = min(requested, corpus.record()["result"]["heldout"]["documents"]) if corpus else requested
    if scored >= ITEMS_TO_JUDGE:
        return None
    free = f"evaluation.heldout_documents={ITEMS_TO_JUDGE}, which trains nothing anew"
    remedy = free if requested < ITEMS_TO_JUDGE else "corpus.heldout or a larger corpus, which train all anew"
    return (
        f"the table says which row is better where a score has {ITEMS_TO_JUDGE} items or documents, and these runs "
        f"score {scored} held-out documents (more with {remedy})"
    )
