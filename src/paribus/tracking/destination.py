"""Which MLflow a run is shown in, and where the local files for that live."""

import hashlib
import re
import shlex
import socket
from dataclasses import dataclass
from pathlib import Path

from paribus.config.groups.execution import TrackingConfig
from paribus.errors import ConfigurationError
from paribus.store.process import machine

_SCHEMES = ("http", "https", "sqlite", "postgresql", "mysql", "mssql", "databricks")


@dataclass(frozen=True)
class Destination:
    """One experiment of one MLflow, reached from the output root `root` (absolute)."""

    root: Path
    uri: str
    experiment: str
    patience: float

    @classmethod
    def resolve(cls, tracking: TrackingConfig, root: Path) -> "Destination":
        """Absolute URI and root; ConfigurationError for a URI that MLflow could not open."""
        root = Path(root).resolve()
        return cls(root, absolute_uri(tracking.uri, root), tracking.experiment, tracking.patience)

    @property
    def key(self) -> str:
        """Short digest that names local files of this destination; a password does not enter it."""
        return hashlib.sha256(f"{self.shown}\n{self.experiment}".encode()).hexdigest()[:12]

    @property
    def shown(self) -> str:
        """The URI without password, for messages and files."""
        return public_uri(self.uri)

    @property
    def database(self) -> Path | None:
        """The file of an sqlite store."""
        return Path(self.uri.removeprefix("sqlite:///").partition("?")[0]) if self.uri.startswith("sqlite:") else None

    @property
    def store_lock(self) -> Path:
        """Lock under which the database, the experiment and runs are created."""
        if self.database is not None:
            return self.database.with_name(f"{self.database.name}.lock")
        return self.root / "tracking" / f"{self.key}.lock"

    @property
    def artifact_location(self) -> str | None:
        """Where an sqlite experiment keeps artifacts; None leaves it to the server."""
        if self.database is None:
            return None
        folder = re.sub(r"[^\w.-]|^\.+$", "_", self.experiment)
        return (self.root / "mlartifacts" / folder).as_uri()

    @property
    def how_to_open(self) -> str:
        """What a user types, or where the browser goes, to see the runs."""
        if self.database is None:
            return f"open {self.shown}"
        return f"MLFLOW_SERVER_ENABLE_JOB_EXECUTION=false mlflow ui --backend-store-uri {shlex.quote(self.uri)}"

    @property
    def service_directory(self) -> Path:
        """Requests, lock and log of the process that sends from this machine, or from this container of it.

        It judges by their numbers which processes are gone, so it serves those of its own PID namespace alone.
        """
        namespace = hashlib.sha256(machine().encode()).hexdigest()[:8]
        return self.root / "tracking" / f"{self.key}-{socket.gethostname()}-{namespace}"


def problems(tracking: TrackingConfig) -> list[tuple[str, str]]:
    """(config path, what is wrong and what would be right) of a store that MLflow could not open."""
    try:
        _ = absolute_uri(tracking.uri, Path()) if tracking.kind == "mlflow" else ""
    except ConfigurationError as error:
        path, _, message = str(error).partition(": ")
        return [(path, message)]
    return []


def absolute_uri(uri: str | None, root: Path) -> str:
    """`uri` independent of the working directory; None is `mlflow.db` in `root`."""
    if uri is None:
        return f"sqlite:///{root / 'mlflow.db'}"
    scheme = uri.partition(":")[0].partition("+")[0]
    if scheme not in _SCHEMES:
        raise ConfigurationError(
            f"tracking.uri: {public_uri(uri)!r} is no store that MLflow 3 opens; use http(s)://host:port, "
            f"sqlite:///{root / 'mlflow.db'} or a postgresql or mysql URI"
        )
    if scheme != "sqlite":
        return uri
    if not uri.startswith("sqlite:///") or uri == "sqlite:///":
        raise ConfigurationError(f"tracking.uri: {uri!r} names no file; write sqlite:///path/to/mlflow.db")
    return f"sqlite:///{Path(uri.removeprefix('sqlite:///')).absolute()}"


def public_uri(uri: str) -> str:
    """`uri` without user, password and query, which may hold credentials."""
    return re.sub(r"//[^/]*@", "//", uri).partition("?")[0]
