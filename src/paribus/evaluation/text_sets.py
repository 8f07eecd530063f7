"""Bits of the sets of texts that a run names (`evaluation.texts`): of each document alone, by the rule of held-out
text, and of all end to end in random order.

A tokenizer may not give back a text; of what it loses its model need not predict anything.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from paribus.config.groups.evaluation import EvaluationConfig
from paribus.corpus.artifact import CorpusArtifact, read_columns
from paribus.evaluation.data_files import HELDOUT_CLEAN, HELDOUT_CONCATENATED, concatenated_name
from paribus.evaluation.heldout import read_heldout
from paribus.evaluation.tasks import ORDER, TEXTS
from paribus.evaluation.text import DocumentBits, EncodedTexts, encode_documents, encode_stream, read_order
from paribus.stage import JSON
from paribus.tokenization import Tokenizer

if TYPE_CHECKING:
    from paribus.evaluation.scoring import Scorer


BITS_PER_BYTE = "eval/{}/bits_per_byte"
"""The metric of a set."""
PERPLEXITY = "eval/{}/perplexity"
"""The metric that papers give of a named set: 2 to its bits a token, which only runs with one tokenizer share."""


@dataclass
class TextSet:
    """One set: its documents as what a model scores, and what the checkpoints have given so far."""

    name: str
    documents: list[str]
    """Their ids."""
    encoded: EncodedTexts | None
    """None where nothing is left to score."""
    scored: dict[int, DocumentBits] = field(default_factory=dict)
    """Bits of the documents by step."""

    def score(self, step: int, scorer: "Scorer", progress: Callable[[int, int], None]) -> dict[str, float]:
        """Metrics under the checkpoint of a step; `progress` is told the bytes finished and their number."""
        if step not in self.scored and self.encoded is not None:
            self.scored[step] = self.encoded.bits(scorer, progress)
        return self.metrics(step)

    def metrics(self, step: int) -> dict[str, float]:
        """Scores of a checkpoint, by the names of the run's metrics; held-out documents have no perplexity."""
        bits = self.scored[step]
        metrics = {BITS_PER_BYTE.format(self.name): bits.bits_per_byte}
        heldout = self.name in (HELDOUT_CLEAN, HELDOUT_CONCATENATED)
        return metrics if heldout else metrics | {PERPLEXITY.format(self.name): bits.perplexity}

    def means(self) -> dict[str, float]:
        """Scores averaged over checkpoints."""
        every = [self.metrics(step) for step in self.scored]
        return {name: sum(measured[name] for measured in every) / len(every) for name in every[0]}

    def about(self) -> JSON:
        """The set's part of `statistics.json`."""
        bits = next(iter(self.scored.values()))
        return {
            "documents": len(self.documents), "bytes": int(bits.bytes.sum()), "tokens": int(bits.tokens.sum())
        }  # fmt: skip


def load_text_sets(tasks: Path, config: EvaluationConfig, tokenizer: Tokenizer, context_length: int) -> list[TextSet]:
    """The sets of the artefact `tasks`, encoded once for all checkpoints; with `evaluation.concatenated` each twice."""
    sets = []
    for name in config.texts:
        ids, texts = (list(column) for column in zip(*read_heldout(tasks / f"{name}{TEXTS}"), strict=True))
        sets.append(TextSet(name, ids, encode_documents(tokenizer, texts, context_length)))
        if config.concatenated:
            order = read_order(tasks / f"{name}{ORDER}")
            sets.append(TextSet(concatenated_name(name), ids, encode_stream(tokenizer, texts, order, context_length)))
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
    bits = {
        step: DocumentBits(result.bits[clean], result.bytes[clean], result.tokens[clean])
        for step, result in scored.items()
    }
    return [TextSet(HELDOUT_CLEAN, [documents[place] for place in clean], None, bits)]


def changed_texts(tokenizer: Tokenizer, texts: Iterable[str]) -> int:
    """How many texts are others once they were encoded and decoded; 0 without a look where nothing can be lost."""
    if not tokenizer.settings.lossy:
        return 0
    return sum(tokenizer.decode(tokenizer.encode(text)) != text for text in texts)
