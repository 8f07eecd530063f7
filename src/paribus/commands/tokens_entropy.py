"""The action `paribus tokens entropy`: along lines of text, or of candidate spans.

Of `pretokenizer=predictive_entropy` it shows the entropy of a model along lines and where they are cut, of
`pretokenizer=spans` mutual information beside branching entropy.
"""

from dataclasses import asdict
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from paribus.commands.tokens_encode import BAR, token_text
from paribus.config.groups.tokenization import (
    BytesTokenizer,
    ExistingTokenizer,
    PredictiveEntropyPretokenizer,
    SpansPretokenizer,
)
from paribus.config.schema import RunConfig
from paribus.errors import ConfigurationError, DataError
from paribus.pipeline.root import TOKENS, OutputRoot
from paribus.pipeline.run import check, make, note_made_of
from paribus.reporting.data_reports import write_candidate_report, write_entropy_report
from paribus.reporting.figures_data import EntropyLine, pieces


def show_entropy(text: str, config: RunConfig, pretokenizer: PredictiveEntropyPretokenizer, console: Console) -> int:
    """Show where each line of `text` is cut, and write its entropies; ConfigurationError for no line."""
    lines = [line for line in text.splitlines() if line]
    if not lines:
        raise ConfigurationError("give --text TEXT, of which each line is cut by itself")
    from transformers.utils.logging import disable_progress_bar

    from paribus.tokenization.build import predictive_entropy

    disable_progress_bar()
    cutter = predictive_entropy(pretokenizer)
    directory = OutputRoot.of(config).data_report(TOKENS, ["entropy", cutter.digest, cutter.threshold, lines])
    cut = [
        EntropyLine(line, entropies.tolist(), cutter.boundaries(entropies))
        for line, entropies in zip(lines, cutter.entropies(lines), strict=True)
    ]
    note_made_of(directory, ())
    write_entropy_report(cut, directory)
    say = partial(console.print, markup=False, soft_wrap=True)
    for line in cut:
        say(BAR.join(token_text(piece.encode()) for piece in pieces(line)))
    say(f"tables, numbers and plots: {directory}")
    return 0


CANDIDATES_TITLE = "Candidate spans: mutual information and entropy"


def show_candidates(config: RunConfig, pretokenizer: SpansPretokenizer, console: Console) -> int:
    """Count candidates in what a vocabulary is trained on, and show them; DataError where it has none."""
    check(config, ("corpus",))
    corpus = make(config, ("corpus",), asked_by=TOKENS)["corpus"]
    tokenizer = config.tokenizer
    sample = None if isinstance(tokenizer, BytesTokenizer | ExistingTokenizer) else tokenizer.sample
    experiment = config.experiment
    directory = OutputRoot.of(config).data_report(TOKENS, ["candidates", corpus.key, asdict(pretokenizer), sample])
    quantities, by_length = _score_candidates(pretokenizer, corpus.path, sample)
    note_made_of(directory, [corpus])
    title = (experiment.title if experiment else None) or CANDIDATES_TITLE
    text, width = "the training text", console.width
    console.print(write_candidate_report(quantities, by_length, directory, title, text, width))
    console.print(f"tables, numbers and plots: {directory}", markup=False, soft_wrap=True)
    return 0


def _score_candidates(
    config: SpansPretokenizer, corpus: Path, sample: int | None
) -> tuple[dict[str, NDArray[np.float64]], dict[int, int]]:
    """Bits of every candidate by quantity, and candidates by their length."""
    from paribus.corpus.artifact import CorpusArtifact
    from paribus.stage import SilentListener
    from paribus.tokenization.build import TrainingText
    from paribus.tokenization.spans import candidate_ngrams

    levels = candidate_ngrams(TrainingText(CorpusArtifact(corpus), sample, SilentListener()), config)
    by_length = {level.length: len(level.counts) for level in levels if len(level.counts)}
    if not by_length:
        raise DataError(
            f"corpus: no characters of the training text stand together pretokenizer.min_count={config.min_count} times"
        )
    quantities = {
        "mutual information": [level.information for level in levels],
        "left entropy": [level.left_entropy for level in levels],
        "right entropy": [level.right_entropy for level in levels],
    }
    return {name: np.concatenate(bits) for name, bits in quantities.items()}, by_length
