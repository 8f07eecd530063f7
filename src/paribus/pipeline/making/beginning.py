"""What keeps a command from beginning any of its runs: a launcher that cannot submit, a root that cannot be."""

import shutil
from collections.abc import Iterator, Sequence

from paribus.pipeline.output_root import OutputRoot
from paribus.pipeline.prepared_run import PreparedRun
from paribus.pipeline.record.run_state import is_done

SLURM = "submitit_slurm"
COMMANDS_OF_SLURM = ("srun", "sbatch")
"""By which submitit tells a cluster, and hands it jobs."""


def problems(runs: Sequence[PreparedRun]) -> Iterator[tuple[str, str]]:
    """(config path, what is wrong and what would be right), where anything is left to make; nothing is made here."""
    if _left(runs):
        root = OutputRoot.of(runs[0].job.config)
        yield from (("root", unfit) for unfit in [root.unwritable()] if unfit)
        yield from launcher_problems(runs)


def launcher_problems(runs: Sequence[PreparedRun]) -> Iterator[tuple[str, str]]:
    """The same of the launcher alone: what a library says of each job that it loses says nothing of the command."""
    submits = runs and runs[0].launcher == SLURM
    absent = [command for command in COMMANDS_OF_SLURM if submits and shutil.which(command) is None]
    if absent and _left(runs):
        verb = "is" if len(absent) == 1 else "are"
        yield (
            "hydra/launcher",
            f"{SLURM} submits to SLURM, of which {' and '.join(absent)} {verb} not here; give the command where SLURM "
            "is, or take basic, joblib or submitit_local",
        )


def _left(runs: Sequence[PreparedRun]) -> bool:
    """Whether a launcher would get any of the runs."""
    root = OutputRoot.of(runs[0].job.config)
    return not all(is_done(run.run_id, run.nodes, root, run.job.config.until) for run in runs)
