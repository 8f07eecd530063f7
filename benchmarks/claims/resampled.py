"""Token statistics with intervals by a bootstrap over documents (Efron 1979).

Each resample of the documents that a run trains on is the same for all tokenizers, so differences are paired, and
vocabularies stay as they are. Where pieces of one work are documents of their own, intervals are too narrow.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace

import numpy as np
from scipy.sparse import csr_array

from claims.claim import Measurement, by_student
from paribus.commands.token_rows import count_tokens, token_rows, with_replaced
from paribus.config.compose import Composition
from paribus.config.groups.evaluation import table_of
from paribus.pipeline.prepared import factor_labels
from paribus.pipeline.root import TOKENS
from paribus.reporting.data_tables import TokenRow, all_numbers
from paribus.tokenization.encoded_corpus import EncodedCorpus
from paribus.tokenization.statistics import TokenCounts, count_statistics, spellings

Statistics = list[tuple[Mapping[str, str], Mapping[str, Measurement]]]
"""Labels of each row of a table of tokenizers, with its numbers by name."""
_OF_WORDS = ("words", "tokens_per_word")
"""Left out: words are not counted by document."""
RESAMPLES = 200
"""The bootstrap's standard error has itself one of 5 %, hence as many degrees of freedom less one."""


def token_statistics(composition: Composition) -> Statistics:
    """Numbers of each row, and `<number>_difference` from its baseline; ParibusError where counting fails."""
    counted, failed = count_tokens(composition.jobs, TOKENS)
    if failed:
        raise failed[0][1]
    rows, _ = token_rows(counted, composition.factors, table_of(composition.jobs[0].config.experiment))
    tokens = {tuple(factor_labels(one.run, composition.factors).values()): one.made["tokens"].path for one in counted}
    corpora = [EncodedCorpus(tokens[row.labels]) for row in rows]
    resamples = list(_resampled(rows, corpora))
    found: Statistics = []
    for place, (row, numbers) in enumerate(zip(rows, _with_differences(rows), strict=True)):
        of_row = {}
        for name, value in numbers.items():
            values = [one[place][name] for one in resamples if name in one[place]]
            varies = len(set(values)) > 1
            error = float(np.std(values, ddof=1))
            of_row[name] = by_student(value, error, RESAMPLES - 1) if varies else Measurement(value)
        found.append((dict(zip(composition.factors, row.labels, strict=True)), of_row))
    return found


def _resampled(rows: Sequence[TokenRow], corpora: Sequence[EncodedCorpus]) -> Iterator[list[dict[str, float]]]:
    """The numbers of all rows for each resample of the documents."""
    tokenizers, spelled = [corpus.tokenizer for corpus in corpora], [spellings(corpus.tokenizer) for corpus in corpora]
    occurrences = [_by_document(corpus) for corpus in corpora]
    random, documents = np.random.default_rng(0), len(corpora[0])
    for _ in range(RESAMPLES):
        weights = random.multinomial(documents, np.full(documents, 1 / documents))
        ids = [weights @ each for each in occurrences]
        counts = [
            TokenCounts(each, documents, int(weights @ corpus.source_bytes), words=0)
            for each, corpus in zip(ids, corpora, strict=True)
        ]
        read = [asdict(count_statistics(tok, each)) for tok, each in zip(tokenizers, counts, strict=True)]
        changed = [
            replace(row, statistics={**row.statistics, "train": train}) for row, train in zip(rows, read, strict=True)
        ]
        yield _with_differences(with_replaced(changed, spelled, ids))


def _by_document(corpus: EncodedCorpus) -> csr_array:
    """Occurrences, shape (documents, ids)."""
    ids, ends = corpus.first_draw.astype(np.int64), np.array(corpus.offsets[: len(corpus) + 1])
    shape = (len(corpus), corpus.tokenizer.vocab_size)
    found = csr_array((np.ones(len(ids), dtype=np.int64), ids, ends), shape=shape)
    found.sum_duplicates()
    return found


def _with_differences(rows: Sequence[TokenRow]) -> list[dict[str, float]]:
    """The numbers of each row, and their differences from the row that it is compared with."""
    numbers = [
        {name: float(value) for name, value in own.items() if value is not None and name not in _OF_WORDS}
        for own in all_numbers(rows)
    ]
    bases = [{} if row.baseline is None else numbers[row.baseline] for row in rows]
    return [
        own | {f"{name}_difference": own[name] - base[name] for name in own.keys() & base.keys()}
        for own, base in zip(numbers, bases, strict=True)
    ]
