"""Results of a stage for the line that says it is done, and the warning that a table cannot judge by them."""

from paribus.config.schema import RunConfig
from paribus.reporting.measures import ITEMS_TO_JUDGE
from paribus.stage import Stage
from paribus.store.artifacts import Artifact


def facts(stage: Stage, artifact: Artifact) -> str:
    """`284 documents, 100.1 KiB · 76 held out`; empty where the stage says nothing of its result."""
    try:
        return " · ".join(stage.facts(artifact.record()["result"]))
    except (KeyError, TypeError, ValueError):  # the artefact is published, so a line about it fails no run
        return ""


def few_documents(config: RunConfig, corpus: Artifact | None) -> str | None:
    """Message that too few held-out documents are scored for a table to judge by, with the remedy that costs least.

    None if there are enough, by the configuration alone without a corpus.
    """
    asked = config.evaluation.heldout_documents
    scored = min(asked, corpus.record()["result"]["heldout"]["documents"]) if corpus else asked
    if scored >= ITEMS_TO_JUDGE:
        return None
    free = f"evaluation.heldout_documents={ITEMS_TO_JUDGE}, which trains nothing anew"
    remedy = free if asked < ITEMS_TO_JUDGE else "corpus.heldout or a larger corpus, which train all anew"
    return (
        f"the table says which row is better where a score has {ITEMS_TO_JUDGE} items or documents, and these runs "
        f"score {scored} held-out documents (more with {remedy})"
    )
