"""The files by which processes ask the tracking service to follow their runs."""

import re
import shutil
import socket
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from paribus.store.claims import Process, is_gone, is_of_another_boot
from paribus.store.files import read_object_if_any
from paribus.tracking.destination import Destination
from paribus.tracking.locks import locked

STATE, LOCK = "state.json", "service.lock"


@dataclass(frozen=True)
class TrackingRequest:
    """A process's wish that a run be followed; `finishing` asks for an answer at once."""

    path: Path
    run_directory: Path
    process: Process
    """Who wishes it: of the same PID namespace as the service, since each has a service of its own, or of an earlier
    boot."""
    finishing: bool

    @property
    def answer(self) -> Path:
        """The outcome of the last attempt: `error` (null when all was sent), `problems` and `finishing`."""
        return self.path.with_suffix(".answer")

    @property
    def abandoned(self) -> bool:
        """Whether its process has ended."""
        return is_gone(self.process) or is_of_another_boot(self.process)


def requests(directory: Path) -> Iterator[TrackingRequest]:
    """The requests in a service's directory."""
    for path in sorted(directory.glob("*.request")):
        if fields := read_object_if_any(path):
            yield TrackingRequest(path, Path(fields["run_directory"]), fields["process"], bool(fields["finishing"]))


def take_over(destination: Destination) -> None:
    """Move the requests of earlier boots of this host into the directory of this one's service, which serves them.

    A directory in which a service is at work is left alone, and so are requests of other PID namespaces of this boot,
    of which nothing is known here. A directory of an earlier boot that has none any more is removed.
    """
    own = destination.service_directory
    name = re.compile(re.escape(f"{destination.key}-{socket.gethostname()}-") + "[0-9a-f]{8}")
    for directory in sorted(own.parent.iterdir()):
        if name.fullmatch(directory.name) and directory != own:
            with suppress(OSError), locked(directory / LOCK, 0):  # OSError: another's, or a service is at work there
                _empty(directory, own)


def _empty(directory: Path, own: Path) -> None:
    found = list(requests(directory))
    earlier = [request for request in found if is_of_another_boot(request.process)]
    for request in earlier:
        request.answer.unlink(missing_ok=True)
        request.path.replace(own / request.path.name)
    if len(earlier) == len(found) and (earlier or is_of_another_boot(read_object_if_any(directory / STATE))):
        shutil.rmtree(directory)
