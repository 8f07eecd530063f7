"""Show how runs get on that a scheduler has put elsewhere, where nothing of what they print is seen."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from paribus.pipeline.record.run_record import read_run_record

SECONDS_BETWEEN_LOOKS = 1.0
ELSEWHERE = ("submitit",)
"""Beginnings of the names of launchers whose jobs print into files of their own."""


@contextmanager
def watched(launcher: str, runs: Mapping[str, Path], console: Console) -> Iterator[None]:
    """Until the block ends, print a line for each stage that a run has finished, and for its end.

    `runs` are directories of runs by their labels. Launchers that share the terminal need none of this.
    """
    if not launcher.startswith(ELSEWHERE):
        yield
        return
    watch = _Watch(runs, console)
    jobs = "1 job is" if len(runs) == 1 else f"{len(runs)} jobs are"
    console.print(f"{jobs} with launcher {launcher}", markup=False)
    stop = threading.Event()
    thread = threading.Thread(target=watch.follow, args=(stop,), daemon=True, name="watch-runs")
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        watch.look()


class _Watch:
    def __init__(self, runs: Mapping[str, Path], console: Console) -> None:
        self._runs, self._console = runs, console
        self._seen = {label: self._lines(path) for label, path in runs.items()}

    def follow(self, stop: threading.Event) -> None:
        while not stop.wait(SECONDS_BETWEEN_LOOKS):
            self.look()

    def look(self) -> None:
        for label, path in self._runs.items():
            lines = self._lines(path)
            known = self._seen[label] if lines[:1] == self._seen[label][:1] else []
            for line in (line for line in lines if line not in known):
                self._console.print(f"  {label}: {line}", markup=False, soft_wrap=True)
            self._seen[label] = lines

    @staticmethod
    def _lines(path: Path) -> list[str]:
        """What a run's record says by now; of another attempt the first line is another."""
        record = read_run_record(path)
        if record is None:
            return []
        began = f"began as process {record.get('pid')} on {record.get('host')}"
        stages = [f"{name} {stage['state']}" for name, stage in record["stages"].items()]
        return [began, *stages, *([] if record["status"] == "running" else [record["status"]])]
