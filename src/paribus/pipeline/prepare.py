"""The runs of a command with the graphs of their artefacts, checked as far as that is possible before anything runs."""

from dataclasses import dataclass

from paribus.config.compose import Composition, Job
from paribus.config.validate import Problem, refuse
from paribus.errors import ParibusError
from paribus.evaluation import preflight
from paribus.pipeline.graph import Node, build_graph
from paribus.pipeline.layout import Layout, run_id


@dataclass(frozen=True)
class PreparedRun:
    """A validated run with the artefacts it needs."""

    job: Job
    nodes: dict[str, Node]

    @property
    def run_id(self) -> str:
        """Identifier of the run."""
        return run_id(self.nodes)


def prepare(composition: Composition, *, tolerate_missing: bool = False) -> list[PreparedRun]:
    """Graphs of all runs; one error with every missing file and unknown task of all of them.

    With `tolerate_missing`, which a plan uses, files outside the configuration may be absent.
    """
    problems: list[Problem] = []
    runs: list[PreparedRun] = []
    for job in composition.jobs:
        found = [] if tolerate_missing else [Problem(*problem) for problem in preflight.problems(job.config.evaluation)]
        problems += found
        try:
            nodes = build_graph(job.config, Layout.of(job.config).cache, tolerate_missing=tolerate_missing)
            runs.append(PreparedRun(job, nodes))
        except ParibusError as error:
            problems += [] if found else [Problem("files", str(error))]
    if problems:
        raise refuse(list(dict.fromkeys(problems)))
    return runs
