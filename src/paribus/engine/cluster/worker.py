"""What runs on a node: a process that calls one function, and what it needs there."""

import os
import platform
import socket
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from paribus import __version__
from paribus.engine.threads import THREADS
from paribus.errors import ConfigurationError
from paribus.store.provenance import hold_to, loaded_code

_ENVIRONMENT = dict.fromkeys(THREADS, "1") | {
    "TOKENIZERS_PARALLELISM": "false",
    "CUDA_VISIBLE_DEVICES": "",
}
"""A worker has one core and no GPU, whatever its node has: results must not depend on where a shard is computed."""
_SECONDS_UNTIL_SEEN = 60.0
"""How long a network file system may hide a new file."""


@dataclass(frozen=True)
class Requirements:
    """What a node must have: these versions, and the file that is there while this context is open."""

    versions: dict[str, str]
    probe: Path

    @classmethod
    def of(cls, shared: Path) -> "Requirements":
        """Those of this process, and a file in directory `shared`."""
        return cls(_versions(), shared / f".seen-by-all-nodes-{uuid.uuid4().hex}")

    def __enter__(self) -> Self:
        self.probe.touch()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.probe.unlink(missing_ok=True)

    def check(self) -> None:
        """ConfigurationError where this process' node lacks something."""
        here = _versions()
        others = [f"{name} {here.get(name)}" for name in self.versions if here.get(name) != self.versions[name]]
        if others:
            wanted = ", ".join(f"{name} {self.versions[name]}" for name in self.versions if self._differs(name, here))
            raise ConfigurationError(
                f"engine.address: node {socket.gethostname()} has {', '.join(others)}, and this machine {wanted}; "
                "all nodes must have one environment"
            )
        if not _appears(self.probe):
            raise ConfigurationError(
                f"engine.address: node {socket.gethostname()} does not see {self.probe.parent}; the output root must "
                "lie on a file system that all nodes share"
            )

    def _differs(self, name: str, versions: dict[str, str]) -> bool:
        return versions.get(name) != self.versions[name]


class Worker:
    """The actor of a node: what its function loads at the first call stays loaded for the next one."""

    def __init__(self) -> None:
        self._function: Callable[[Any], Any] | None = None

    def prepare(self, function: list[Any], requirements: Requirements) -> None:
        """Take the function behind the one reference in `function`, which is looked at after the requirements."""
        import ray
        from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

        os.environ.update(_ENVIRONMENT)
        requirements.check()
        hold_to(loaded_code())
        threadpool_limits(1)
        self._function = ray.get(function[0])

    def call(self, item: Any) -> Any:
        """The function's result."""
        if self._function is None:
            raise RuntimeError("a worker was given an item before its function")
        return self._function(item)


def _versions() -> dict[str, str]:
    code = loaded_code()
    own = f"{__version__} (files {code.digest[:12]})"
    return {"paribus": own, "python": platform.python_version(), **code.packages}


def _appears(path: Path) -> bool:
    end = time.monotonic() + _SECONDS_UNTIL_SEEN
    while not path.exists():
        if time.monotonic() > end:
            return False
        time.sleep(0.5)
    return True
