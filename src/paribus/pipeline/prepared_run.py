"""A run of a command, ready to be made."""

from dataclasses import dataclass

from paribus.config.compose import Job
from paribus.pipeline.graph import Node
from paribus.pipeline.output_root import run_id


@dataclass(frozen=True)
class PreparedRun:
    """A validated run with the artefacts it needs."""

    job: Job
    nodes: dict[str, Node]
    factors: tuple[str, ...] = ()
    """Paths in which the runs of its command differ on purpose."""

    @property
    def run_id(self) -> str:
        """Identifier of the run."""
        return run_id(self.nodes)
