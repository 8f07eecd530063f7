"""Translations of an encoder-decoder and their BLEU. Imports torch: import this module late."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from paribus.config.groups.evaluation import EvaluationConfig
from paribus.evaluation.measures.bleu import Bleu, bleu, tokenized_bleu
from paribus.evaluation.models.translation import Translator
from paribus.evaluation.results import ResultRow
from paribus.evaluation.suites.translations import TRANSLATION, TRANSLATIONS
from paribus.evaluation.tasks.heldout_pairs import TextPair, read_pairs
from paribus.evaluation.tasks.passages import text_digest
from paribus.evaluation.tasks.promptless import pairs_path

BLEU, TOKENIZED_BLEU = "bleu", "tokenized_bleu"
"""The measures of translations, in [0, 1] as all others."""


@dataclass
class Translated:
    """What is translated, by task, and what the checkpoints have given so far."""

    sets: Mapping[str, Sequence[TextPair]]
    texts: dict[tuple[int, str], dict[str, str]] = field(default_factory=dict)
    """Step and task -> the translation of each pair, by its id."""
    signatures: dict[str, str | None] = field(default_factory=lambda: {BLEU: None, TOKENIZED_BLEU: None})
    """Measure -> how it was computed, in sacrebleu's form; None for one that no set has."""

    def add(self, step: int, translator: Translator, progress: Callable[[int, int], None]) -> list[ResultRow]:
        """Translate all sets with the checkpoint of a step; measures of each pair, linearised."""
        rows: list[ResultRow] = []
        for task, pairs in self.sets.items():
            texts = translator.translate([pair.source for pair in pairs], progress)
            self.texts[step, task] = {pair.id: text for pair, text in zip(pairs, texts, strict=True)}
            for name, found in _measures(task, texts, [pair.target for pair in pairs]).items():
                self.signatures[name] = found.signature
                rows += _rows(step, task, pairs, name, found)
        return rows


def _measures(task: str, translations: Sequence[str], references: Sequence[str]) -> dict[str, Bleu]:
    """BLEU, and tokenized BLEU of test sets, whose language is known by their names."""
    measured = {BLEU: bleu(translations, references)}
    if task in TRANSLATIONS:
        measured[TOKENIZED_BLEU] = tokenized_bleu(translations, references, TRANSLATIONS[task].target)
    return measured


def _rows(step: int, task: str, pairs: Sequence[TextPair], measure: str, found: Bleu) -> list[ResultRow]:
    digests = [text_digest(f"{pair.source}\0{pair.target}") for pair in pairs]
    return [
        ResultRow(step, task, 0, pair.id, digest, measure, float(value) / 100)
        for pair, digest, value in zip(pairs, digests, found.sentences, strict=True)
    ]


def translated_sets(config: EvaluationConfig, tasks: Path, heldout: Sequence[TextPair]) -> Translated:
    """The first held-out pairs, and the test sets of the artefact `tasks`."""
    first = heldout[: config.translations]
    named = [name for name in config.tasks if name in TRANSLATIONS]
    sets = {name: read_pairs(pairs_path(tasks, name)) for name in named}
    return Translated(({TRANSLATION: first} if first else {}) | sets)
