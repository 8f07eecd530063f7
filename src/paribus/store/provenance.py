"""Where, when and with what an artefact was made."""

import importlib.metadata
import os
import platform
import shutil
import socket
import subprocess
from pathlib import Path
from typing import Any

from paribus import __version__
from paribus.store.packages import recorded

LONGEST_DIFF, MOST_UNTRACKED = 200_000, 100
DIFF = (
    "diff", "--binary", "--full-index", "--no-color", "--no-ext-diff", "--no-textconv", "--no-relative",
    "--src-prefix=a/", "--dst-prefix=b/",
)  # fmt: skip


def provenance() -> dict[str, Any]:
    """Commit, uncommitted difference, package versions, host, processors, GPU and container of this process."""
    return {
        "paribus": __version__,
        "git": git_state(Path(__file__)),
        "packages": package_versions(),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "host": socket.gethostname(),
        "processors": os.cpu_count(),
        "gpu": gpu_names(),
        "container": container(),
    }


def package_versions() -> dict[str, str]:
    """Versions of the packages that paribus depends on, of those that are installed."""
    versions = {}
    for name in recorded():
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions


def git_state(file: Path) -> dict[str, Any] | None:
    """Commit, uncommitted difference and unknown files of the checkout that tracks `file`; None where none does.

    The difference is what `git apply` takes, whatever the user's settings of git are. An installed package may lie
    inside somebody's repository, which says nothing about it.
    """
    git = ["git", "-C", str(file.parent)]
    commit = _output([*git, "rev-parse", "HEAD"])
    if commit is None or _output([*git, "ls-files", "--error-unmatch", file.name]) is None:
        return None
    diff = _output([*git, *DIFF, "HEAD"]) or ""
    unknown = _output([*git, "ls-files", "--others", "--exclude-standard", "-z", "--full-name", ":/"]) or ""
    return {
        "commit": commit.strip(),
        "diff": diff[:LONGEST_DIFF],
        "diff_truncated": len(diff) > LONGEST_DIFF,
        "untracked": unknown.split("\0")[:-1][:MOST_UNTRACKED],
    }


def gpu_names() -> list[str]:
    """Names of the NVIDIA devices the driver lists; empty without a driver."""
    listed = _output(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"])
    return listed.splitlines() if listed else []


def container() -> str | None:
    """The kind of container this process is in, as far as it can be told."""
    if Path("/.dockerenv").exists():
        return "docker"
    return "podman" if Path("/run/.containerenv").exists() else None


def _output(command: list[str]) -> str | None:
    if shutil.which(command[0]) is None:
        return None
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", errors="replace", check=False)
    return done.stdout if done.returncode == 0 else None
