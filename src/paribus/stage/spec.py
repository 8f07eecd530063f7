"""What a stage is: its name and version, its inputs, what of a configuration decides its output, and its function.

Every room of stages declares its own in a light `stage.py`; `paribus.pipeline.stages` lists them. A function imports
what it computes with when it is called, so that a command that makes nothing starts without that.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from paribus.config.groups.seeds import Part
from paribus.config.identity import identity
from paribus.config.schema import RunConfig
from paribus.stage.context import JSON, StageContext
from paribus.store.files import FileDigests

Identity = Callable[[RunConfig], dict[str, Any]]
"""Identity fields of a configuration, by group."""
Facts = Callable[[Mapping[str, Any]], Sequence[str]]
"""What a person wants to know of a stage's result as it ends, a few short texts."""


@dataclass(frozen=True)
class Outside:
    """What a stage depends on that is not in the configuration."""

    part: Callable[[RunConfig], Any]
    """The part of the configuration that names it."""
    fingerprint: Callable[[Any, FileDigests], dict[str, JSON]]
    """What identifies it, from that part; DataError where it is missing."""


@dataclass(frozen=True)
class Device:
    """What a stage computes on."""

    path: str
    """The field that says so."""
    value: str
    gpus: int | None = 1
    """How many GPUs it takes from other jobs of the machine, 0 for all; None where it takes none from them."""
    fewer_do: bool = False
    """Whether it takes all where the machine has fewer."""


@dataclass(frozen=True)
class Stage:
    """One kind of artefact."""

    name: str
    code_version: int
    """Raised when a change alters the output; pinned digests make a forgotten change a failing test."""
    inputs: Callable[[RunConfig], tuple[str, ...]]
    identity: Identity
    build: Callable[[StageContext], dict[str, JSON]]
    outside: Outside | None = None
    device: Callable[[RunConfig], Device | None] = lambda config: None
    """None where it is a CPU, whatever the configuration says."""
    imports: tuple[str, ...] = ()
    """Modules of what it computes with, which a process that forks the stage's may have imported: libraries that start
    no thread, open no device and get along with those of every other stage. Without any, its process begins by
    itself."""
    online: Callable[[RunConfig], bool] = lambda config: False
    """Whether it may ask a network, which what is forked never does: its libraries are imported as `OFFLINE`."""

    facts: Facts = lambda result: ()
    """Said as the stage ends; nothing where its result says little."""
    makes: str | None = None
    """The stage whose artefacts these are, of which a run has a second one; None for its own."""
    config: Callable[[RunConfig], RunConfig] = lambda config: config
    """The configuration that a run's artefact is made with."""

    @property
    def artefact(self) -> str:
        """Name of the stage that its artefacts are kept by."""
        return self.makes or self.name

    def take_fingerprint(self, config: RunConfig, digests: FileDigests) -> dict[str, JSON]:
        """Identity of what is outside the configuration; DataError where it is missing."""
        return {} if self.outside is None else self.outside.fingerprint(self.outside.part(config), digests)


def always(*names: str) -> Callable[[RunConfig], tuple[str, ...]]:
    """Inputs that do not depend on the configuration."""
    return lambda config: names


def fields(group: str, *names: str) -> Identity:
    """The named fields of a group, all of them where none is named."""

    def select(config: RunConfig) -> dict[str, Any]:
        values = identity(getattr(config, group))
        return {group: {name: values[name] for name in names or values}}

    return select


def all_but(group: str, *names: str) -> Identity:
    """The fields of a group without those named."""
    return lambda config: {
        group: {name: value for name, value in identity(getattr(config, group)).items() if name not in names}
    }


def seeds(drawn: Callable[[RunConfig], Mapping[Part, int]]) -> Identity:
    """The seeds that a stage draws by, wherever they are set."""
    return lambda config: {"seeds": dict(drawn(config))}


def seed_of(part: Part) -> Identity:
    """The seed of one part."""
    return seeds(lambda config: {part: config.seed_of(part)})


def together(*parts: Identity) -> Identity:
    """All of them."""
    return lambda config: {key: value for part in parts for key, value in part(config).items()}
