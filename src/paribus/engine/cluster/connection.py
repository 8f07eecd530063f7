"""Joining a Ray cluster, or starting one of this machine alone."""

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from paribus.errors import InfrastructureError

_LONGEST_DIRECTORY = 30
"""Characters of a temporary directory below which the names of Ray's sockets still fit."""
_ATTEMPTS = 3
"""Ray gives up its start after half a minute, which a busy machine may need."""
_ALONE = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
"""What makes Ray bind to the loopback interface alone: a machine of a kind on which it offers no clusters does."""
_SILENT = {"RAY_USAGE_STATS_ENABLED": "0"}


class Connection:
    """A connection of this process to a cluster, opened when it is first needed.

    `address` is as in the configuration; `workers` are the cores of a Ray that is started here, 0 for all.
    """

    def __init__(self, address: str | None, workers: int) -> None:
        self._address, self._workers = address, workers
        self._directory: Path | None = None
        self._ray: Any = None

    @property
    def ray(self) -> Any:
        """The module, connected."""
        self.open()
        return self._ray

    def open(self) -> None:
        """Connect. InfrastructureError where no cluster answers."""
        if self._ray is not None:
            return
        # Ray reads some of these when it is imported.
        os.environ.update(_SILENT if self._address else _SILENT | _ALONE)
        import ray

        if self._address:
            self._join(ray)
        else:
            self._start(ray)
        self._ray = ray

    def nodes(self) -> dict[str, int]:
        """Cores of each living node by its id; nodes without are left out."""
        living = [node for node in self.ray.nodes() if node["Alive"]]
        cores = {node["NodeID"]: int(node["Resources"].get("CPU", 0)) for node in living}
        return {node: count for node, count in cores.items() if count}

    def close(self) -> None:
        """Leave the cluster; what was started here is stopped and its files are removed."""
        if self._ray is not None:
            self._ray.shutdown()
            self._ray = None
        self._forget_directory()

    def _join(self, ray: Any) -> None:
        try:
            ray.init(address=self._address)
        except (ConnectionError, OSError, ValueError, RuntimeError) as error:
            raise InfrastructureError(
                f"engine.address={self._address}: no Ray cluster can be reached ({error}); start one on this machine "
                "with `ray start`, or leave engine.address at null"
            ) from error

    def _start(self, ray: Any) -> None:
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                ray.init(**self._starting())
                return
            except Exception as error:  # Ray has no class of its own for a start that took too long
                ray.shutdown()
                self._forget_directory()
                if attempt == _ATTEMPTS:
                    raise InfrastructureError(f"engine=ray: Ray does not start on this machine: {error}") from error

    def _starting(self) -> dict[str, Any]:
        base = tempfile.gettempdir()
        short = base if len(base) <= _LONGEST_DIRECTORY else "/tmp"
        self._directory = Path(tempfile.mkdtemp(prefix="paribus-ray-", dir=short))
        cores = self._workers or os.cpu_count() or 1
        return {"address": "local", "num_cpus": cores, "include_dashboard": False, "_temp_dir": str(self._directory)}

    def _forget_directory(self) -> None:
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)
            self._directory = None
