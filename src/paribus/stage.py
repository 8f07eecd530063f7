"""The contract between a stage and the pipeline: what a stage is, and what its function receives.

A stage reads the artefacts of its inputs, fills one empty directory and returns what its record should say. It knows
neither its key nor where its output will be, and never publishes; it may keep what outlives a kill in `work`. So every
stage can be tested as a function, and the pipeline can run it in any process.

A room of stages declares each in its light `stage.py`: name, `code_version`, inputs, identity, fingerprint, device,
function; `paribus.pipeline.graph` lists them. A function imports what it computes with when it is called, so that a
command that makes nothing starts without that. Output that changes for the same inputs needs a new `code_version`,
which pinned digests in `tests/golden` watch.
"""

import json
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, Protocol, TextIO

from paribus.config.groups.model import Part
from paribus.config.identity import identity
from paribus.config.schema import RunConfig
from paribus.engine import Engine
from paribus.store.files import FileDigests

Identity = Callable[[RunConfig], dict[str, Any]]
"""Identity fields of a configuration, by group."""
Facts = Callable[[Mapping[str, Any]], Sequence[str]]
"""A few short texts about a stage's result, shown as it ends."""


JSON = None | bool | int | float | str | list["JSON"] | dict[str, "JSON"]
OFFLINE = {
    "HF_HUB_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_DATASETS_DISABLE_PROGRESS_BARS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "TQDM_DISABLE": "1",
}
"""Variables that these libraries read when they are imported, so that nothing is asked of a network afterwards."""
SECONDS_BETWEEN_PROGRESS = 0.2
PAUSES = (1.0, 2.0)
"""Seconds between attempts to resolve the hub's address: a network may be slow, or come back."""


@dataclass(frozen=True)
class ExternalFiles:
    """Dependence of a stage on something outside the configuration."""

    part: Callable[[RunConfig], Any]
    """The part of the configuration that names it."""
    fingerprint: Callable[[Any, FileDigests], dict[str, JSON]]
    """Function from that part to the identity of the files; DataError where one is missing."""


@dataclass(frozen=True)
class Device:
    """Device that a stage computes on."""

    path: str
    """Config path of `value`."""
    value: str
    gpus: int | None = 1
    """Number of GPUs that it takes from other jobs of the machine, 0 for all; None where it takes none from them."""
    fewer_do: bool = False
    """True if it takes all where the machine has fewer."""


class StageListener(Protocol):
    """Receiver of what a stage says while it runs."""

    def progress(self, done: float, total: float, *, unit: str, doing: str, detail: str = "") -> None:
        """`done` of `total` `unit`s are finished; `doing` says what is running, `detail` what else."""

    def metric(self, name: str, value: float, *, step: int) -> None:
        """Record a number of the run, such as `train/loss` at a step."""

    def message(self, text: str) -> None:
        """Show a line that stays on the terminal and in the stage's log."""


@dataclass(frozen=True)
class StageContext:
    """Inputs and outputs of one execution of a stage."""

    config: RunConfig
    inputs: Mapping[str, Path]
    """Directory of each input artefact by stage name."""
    output: Path
    """Empty directory to fill; it becomes the artefact when the function returns."""
    work: Path
    """Scratch directory of this artefact that survives a kill; removed once the artefact is published."""
    listener: StageListener
    engine: Engine

    @classmethod
    def of_job(cls, job: Mapping[str, Any], listener: StageListener) -> "StageContext":
        """Context of a job, JSON with `config`, `inputs`, `output` and `work`; close its engine."""
        # They load pydantic and multiprocessing, without which `paribus tokens encode` starts.
        from paribus.config.validate import build_run
        from paribus.engine.local import open_engine

        config, work = build_run(job["config"]), Path(job["work"])
        inputs = {name: Path(path) for name, path in job["inputs"].items()}
        return cls(config, inputs, Path(job["output"]), work, listener, open_engine(config.engine, work))


@dataclass(frozen=True)
class Stage:
    """One kind of artefact."""

    name: str
    code_version: int
    """Raised when a change alters the output; pinned digests make a forgotten change a failing test."""
    inputs: Callable[[RunConfig], tuple[str, ...]]
    identity: Identity
    build: Callable[[StageContext], dict[str, JSON]]
    outside: ExternalFiles | None = None
    device: Callable[[RunConfig], Device | None] = lambda config: None
    """None where it is a CPU, whatever the configuration says."""
    imports: tuple[str, ...] = ()
    """Modules of what it computes with, which a process that forks the stage's may have imported: libraries that start
    no thread, open no device and get along with those of every other stage. Without any, its process begins by
    itself."""
    online: Callable[[RunConfig], bool] = lambda config: False
    """True if it may use a network; a forked process never does, as its libraries were imported with `OFFLINE` set."""

    facts: Facts = lambda result: ()
    """Texts shown as the stage ends; none by default."""
    stored_as: str | None = None
    """Name of the stage whose artefact store this one shares; None for its own."""
    config: Callable[[RunConfig], RunConfig] = lambda config: config
    """Function from a run's configuration to the one that its artefact is made with."""

    @property
    def artefact(self) -> str:
        """Name of the stage under which its artefacts are stored."""
        return self.stored_as or self.name

    def take_fingerprint(self, config: RunConfig, digests: FileDigests) -> dict[str, JSON]:
        """Identity of what is outside the configuration; DataError where it is missing."""
        return {} if self.outside is None else self.outside.fingerprint(self.outside.part(config), digests)


