"""What a table of the runs could not judge, as far as it is known before anything is trained."""

from collections.abc import Iterator, Sequence

from paribus.config.groups.experiment import table_of
from paribus.errors import ConfigurationError
from paribus.evaluation.suites.registry import CONTINUATION
from paribus.evaluation.tasks.continuation import SMALLEST
from paribus.pipeline.output_root import OutputRoot
from paribus.pipeline.prepare import JudgedTokens, other_tokens
from paribus.pipeline.prepared_run import PreparedRun, factor_labels
from paribus.pipeline.record.run_names import run_names
from paribus.pipeline.show.facts import few_documents
from paribus.reporting.significance.least import SEEDS_TO_JUDGE
from paribus.reporting.table.arrangement import baselines
from paribus.store.artifacts import Artifact

_TASK = (
    "paribus run would fail: the task {task} takes {least} held-out documents at least, and the corpus has {found} "
    "(more with a larger corpus or corpus.heldout; evaluation=heldout does without the task)"
)
_SEEDS = "the table says which row is better where rows have {least} seeds, and here they have {found}: seed={more}"


def remarks_on_judgement(runs: Sequence[PreparedRun], root: OutputRoot) -> Iterator[str]:
    """That no row is the baseline, that rows have too few seeds, that too few documents are held out, for the table or
    for a task, and which runs would fail over the tokens of their checkpoint.
    """
    yield from without_baseline(runs)
    judged: JudgedTokens = {}
    for name, run in zip(run_names(runs), runs, strict=True):
        if found := other_tokens(run, judged):
            yield f"paribus run would fail for {name}: {found[0]}"
    asked = [run for run in runs if CONTINUATION in run.job.config.evaluation.tasks]
    there = [corpus.record()["result"]["heldout"]["documents"] for run in asked if (corpus := _corpus(run, root))]
    if there and min(there) < SMALLEST:
        yield _TASK.format(task=CONTINUATION, least=SMALLEST, found=min(there))
    seeds: dict[tuple[str, ...], set[int]] = {}
    for run in runs:
        seeds.setdefault(tuple(factor_labels(run, run.factors).values()), set()).add(run.job.config.seed)
    if len(seeds) < 2:
        return
    fewest = min(map(len, seeds.values()))
    if fewest < SEEDS_TO_JUDGE:
        had = sorted(set.union(*seeds.values()))
        more = range(max(had) + 1, max(had) + 1 + SEEDS_TO_JUDGE - fewest)
        yield _SEEDS.format(least=SEEDS_TO_JUDGE, found=fewest, more=",".join(map(str, [*had, *more])))
    yield from sorted({told for run in runs if (told := few_documents(run.job.config, _corpus(run, root)))})


def without_baseline(runs: Sequence[PreparedRun]) -> Iterator[str]:
    """That these runs have no table, as none of them is in the row that others are to be compared with.

    It is no error: whoever makes an arm at a time, or elsewhere, has the table of all arms at last.
    """
    table = table_of(runs[0].job.config.experiment)
    rows = dict.fromkeys(tuple(factor_labels(run, runs[0].factors).values()) for run in runs)
    try:
        baselines(list(rows), runs[0].factors, table)
    except ConfigurationError as error:
        yield f"no table of these runs alone: {error}"


def _corpus(run: PreparedRun, root: OutputRoot) -> Artifact | None:
    return root.store.find(*run.nodes["corpus"].place)
