"""Rows of the table of tokenizers, from the artefacts that were made for them."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from paribus.config.compose import Job
from paribus.config.groups.evaluation import TableConfig
from paribus.config.identity import to_plain
from paribus.config.schema import RunConfig
from paribus.errors import ConfigurationError, ParibusError
from paribus.pipeline.display import open_console
from paribus.pipeline.graph import build_graph
from paribus.pipeline.prepared import PreparedRun, factor_labels
from paribus.pipeline.results import overlap_matrix
from paribus.pipeline.root import OutputRoot
from paribus.pipeline.run import make
from paribus.reporting.data_tables import Replaced, TokenRow, joined_labels
from paribus.reporting.measures import baselines, ordered
from paribus.store.artifacts import Artifact
from paribus.store.files import read_object
from paribus.tokenization.statistics import Counts, Spellings, only_in, spellings
from paribus.tokenization.tokenizer import Tokenizer

if TYPE_CHECKING:
    from paribus.reporting.figures_data import OverlapMatrix


TARGETS = ("token_statistics",)
"""The stages that a row is made of, with what they need."""
_MOST_VOCABULARIES = 12
"""Most vocabularies that a picture of their overlap has room for."""


@dataclass(frozen=True)
class Counted:
    """Artefacts that were made for one configuration."""

    run: PreparedRun
    made: Mapping[str, Artifact]

    @property
    def config(self) -> RunConfig:
        """Configuration of the first such run."""
        return self.run.job.config

    @property
    def statistics(self) -> Artifact:
        """Artefact of the token statistics; configurations of one key are one row."""
        return self.made["token_statistics"]

    @property
    def vocab_size(self) -> int:
        """Tokens of the vocabulary, which may be fewer than were asked for."""
        return int(self.statistics.record()["result"]["vocab_size"])

    def tokenizer(self) -> Tokenizer:
        """The tokenizer with its encoder."""
        return Tokenizer.load(self.made["tokens"].path / "tokenizer")

    def counts(self) -> Counts:
        """Occurrences by id in the training text."""
        counts: Counts = np.load(self.statistics.path / "counts.npy", allow_pickle=False)
        return counts


def refuse_absent_baseline(jobs: Sequence[Job], factors: Sequence[str], table: TableConfig) -> None:
    """ConfigurationError, before anything is made, where no row would be the baseline that the table names."""
    rows: dict[str, tuple[str, ...]] = {}
    for job in jobs if table.baseline else ():
        with suppress(ParibusError):  # told by whoever makes it
            nodes = build_graph(job.config, OutputRoot.of(job.config).cache, tolerate_missing=True, targets=TARGETS)
            rows.setdefault(nodes[TARGETS[0]].key, tuple(factor_labels(PreparedRun(job, nodes), factors).values()))
    if rows:
        baselines(list(rows.values()), factors, table)


def count_tokens(jobs: Sequence[Job], asked_by: str) -> tuple[list[Counted], list[tuple[Job, ParibusError]]]:
    """Make what is missing of each job's statistics, those alike once; also the jobs of which that failed, and why."""
    counted: dict[str, Counted] = {}
    failed: list[tuple[Job, ParibusError]] = []
    shared = set.intersection(*(set(job.overrides) for job in jobs))
    for number, job in enumerate(jobs, start=1):
        try:
            root = OutputRoot.of(job.config)
            nodes = build_graph(job.config, root.cache, targets=TARGETS)
            if len(jobs) > 1 and any(root.store.find(*node.place) is None for node in nodes.values()):
                own = " ".join(override for override in job.overrides if override not in shared)
                message = f"row {number} of {len(jobs)}  {own}"
                open_console(stderr=True).print(message, markup=False, highlight=False, soft_wrap=True)
            tokens = Counted(PreparedRun(job, nodes), make(job.config, TARGETS, asked_by=asked_by))
        except ParibusError as error:
            failed.append((job, error))
        else:
            counted.setdefault(tokens.statistics.key, tokens)
    return list(counted.values()), failed


def token_rows(
    counted: Sequence[Counted], factors: Sequence[str], table: TableConfig
) -> tuple[list[TokenRow], "OverlapMatrix | None"]:
    """Rows in the order of the table, and the overlap of vocabularies; ConfigurationError for other rows."""
    by_labels = {tuple(factor_labels(tokens.run, factors).values()): tokens for tokens in counted}
    if len(by_labels) < len(counted):
        message = f"{len(counted)} different tokens have {len(by_labels)} names; sweep over what differs"
        raise ConfigurationError(message)
    labels = ordered(list(by_labels), factors, table)
    in_order = [by_labels[row] for row in labels]
    if table.baseline:
        bases = baselines(labels, factors, table)
    else:  # the first of the same corpus and vocabulary size, as it came out
        kinds = [(tokens.made["corpus"].key, tokens.vocab_size) for tokens in in_order]
        bases = [None if kinds.index(kind) == place else kinds.index(kind) for place, kind in enumerate(kinds)]
    spelled = [spellings(tokens.tokenizer()) for tokens in in_order]
    rows = [
        TokenRow(
            labels=row,
            name=joined_labels(row, table) or counted[0].config.tokenizer.kind,
            config=to_plain(tokens.config),
            statistics=read_object(tokens.statistics.path / "statistics.json"),
            vocab_size=tokens.vocab_size,
            baseline=base,
        )
        for row, tokens, base in zip(labels, in_order, bases, strict=True)
    ]
    counts = [tokens.counts() for tokens in in_order]
    return with_replaced(rows, spelled, counts), _overlap_of(rows, spelled, counts)


def with_replaced(rows: Sequence[TokenRow], spelled: Sequence[Spellings], counts: Sequence[Counts]) -> list[TokenRow]:
    """Rows that say how their vocabularies differ; `spelled` and `counts`, occurrences by id, are of each row."""
    return [
        row
        if row.baseline is None
        else replace(row, replaced=_compare_vocabularies(place, row.baseline, spelled, counts))
        for place, row in enumerate(rows)
    ]


def _compare_vocabularies(
    place: int, base: int, spelled: Sequence[Spellings], counts: Sequence[Counts]
) -> Replaced | None:
    if spelled[place].keys() == spelled[base].keys():
        return None
    gone = only_in(spelled[base], spelled[place], counts[base])
    came = only_in(spelled[place], spelled[base], counts[place])
    return Replaced(
        gone=gone.tokens,
        gone_share=gone.share,
        gone_frequency=gone.mean_frequency if gone.tokens else 0.0,
        came=came.tokens,
        came_frequency=came.mean_frequency if came.tokens else 0.0,
    )


def _overlap_of(
    rows: Sequence[TokenRow], spelled: Sequence[Spellings], counts: Sequence[Counts]
) -> "OverlapMatrix | None":
    """Overlap of different vocabularies, each by the first row that has it; None where there is one, or too many."""
    first = {frozenset(tokens): place for place, tokens in reversed(list(enumerate(spelled)))}
    different = sorted(first.values())
    if not 1 < len(different) <= _MOST_VOCABULARIES:
        return None
    names = [rows[place].name for place in different]
    return overlap_matrix(names, [spelled[place] for place in different], [counts[place] for place in different])
