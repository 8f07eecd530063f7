"""Eight processes on one store, some of which are killed or frozen: each artefact is made and published once."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from round_worker import FROZEN, KILLED, STAGES, key_of

from paribus.store.artifacts import Store

PROCESSES, LEASE = 8, 3.0


class Crowd:
    """Processes of which there are always eight until the work is done."""

    def __init__(self, root: Path, rounds: int) -> None:
        self.store, self.log = Store(root, LEASE), root.parent / "log"
        self.command = [sys.executable, str(Path(__file__).with_name("round_worker.py")), str(root), str(rounds), "3.0"]
        self.woken: set[str] = set()
        self.deaths: Counter[int] = Counter()
        self.processes = [subprocess.Popen(self.command) for _ in range(PROCESSES)]

    def work(self) -> None:
        """Replace the killed and wake the frozen, once others have published, until all have ended."""
        while self.processes:
            time.sleep(0.05)
            self._wake()
            ended = [process for process in self.processes if process.poll() is not None]
            self.deaths.update(process.returncode for process in ended)
            again = [subprocess.Popen(self.command) for process in ended if process.returncode == -signal.SIGKILL]
            self.processes = [process for process in self.processes if process not in ended] + again

    def _wake(self) -> None:
        for line in self.lines("frozen"):
            _, stage, number, pid = line.split()
            if line not in self.woken and f"published {stage} {number}" in self.lines("published"):
                os.kill(int(pid), signal.SIGCONT)
                self.woken.add(line)

    def lines(self, kind: str) -> list[str]:
        """Notes of one kind."""
        notes = self.log.read_text(encoding="utf-8").splitlines() if self.log.exists() else []
        return [line for line in notes if line.startswith(f"{kind} ")]


@pytest.mark.parametrize("rounds", [20, pytest.param(200, marks=pytest.mark.slow)])
def test_eight_processes_make_every_artefact_once_and_replace_the_killed(tmp_path: Path, rounds: int) -> None:
    crowd = Crowd(tmp_path / "store", rounds)
    crowd.work()
    killed = sum(number % 10 in KILLED for number in range(rounds))
    frozen = sum(number % 10 in FROZEN for number in range(rounds))
    assert crowd.deaths == {0: PROCESSES, -signal.SIGKILL: killed}
    assert len(crowd.lines("killed")) == killed and len(crowd.lines("frozen")) == frozen
    assert len(crowd.lines("refused")) == frozen
    assert len(crowd.lines("making")) == rounds * len(STAGES) + killed + frozen
    assert Counter(crowd.lines("published")) == {f"published {s} {n}": 1 for n in range(rounds) for s in STAGES}
    for number in range(rounds):
        for stage in STAGES:
            artifact = crowd.store.find(stage, key_of(number, stage))
            assert artifact is not None
            written = {(artifact.path / name).read_text(encoding="utf-8") for name in ("first", "second")}
            assert written == {artifact.record()["result"]}, "the bytes of two makers are mixed"
    assert list((crowd.store.root / "partial").iterdir()) == []
    assert [path.name for path in (crowd.store.root / "claims").iterdir() if not path.name.startswith(".")] == []
