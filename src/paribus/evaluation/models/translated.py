"""Translations of an encoder-decoder and their BLEU. Imports torch: import this module late."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from paribus.config.groups.evaluation import EvaluationConfig
from paribus.evaluation.measures.bleu import bleu
from paribus.evaluation.models.translation import Translator
from paribus.evaluation.results import ResultRow
from paribus.evaluation.suites.translations import TRANSLATIONS
from paribus.evaluation.tasks.heldout_pairs import TextPair, read_pairs
from paribus.evaluation.tasks.passages import text_digest
from paribus.evaluation.tasks.promptless import pairs_path

TRANSLATION, BLEU = "translation", "bleu"
"""The task of held-out pairs, and the measure of translations, in [0, 1] as all others."""


@dataclass
class Translated:
    """What is translated, by task, and what the checkpoints have given so far."""

    sets: Mapping[str, Sequence[TextPair]]
    texts: dict[tuple[int, str], dict[str, str]] = field(default_factory=dict)
    """Step and task -> the translation of each pair, by its id."""
    signature: str | None = None
    """sacrebleu's."""

    def add(self, step: int, translator: Translator, progress: Callable[[int, int], None]) -> list[ResultRow]:
        """Translate all sets with the checkpoint of a step; BLEU of each pair, linearised."""
        rows: list[ResultRow] = []
        for task, pairs in self.sets.items():
            texts = translator.translate([pair.source for pair in pairs], progress)
            self.texts[step, task] = {pair.id: text for pair, text in zip(pairs, texts, strict=True)}
            found = bleu(texts, [pair.target for pair in pairs])
            self.signature = found.signature
            rows += [
                ResultRow(
                    step, task, 0, pair.id, text_digest(f"{pair.source}\0{pair.target}"), BLEU, float(value) / 100
                )
                for pair, value in zip(pairs, found.sentences, strict=True)
            ]
        return rows


def translated_sets(config: EvaluationConfig, tasks: Path, heldout: Sequence[TextPair]) -> Translated:
    """The first held-out pairs, and the test sets of the artefact `tasks`."""
    first = heldout[: config.translations]
    named = [name for name in config.tasks if name in TRANSLATIONS]
    sets = {name: read_pairs(pairs_path(tasks, name)) for name in named}
    return Translated(({TRANSLATION: first} if first else {}) | sets)
