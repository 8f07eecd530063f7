"""What a figure was measured on, and what is at work."""

import os
import platform
import sys
import time
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


def described(packages: Iterable[str]) -> str:
    """The processor, its load, the day, and versions of packages."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    models = [line.partition(": ")[2] for line in lines if line.startswith("model name")]
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    versions = ", ".join(f"{package} {version_of(package) or 'is not installed'}" for package in packages)
    return (
        f"{models[0] if models else platform.machine()}, {os.cpu_count()} cores, load average {load} at the end; "
        f"{time.strftime('%Y-%m-%d')}; Python {platform.python_version()}, {versions}"
    )


def version_of(package: str) -> str:
    """Its version; empty where it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def say(what: str) -> None:
    """Tell what is at work."""
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} load {os.getloadavg()[0]:.1f} {what}\n")
