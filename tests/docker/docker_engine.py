"""A temporary Docker daemon, which is removed after the tests."""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BYTES_NEEDED = 15_000_000_000
DEBIAN, PYTHON, POSTGRES = "paribus-tests/debian", "paribus-tests/python", "paribus-tests/postgres"
IMAGE = "paribus:cpu"
TORCH_INDEX = "TORCH_INDEX=https://pypi.org/simple"
BUILT_WITH = (f"PYTHON_IMAGE={PYTHON}", TORCH_INDEX)
"""pip prefers the base image's wheel, a CPU build, to PyPI's; PyTorch's own index is not reached."""
IN_DEBIAN = "ca-certificates,python3.11,python3.11-venv,python3.11-dev,python3-pip,netbase,tzdata"
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
FORWARDING = Path("/proc/sys/net/ipv4/ip_forward")


@dataclass(frozen=True)
class Engine:
    """A Docker engine that listens in a directory."""

    directory: Path
    variables: dict[str, str] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        """Environment of programs that talk to this engine."""
        return {**os.environ, "DOCKER_HOST": f"unix://{self.directory}/socket", **self.variables}

    def docker(self, *words: str | Path, expect: int = 0, **variables: str) -> str:
        """Run a docker command and return its output."""
        return self.run("docker", *words, expect=expect, **variables)

    def run(self, *words: str | Path, expect: int = 0, cwd: Path = ROOT, **variables: str) -> str:
        """Run any command against this engine and return its output."""
        done = subprocess.run(
            [str(word) for word in words],
            cwd=cwd,
            env=self.environment | variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert done.returncode == expect, f"exit {done.returncode}: {' '.join(map(str, words))}\n{done.stdout[-5000:]}"
        return done.stdout

    def has(self, plugin: str) -> bool:
        """Return True if the client has a plugin."""
        return subprocess.run(["docker", plugin, "version"], capture_output=True, check=False).returncode == 0

    def paribus(
        self, directory: Path, *words: str, user: int = 4321, options: Sequence[str] = (), expect: int = 0
    ) -> str:
        """Run paribus in a container that writes its results to `directory`; return its output."""
        volumes = (f"--volume={directory}:/runs", f"--volume=paribus-cache-{user}:/cache")
        return self.docker("run", "--rm", f"--user={user}:{user}", *volumes, *options, IMAGE, *words, expect=expect)


def skip_reason() -> str | None:
    """Return the reason why no engine can be started here, None if one can."""
    if os.geteuid() != 0:
        return "only root can start a Docker daemon"
    if Path("/sys/class/net/docker0").exists():
        return "a Docker daemon has its bridge docker0 here already"
    programs = [name for name in ("dockerd", "docker", "debootstrap", "iptables-save") if shutil.which(name) is None]
    if programs:
        return f"no {', '.join(programs)} here"
    if (free := shutil.disk_usage("/var/tmp").free) < BYTES_NEEDED:
        return f"images need 15 GB in /var/tmp, where {free / 1e9:.0f} GB are free"
    return None


@contextmanager
def started_engine() -> Iterator[Engine]:
    """Start an engine in a directory of its own; restore the machine's network afterwards."""
    directory = Path(tempfile.mkdtemp(prefix="paribus-docker-", dir="/var/tmp"))
    directory.chmod(0o755)
    rules = subprocess.run(["iptables-save"], capture_output=True, check=True).stdout
    forwarding = FORWARDING.read_text(encoding="ascii")
    places = [f"--data-root={directory}/data", f"--exec-root={directory}/exec", f"--pidfile={directory}/pid"]
    with (directory / "log").open("wb") as log:
        # Of a session of its own, so that Ctrl-C leaves it alive until its containers are removed.
        command = ["dockerd", *places, f"--host=unix://{directory}/socket"]
        daemon = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    started = Engine(directory)
    try:
        while subprocess.run(["docker", "info"], env=started.environment, capture_output=True, check=False).returncode:
            assert daemon.poll() is None, (directory / "log").read_text(encoding="utf-8")
            time.sleep(0.5)
        try:
            yield started
        finally:
            if containers := started.docker("ps", "--all", "--quiet").split():
                started.docker("rm", "--force", "--volumes", *containers)
            started.docker("network", "prune", "--force")
    finally:
        daemon.terminate()
        try:
            daemon.wait(timeout=60)
        except subprocess.TimeoutExpired:
            daemon.kill()
        subprocess.run(["ip", "link", "delete", "docker0"], check=False)
        subprocess.run(["iptables-restore"], input=rules, check=True)
        FORWARDING.write_text(forwarding, encoding="ascii")
        shutil.rmtree(directory)


def build(engine: Engine, checkout: Path, *words: str, python: str = PYTHON, **variables: str) -> str:
    """Build an image of a checkout by the command `words`; return the builder's output."""
    commit = engine.run(checkout / "docker/commit").strip()
    arguments = (f"PYTHON_IMAGE={python}", TORCH_INDEX, f"PARIBUS_COMMIT={commit}")
    given = [f"--build-arg={argument}" for argument in arguments]
    return engine.run(*words, f"--file={checkout}/docker/Dockerfile", *given, checkout, **variables)
