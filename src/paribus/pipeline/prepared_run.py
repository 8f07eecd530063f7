"""A run of a command, ready to be made."""

from dataclasses import dataclass

from paribus.config.compose import Job
from paribus.pipeline.graph import Node, needed_for
from paribus.pipeline.output_root import run_id


@dataclass(frozen=True)
class PreparedRun:
    """A validated run with the artefacts it needs."""

    job: Job
    nodes: dict[str, Node]
    factors: tuple[str, ...] = ()
    """Paths in which the runs of its command differ on purpose."""
    here: bool = True
    """Whether it is made on this machine, whose devices are then to be judged."""

    @property
    def wanted(self) -> dict[str, Node]:
        """The artefacts that its command is to make: all, or with `until` that stage and what it needs."""
        return needed_for(self.nodes, self.job.config.until)

    @property
    def run_id(self) -> str:
        """Identifier of the run."""
        return run_id(self.nodes)