def always(*names: str) -> Callable[[RunConfig], tuple[str, ...]]:
    """Inputs that do not depend on the configuration."""
    return lambda config: names


def late(function: str) -> Callable[..., dict[str, JSON]]:
    """Function `module:name`, whose module is imported when it is called."""
    return partial(_call, function)


def _call(function: str, *arguments: Any) -> Any:
    return resolve_name(function)(*arguments)


def fields(group: str, *names: str) -> Identity:
    """The named fields of a group, all of them where none is named."""

    def select(config: RunConfig) -> dict[str, Any]:
        values = identity(getattr(config, group))
        return {group: {name: values[name] for name in names or values}}

    return select


def all_except(group: str, *names: str) -> Identity:
    """The fields of a group without those named."""
    return lambda config: {
        group: {name: value for name, value in identity(getattr(config, group)).items() if name not in names}
    }


def seeds(drawn: Callable[[RunConfig], Mapping[Part, int]]) -> Identity:
    """The seeds that a stage draws by, wherever they are set."""
    return lambda config: {"seeds": dict(drawn(config))}


def seed_of(part: Part) -> Identity:
    return seeds(lambda config: {part: config.seed_of(part)})


def together(*parts: Identity) -> Identity:
    """The fields of all `parts`."""
    return lambda config: {key: value for part in parts for key, value in part(config).items()}


class SilentListener:
    """Listener of tests and of library use: shows nothing and remembers metrics and messages."""

    def __init__(self) -> None:
        self.metrics: list[tuple[str, float, int]] = []
        self.messages: list[str] = []

    def progress(self, done: float, total: float, *, unit: str, doing: str, detail: str = "") -> None:
        """Ignore progress."""

    def metric(self, name: str, value: float, *, step: int) -> None:
        self.metrics.append((name, value, step))

    def message(self, text: str) -> None:
        self.messages.append(text)


class ChannelListener:
    """Listener in another process: sends lines of JSON, which `deliver` passes to a listener at the other end.

    Progress is sent at most five times a second. Messages go to `log` too.
    """

    def __init__(self, channel: TextIO, log: TextIO | None = None) -> None:
        self._channel, self._log, self._last = channel, log, 0.0

    def send(self, message: Mapping[str, Any]) -> None:
        self._channel.write(json.dumps(message) + "\n")
        self._channel.flush()

    def progress(self, done: float, total: float, *, unit: str, doing: str, detail: str = "") -> None:
        """Send progress, unless the last one was a moment ago and this is not the end."""
        now = time.monotonic()
        if now - self._last >= SECONDS_BETWEEN_PROGRESS or done >= total:
            self._last = now
            where = {"done": done, "total": total, "unit": unit, "doing": doing, "detail": detail}
            self.send({"type": "progress", **where})

    def metric(self, name: str, value: float, *, step: int) -> None:
        """Send a number of the run; JSON has no NaN, so it travels as text."""
        self.send({"type": "metric", "name": name, "value": repr(float(value)), "step": step})

    def message(self, text: str) -> None:
        if self._log is not None:
            with suppress(OSError):
                print(text, file=self._log, flush=True)
        self.send({"type": "message", "text": text})


def deliver(message: Mapping[str, Any], listener: StageListener) -> None:
    """Pass what a `ChannelListener` sent to `listener`."""
    match message:
        case {"type": "progress", **progress}:
            listener.progress(**progress)
        case {"type": "metric", "name": name, "value": value, "step": step}:
            listener.metric(name, float(value), step=step)
        case {"type": "message", "text": text}:
            listener.message(text)


def compile_kernels(names: Iterable[str], listener: StageListener) -> None:
    """Compile those kernels that this machine has not compiled yet, with progress, since that takes a while."""
    from paribus.native.loader import ensure_compiled

    def progress(name: str, done: int, total: int) -> None:
        listener.progress(done, total, unit="kernels", doing=f"compiling {name}")

    ensure_compiled(names, progress)


@contextmanager
def cache_alone_without_network() -> Iterator[None]:
    """Within it Hugging Face's libraries use their cache alone, where the hub's name has no address here.

    They retry each request five times, 23 s in all, before they look there. For a hub that has an address and is slow
    they wait as usual, and so for one behind a proxy, which resolves the name itself.
    """
    import datasets
    from huggingface_hub import constants

    if _has_address(constants.ENDPOINT):
        yield
        return
    # Both read the variable HF_HUB_OFFLINE when they are imported, and these when something is asked of them.
    before = constants.HF_HUB_OFFLINE, datasets.config.HF_HUB_OFFLINE
    constants.HF_HUB_OFFLINE = datasets.config.HF_HUB_OFFLINE = True
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE, datasets.config.HF_HUB_OFFLINE = before


def _has_address(endpoint: str) -> bool:
    from urllib.parse import urlsplit
    from urllib.request import getproxies  # loads http and ssl

    if getproxies().keys() & {"https", "http", "all"}:
        return True
    for pause in (*PAUSES, None):
        try:
            socket.getaddrinfo(urlsplit(endpoint).hostname, None)
        except OSError as error:
            if pause is None or getattr(error, "errno", None) == socket.EAI_NONAME:
                return False
            time.sleep(pause)
        else:
            return True
    return False
