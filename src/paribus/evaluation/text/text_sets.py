"""Bits per byte of the sets of texts that a run names (`evaluation.texts`), by the rule of held-out text."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from paribus.corpus.artifact import CorpusArtifact, read_columns
from paribus.evaluation.prompts.pairs import PromptEncoder
from paribus.evaluation.results import write_texts_table
from paribus.evaluation.suites.texts import HELDOUT_CLEAN
from paribus.evaluation.tasks.heldout import read_heldout
from paribus.evaluation.tasks.promptless import texts_path
from paribus.evaluation.text.bits_per_byte import DocumentBits, encode_documents
from paribus.stage.context import JSON

if TYPE_CHECKING:
    from paribus.evaluation.models.scoring import Scorer

BITS_PER_BYTE = "eval/{}/bits_per_byte"
"""The metric of a set."""


class Encoded(Protocol):
    """Documents as what a model scores."""

    def bits(self, scorer: "Scorer", progress: Callable[[int, int], None]) -> DocumentBits:
        """Bits and bytes of each document."""


@dataclass
class TextSet:
    """One set: its documents as what a model scores, and what the checkpoints have given so far."""

    name: str
    documents: list[str]
    """Their ids."""
    encoded: Encoded | None
    """None where nothing is left to score."""
    scored: dict[int, DocumentBits] = field(default_factory=dict)
    """By step."""

    def score(self, step: int, scorer: "Scorer", progress: Callable[[int, int], None]) -> float:
        """Bits per byte under the checkpoint of a step; `progress` is told the bytes finished and their number."""
        if step not in self.scored and self.encoded is not None:
            self.scored[step] = self.encoded.bits(scorer, progress)
        return self.scored[step].bits_per_byte

    @property
    def metric(self) -> str:
        """Its name among the metrics of the run."""
        return BITS_PER_BYTE.format(self.name)

    @property
    def mean(self) -> float:
        """Bits per byte, averaged over checkpoints."""
        return sum(found.bits_per_byte for found in self.scored.values()) / len(self.scored)

    def about(self) -> JSON:
        """What `statistics.json` says of it."""
        sizes = next(iter(self.scored.values())).bytes
        return {"documents": len(self.documents), "bytes": int(sizes.sum())}


def load_text_sets(tasks: Path, names: Sequence[str], tokenizer: PromptEncoder, context_length: int) -> list[TextSet]:
    """The sets of the artefact `tasks`, encoded once for all checkpoints."""
    sets = []
    for name in names:
        documents = read_heldout(texts_path(tasks, name))
        encoded = encode_documents(tokenizer, [text for _, text in documents], context_length)
        sets.append(TextSet(name, [document for document, _ in documents], encoded))
    return sets


def clean_set(
    corpus: CorpusArtifact, documents: Sequence[str], scored: Mapping[int, DocumentBits], most: float
) -> list[TextSet]:
    """The set of held-out documents (ids) whose overlap with the training text is `most` at most, scored as they are.

    None where that is all of them, or none of them.
    """
    shards = corpus.shards("heldout")
    overlaps = {id: share for shard in shards for id, share in read_columns(shard, ("id", "overlap"))}
    clean = [place for place, id in enumerate(documents) if overlaps[id] is not None and overlaps[id] <= most]
    if not 0 < len(clean) < len(documents):
        return []
    bits = {step: DocumentBits(found.bits[clean], found.bytes[clean]) for step, found in scored.items()}
    return [TextSet(HELDOUT_CLEAN, [documents[place] for place in clean], None, bits)]


def write_text_sets(path: Path, sets: Sequence[TextSet]) -> None:
    """`texts.parquet`."""
    write_texts_table(path, {found.name: (found.documents, found.scored) for found in sets})
