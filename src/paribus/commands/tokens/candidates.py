"""What the candidates of `pretokenizer=spans` score: mutual information beside branching entropy."""

from dataclasses import asdict
from pathlib import Path

import numpy as np
from rich.console import Console

from paribus.commands.tokens.files import TOKENS, report_directory
from paribus.config.groups.tokenization import BytesTokenizer, ExistingTokenizer, SpansPretokenizer
from paribus.config.schema import RunConfig
from paribus.errors import DataError
from paribus.pipeline.root import OutputRoot
from paribus.pipeline.run import check, make, note_made_of
from paribus.reporting.data_reports import CandidateScores, write_candidate_report

TITLE = "Candidate spans: mutual information and entropy"


def show_candidates(config: RunConfig, pretokenizer: SpansPretokenizer, console: Console) -> int:
    """Make the corpus where it is missing, count candidates in what a vocabulary is trained on, and show them.

    DataError where no n-gram of the text is one.
    """
    check(config, ("corpus",))
    corpus = make(config, ("corpus",), asked_by=TOKENS)["corpus"]
    sample = _sample(config)
    experiment = config.experiment
    directory = report_directory(OutputRoot.of(config), ["candidates", corpus.key, asdict(pretokenizer), sample])
    found = _scores(pretokenizer, corpus.path, sample)
    note_made_of(directory, [corpus])
    title = (experiment.title if experiment else None) or TITLE
    console.print(write_candidate_report(found, directory, title=title, text="the training text", width=console.width))
    console.print(f"tables, numbers and plots: {directory}", markup=False, soft_wrap=True)
    return 0


def _sample(config: RunConfig) -> int | None:
    tokenizer = config.tokenizer
    return None if isinstance(tokenizer, BytesTokenizer | ExistingTokenizer) else tokenizer.sample


def _scores(config: SpansPretokenizer, corpus: Path, sample: int | None) -> CandidateScores:
    from paribus.corpus.artifact import CorpusArtifact
    from paribus.stage import SilentReporter
    from paribus.tokenization.build import LearningSample
    from paribus.tokenization.spans import candidate_ngrams

    levels = candidate_ngrams(
        LearningSample(CorpusArtifact(corpus), sample, SilentReporter()),
        max_length=config.max_length,
        min_count=config.min_count,
        information=config.information,
        classes=config.classes,
    )
    by_length = {level.length: len(level.counts) for level in levels if len(level.counts)}
    if not by_length:
        raise DataError(
            f"corpus: no characters of the training text stand together pretokenizer.min_count={config.min_count} times"
        )
    return CandidateScores(
        np.concatenate([level.information for level in levels]),
        np.concatenate([level.left_entropy for level in levels]),
        np.concatenate([level.right_entropy for level in levels]),
        by_length,
    )
