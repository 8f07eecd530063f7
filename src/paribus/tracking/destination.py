"""The MLflow that a run is shown in, and the local files for that."""

import hashlib
import os
import re
import shlex
import socket
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote

from paribus.config.groups.execution import URI_VARIABLE, TrackingConfig
from paribus.errors import ConfigurationError, Problem
from paribus.store.claims import machine

_SERVERS, _FILES = ("http", "https"), ("sqlite", "file", "")
_SCHEMES = (*_SERVERS, "sqlite", "postgresql", "mysql", "mssql", "databricks")
_SCHEME = re.compile(r"[\w+.-]+:/{0,2}")
_CREDENTIALS = re.compile(r"\A[^:/]*(?::[^@]*)?@")
"""Credentials at the start of what follows a database's scheme, as SQLAlchemy reads it."""
_ADDRESS = re.compile(r"(?:[^/?#]*@)?(?:\[[^\]/]*\]|[^:/?#@]*)(?::\d*)?(?=[/?#]|$)")
"""Address of a server, with or without user and password.

No match where a password has a slash, unless what is before the slash reads as a port.
"""


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

    def without_credentials(self, text: str) -> str:
        """Message `text` of a store or driver, without what may be a part of user, password or query of the URI."""
        text = text.replace(self.uri, self.shown)
        if self.database is not None:
            return text
        text = re.sub(r"(?i)\b((?:password|passwd|pwd|token)=)[^\s&\"')]*", r"\1...", text)
        if _scheme_name(self.uri) in _SERVERS:
            return re.sub(r"//[^/\s]*@", "//", text)
        return re.sub(r"([\w+]+://)?[^\s\"'(]*@", r"\1", text)

    @property
    def database(self) -> Path | None:
        """The file of an sqlite store."""
        return _file_of(self.uri) if _scheme_name(self.uri) == "sqlite" else None

    @property
    def store_lock(self) -> Path:
        """Lock under which the database, the experiment and runs are created."""
        if self.database is not None:
            return self.database.with_name(f"{self.database.name}.lock")
        return self.root / "tracking" / f"{self.key}.lock"

    @property
    def artifact_location(self) -> str | None:
        """URI of the artifacts of an sqlite experiment; None leaves it to the server."""
        if self.database is None:
            return None
        folder = re.sub(r"[^\w.-]|^\.+$", "_", self.experiment)
        return (self.root / "mlartifacts" / folder).as_uri()

    @property
    def named(self) -> str:
        return f"MLflow at {self.shown}, experiment {self.experiment!r}"

    @property
    def how_to_open(self) -> str:
        """Command, or address, by which a user sees the runs."""
        if self.database is None:
            return f"open {self.shown}"
        serve = f"MLFLOW_SERVER_ENABLE_JOB_EXECUTION=false mlflow ui --backend-store-uri {shlex.quote(self.uri)}"
        number = self._experiment_id(self.database)
        page = f"http://127.0.0.1:5000/#/experiments/{number}/runs?workflowType=machine_learning"
        return serve if number is None else f"{serve}, then open {page}"

    def _experiment_id(self, database: Path) -> str | None:
        """Number of the experiment in a database; None where it is not there yet."""
        try:
            with closing(sqlite3.connect(f"file:{quote(str(database))}?mode=ro", uri=True, timeout=1)) as connection:
                query = "SELECT experiment_id FROM experiments WHERE name = ?"
                row = connection.execute(query, (self.experiment,)).fetchone()
        except sqlite3.Error:
            return None
        return None if row is None else str(row[0])

    @property
    def service_directory(self) -> Path:
        """Requests, lock and log of the process that sends from this machine, or from this container of it.

        It judges by their numbers which processes are gone, so it serves those of its own PID namespace alone.
        """
        namespace = hashlib.sha256(machine().encode()).hexdigest()[:8]
        return self.root / "tracking" / f"{self.key}-{socket.gethostname()}-{namespace}"


def check_destination(tracking: TrackingConfig) -> list[Problem]:
    """Problems of a store that MLflow could not open."""
    if tracking.kind == "mlflow":
        try:
            absolute_uri(tracking.uri, Path())
        except ConfigurationError as error:
            return [*error.problems]
    return []


def absolute_uri(uri: str | None, root: Path) -> str:
    """`uri` independent of the working directory; None is `mlflow.db` in `root`."""
    if uri is None:
        return sqlite_uri(root / "mlflow.db")
    scheme = uri.partition(":")[0].partition("+")[0]
    if scheme not in _SCHEMES:
        named = f" ({URI_VARIABLE})" if uri == os.environ.get(URI_VARIABLE) else ""
        message = (
            f"{public_uri(uri)!r}{named} is no store that MLflow 3 opens; use http(s)://host:port, "
            f"{sqlite_uri(root / 'mlflow.db')} or a postgresql or mysql URI"
        )
        raise ConfigurationError(Problem("tracking.uri", message))
    if scheme in _SERVERS and not _ADDRESS.match(_split_scheme(uri)[1]):
        message = (
            f"{public_uri(uri)!r} follows no user and password that a server takes; write / as %2F, "
            "? as %3F and # as %23, or give them as MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD"
        )
        raise ConfigurationError(Problem("tracking.uri", message))
    if scheme != "sqlite":
        return uri
    if not re.match(r"sqlite(\+pysqlite)?:///[^?]", uri):
        raise ConfigurationError(Problem("tracking.uri", f"{uri!r} names no file; write sqlite:///path/to/mlflow.db"))
    return sqlite_uri(_file_of(uri).absolute()) + "".join(uri.partition("?")[1:])


def sqlite_uri(database: Path) -> str:
    """The URI of a file, whose path SQLAlchemy decodes up to a question mark."""
    quoted = str(database).replace("%", "%25").replace("?", "%3F")
    # MLflow makes the directories of a path without decoding it, unless the URI names a driver.
    return f"sqlite{'' if quoted == str(database) else '+pysqlite'}:///{quoted}"


def _file_of(uri: str) -> Path:
    return Path(unquote(uri.partition(":///")[2].partition("?")[0]))


def public_uri(uri: str) -> str:
    """`uri` without user, password and query, which may hold credentials; an `@` in the path of a server or file stays.

    SQLAlchemy lets a database's password have slashes and question marks. Which of several `@` ends the password is a
    guess, so all up to the last is removed, even if that takes a part of the address with it.
    """
    scheme, rest = _split_scheme(uri)
    name = _scheme_name(scheme)
    if name in _SERVERS and _ADDRESS.match(rest):
        authority, slash, path = rest.partition("/")
        rest = authority.rpartition("@")[2] + slash + path
    elif name not in _FILES:
        rest = _CREDENTIALS.sub("", rest)
        before, mark, query = rest.partition("?")
        rest = before.rpartition("@")[2] + mark + query
    return (scheme + rest).partition("?")[0]


def _split_scheme(uri: str) -> tuple[str, str]:
    """Scheme with its colon and slashes, also where one of these is missing, and the rest."""
    match = _SCHEME.match(uri)
    return (match.group(), uri[match.end() :]) if match else ("", uri)


def _scheme_name(scheme: str) -> str:
    return scheme.partition(":")[0].partition("+")[0]
