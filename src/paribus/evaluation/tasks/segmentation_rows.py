"""Segmented corpora as tasks of a run: precision, recall and F1 of its tokenizer's tokens as words.

None of the three is a mean over sentences, as their counts are summed before dividing. A sentence has the linearised
value (delta method) of each: their mean is the ratio itself, their spread gives its standard error and paired tests.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from paribus.evaluation.measures.segmentation import SegmentedWords, Segmenter, sentence_counts
from paribus.evaluation.results import ResultRow
from paribus.evaluation.tasks.passages import text_digest

WORD_PRECISION, WORD_RECALL, WORD_F1 = "word_precision", "word_recall", "word_f1"


def segmentation_rows(
    task: str, tokenizer: Segmenter, gold: Sequence[Sequence[str]], checkpoint: int
) -> list[ResultRow]:
    """A row a measure and sentence; the same at every checkpoint, as no model takes part.

    DataError where the tokens do not spell a sentence.
    """
    values = word_values(sentence_counts(tokenizer, gold))
    digests = [text_digest(" ".join(words)) for words in gold]
    return [
        ResultRow(checkpoint, task, 0, f"test/{number}", digest, metric, float(value))
        for metric, column in values.items()
        for number, (digest, value) in enumerate(zip(digests, column, strict=True), start=1)
    ]


def word_values(counts: Sequence[SegmentedWords]) -> dict[str, NDArray[np.float64]]:
    """(sentences,) linearised values of each measure, in [0, 1] as their mean is, though no single one need be."""
    correct, predicted, gold = np.array(counts, np.float64).T
    return {
        WORD_PRECISION: _linearised(correct, predicted),
        WORD_RECALL: _linearised(correct, gold),
        WORD_F1: _linearised(2 * correct, predicted + gold),
    }


def _linearised(numerators: NDArray[np.float64], denominators: NDArray[np.float64]) -> NDArray[np.float64]:
    """(sentences,) R + (n - R d) / mean(d) with R = sum(n) / sum(d)."""
    ratio = numerators.sum() / denominators.sum()
    values: NDArray[np.float64] = ratio + (numerators - ratio * denominators) / denominators.mean()
    return values
