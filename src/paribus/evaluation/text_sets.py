"""Bits per byte of the sets of texts that a run names (`evaluation.texts`), by the rule of held-out text."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from paribus.evaluation.bits_per_byte import DocumentBits, Documents, encode_documents
from paribus.evaluation.heldout import read_heldout
from paribus.evaluation.pairs import Encoder
from paribus.evaluation.promptless import texts_path
from paribus.evaluation.results import write_texts_table
from paribus.evaluation.scoring import Scorer
from paribus.pipeline.context import JSON

BITS_PER_BYTE = "eval/{}/bits_per_byte"
"""The metric of a set."""


@dataclass
class TextSet:
    """One set: its documents as what a model scores, and what the checkpoints have given so far."""

    name: str
    documents: list[str]
    """Their ids."""
    encoded: Documents
    scored: dict[int, DocumentBits] = field(default_factory=dict)
    """By step."""

    def score(self, step: int, scorer: Scorer, progress: Callable[[int, int], None]) -> float:
        """Bits per byte under the checkpoint of a step; `progress` is told the bytes finished and their number."""
        found = self.scored[step] = self.encoded.bits(scorer, progress)
        return found.bits_per_byte

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
        return {"documents": len(self.documents), "bytes": int(self.encoded.sizes.sum())}


def load_text_sets(tasks: Path, names: Sequence[str], tokenizer: Encoder, context_length: int) -> list[TextSet]:
    """The sets of the artefact `tasks`, encoded once for all checkpoints."""
    sets = []
    for name in names:
        documents = read_heldout(texts_path(tasks, name))
        encoded = encode_documents(tokenizer, [text for _, text in documents], context_length)
        sets.append(TextSet(name, [document for document, _ in documents], encoded))
    return sets


def write_text_sets(path: Path, sets: Sequence[TextSet]) -> None:
    """`texts.parquet`."""
    write_texts_table(path, {found.name: (found.documents, found.scored) for found in sets})
