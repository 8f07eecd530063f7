"""What `paribus report --null` prints: how often the table's tests find a difference between halves of one arm."""

from collections.abc import Sequence

from rich.console import Console

from paribus.commands.further.more_seeds import seeds_of_another, with_more_seeds
from paribus.config.arguments import Command
from paribus.config.compose import Composition
from paribus.config.groups.experiment import table_of
from paribus.errors import ConfigurationError
from paribus.pipeline.output_root import OutputRoot
from paribus.pipeline.prepared_run import PreparedRun
from paribus.pipeline.record.records import collect


def compare_arms_with_themselves(
    command: Command, composition: Composition, runs: Sequence[PreparedRun], console: Console
) -> int:
    """Print how often a table would find a difference between two halves of the runs of one arm; 1 where runs lack.

    ConfigurationError, with a command that runs enough, where no arm has as many runs as that takes.
    """
    from paribus.reporting.significance.null_experiment import null_experiment
    from paribus.reporting.table.comparison import compare as compared

    records, missing = collect(runs, composition.factors, OutputRoot.of(composition.jobs[0].config))
    table = table_of(composition.jobs[0].config.experiment)
    comparison = compared(records, composition.factors, missing, table)
    try:
        lines = null_experiment(comparison)
    except ConfigurationError as error:
        why = next(filter(None, (seeds_of_another(job.config) for job in composition.jobs)), None)
        told = f"; but {why}" if why else f":\n  {with_more_seeds(command, composition)}"
        raise ConfigurationError(f"{error}{told}") from error
    for line in lines:
        console.print(line, soft_wrap=True, markup=False, highlight=False)
    for run in missing:
        told = f"left out, {', '.join(run.factors.values())}: {run.reason}"
        console.print(told, soft_wrap=True, markup=False, highlight=False)
    return 1 if missing else 0
