"""Examples in prompts for which a command asks the hub, before the keys of its runs are known."""

from collections.abc import Callable, Sequence

from paribus.config.compose import Job
from paribus.errors import ParibusError
from paribus.evaluation.missing_examples import fetch_missing, missing_examples
from paribus.pipeline.graph import build_graph, needed_for, to_make
from paribus.pipeline.output_root import OutputRoot


def fetch_prompt_examples(jobs: Sequence[Job], say: Callable[[str], None]) -> None:
    """Fetch the files of examples that are not beside scored files; `say` is told of each that cannot be had.

    They decide what is scored in all jobs, so they are fetched before the first is judged, and not where all artefacts
    of all jobs are stored: these were made without.
    """
    missing = {
        each: OutputRoot.of(job.config).cache for job in jobs for each in missing_examples(job.config.evaluation)
    }
    if not missing or all(map(_is_stored, jobs)):
        return
    for each, cache in missing.items():
        if line := fetch_missing(each, cache):
            say(line)


def _is_stored(job: Job) -> bool:
    """Whether nothing is left to be made of what a job wants; False where that cannot be known."""
    root = OutputRoot.of(job.config)
    try:
        nodes = build_graph(job.config, root.cache)
    except ParibusError:
        return False
    return not to_make(needed_for(nodes, job.config.until), root.store)
