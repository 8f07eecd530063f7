"""Make single artefacts outside a run: what is missing of what some stages need, recorded in the store alone."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from paribus.checks.existing_tokenizer import encoding_problems
from paribus.config.schema import RunConfig
from paribus.config.validate import Problem, refuse
from paribus.engine.local import engine_problems
from paribus.pipeline.graph import Node, build_graph
from paribus.pipeline.making.devices import Devices
from paribus.pipeline.making.telling import Telling
from paribus.pipeline.output_root import OutputRoot
from paribus.pipeline.run import StageRunner
from paribus.pipeline.show.display import Display, open_console
from paribus.store import files
from paribus.store.artifacts import Artifact
from paribus.store.files import MADE_OF
from paribus.tracking.events import TextPoint


@dataclass(frozen=True)
class _Unrecorded:
    """A listener that keeps the logs of stages only."""

    directory: Path

    def metric(self, name: str, value: float, step: int) -> None:
        """The artefact keeps its own numbers."""

    def published(self, points: Iterable[TextPoint]) -> None:
        """The artefact has them."""

    def stage(self, node: Node, artifact: Artifact, state: str, seconds: float) -> None:
        """The store has it."""


def check(config: RunConfig, targets: Sequence[str]) -> None:
    """ConfigurationError where this machine cannot make what is missing of what `targets` need; DataError for files."""
    root = OutputRoot.of(config)
    nodes = build_graph(config, root.cache, targets=targets)
    found = [*engine_problems(config.engine), *Devices().problems(config, nodes)]
    if any(root.store.find(*nodes[name].place) is None for name in ("vocabulary", "tokens") if name in nodes):
        found += encoding_problems(config)
    if found:
        raise refuse([Problem(*problem) for problem in found])


def note_made_of(directory: Path, made: Iterable[Artifact]) -> None:
    """Write into the directory of a report what it was made of: while it is there, `paribus clean` leaves that."""
    places = sorted({(one.stage, one.key) for one in made})
    directory.mkdir(parents=True, exist_ok=True)
    files.write_json(directory / MADE_OF, {"artefacts": [{"stage": stage, "key": key} for stage, key in places]})


def make(config: RunConfig, targets: Sequence[str], *, asked_by: str) -> dict[str, Artifact]:
    """Artefacts by stage of everything `targets` need; progress goes to standard error.

    Logs of stages go into directory `asked_by` of the output root.
    """
    root = OutputRoot.of(config)
    nodes = build_graph(config, root.cache, targets=targets)
    runner = StageRunner(root, Telling(Display(open_console(stderr=True)), _Unrecorded(root.path / asked_by)))
    found: dict[str, Artifact] = {}
    for name, node in nodes.items():
        existing = root.store.find(*node.place)
        found[name] = existing if existing is not None else runner.ensure(node)
    return found
