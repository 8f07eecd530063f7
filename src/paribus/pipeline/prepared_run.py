"""A run of a command, ready to be made."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from paribus.config.arguments import override_key, override_value
from paribus.config.compose import Job
from paribus.config.identity import chosen
from paribus.pipeline.graph import Node, needed_for
from paribus.pipeline.output_root import run_id

ABSENT = "—"
"""Label of a run at a factor that its choices do not have: the vocabulary size of `tokenizer=bytes`."""


@dataclass(frozen=True)
class PreparedRun:
    """A validated run with the artefacts it needs."""

    job: Job
    nodes: dict[str, Node]
    factors: tuple[str, ...] = ()
    """Paths in which the runs of its command differ on purpose."""
    here: bool = True
    """Whether it is made on this machine, whose devices are then to be judged."""
    launcher: str = "basic"
    """Name of the Hydra launcher that would run its job."""

    @property
    def wanted(self) -> dict[str, Node]:
        """The artefacts that its command is to make: all, or with `until` that stage and what it needs."""
        return needed_for(self.nodes, self.job.config.until)

    @property
    def run_id(self) -> str:
        """Identifier of the run."""
        return run_id(self.nodes)


def factor_labels(run: PreparedRun, factors: Sequence[str]) -> dict[str, str]:
    """The value of each factor as it was typed, else as it is configured; a dash where its choices lack it."""
    setting = [override for override in run.job.overrides if "=" in override and not override.startswith("~")]
    typed = {override_key(override).replace("/", "."): override_value(override) for override in setting}
    return {factor: typed.get(factor) or chosen(run.job.config, factor) or ABSENT for factor in factors}


def unique_nodes(runs: Iterable[PreparedRun]) -> list[Node]:
    """Every artefact that is wanted of several runs once, in the order it is first needed."""
    return list({node.place: node for run in runs for node in run.wanted.values()}.values())
