"""How a run that was given alone ends: its scores, and what may be asked next."""

from rich.console import Console

from paribus.commands.further.more_seeds import draws_by_its_seed, seeds_of_another, with_three_seeds
from paribus.commands.retyped import retyped
from paribus.config.arguments import Command
from paribus.evaluation.measures.main_scores import main_scores, said
from paribus.pipeline.output_root import OutputRoot
from paribus.pipeline.prepared_run import PreparedRun
from paribus.pipeline.stages import EVALUATION, FINETUNING


def show_after_run(command: Command, run: PreparedRun, console: Console) -> None:
    """The scores of a finished run, then commands that can be given as they are, a line each."""
    lines = [
        " · ".join(said(_scores(run))),
        f"its report:\n  {retyped(command, multirun=False, verb='report')}",
        _spread(command, run),
    ]
    for line in filter(None, lines):
        console.print(line, markup=False, soft_wrap=True)


def _spread(command: Command, run: PreparedRun) -> str:
    """How a spread is come by; empty for a run that no seed makes another."""
    if why := seeds_of_another(run.job.config):
        return f"for a spread: {why}:\n  paribus explain start=continued"
    if not draws_by_its_seed(run):
        return ""
    seeds = with_three_seeds(command, run.job.config.seed)
    return f"with three seeds, for a spread (and arms the same way, tokenizer=A,B):\n  {seeds}"


def _scores(run: PreparedRun) -> dict[str, float]:
    """Main scores by what was evaluated, then by what was fine-tuned."""
    store = OutputRoot.of(run.job.config).store
    nodes = [run.nodes[stage] for stage in (EVALUATION, FINETUNING) if stage in run.nodes]
    found = [store.find(*node.place) for node in nodes]
    return {
        name: value
        for artifact in found
        if artifact is not None
        for name, value in main_scores(artifact.record()["result"].get("metrics", {})).items()
    }
