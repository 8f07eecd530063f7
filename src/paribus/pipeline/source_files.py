"""Files outside the output root that a stage reads: whether they are still those that its key names."""

from dataclasses import dataclass
from pathlib import Path

from paribus.errors import DataError
from paribus.pipeline.graph import Node, changed_files
from paribus.store import atomic
from paribus.store.file_digests import FileDigests, State, was_written
from paribus.tracking.files import read_json


@dataclass(frozen=True)
class SourceFiles:
    """The files of a stage. What is told of them is a sentence that can go on, and empty where nothing is wrong."""

    node: Node
    cache: Path
    mark: Path
    """States of the files when the attempt in hand began; gone once they were found untouched after it."""

    def changed(self) -> str:
        """Whether contents are no longer those of the key; DataError where a file is gone."""
        names = changed_files(self.node, FileDigests(self.cache))
        return f"{', '.join(names)} changed" if names else ""

    def begin(self) -> None:
        """Mark with which files the attempt begins."""
        if states := self._states():
            self.mark.parent.mkdir(parents=True, exist_ok=True)
            atomic.write_json(self.mark, {"states": states})

    def doubt(self) -> str:
        """Whether files were written to since an attempt began that was killed before it could look itself."""
        if not self.mark.exists():
            return ""
        written = _written(read_json(self.mark).get("states", {}), self._states())
        return f"{written} changed since an attempt began that was killed" if written else ""

    def touched(self) -> str:
        """Whether contents changed since the attempt began, also if they are back by now; if not, forgets the mark."""
        before = read_json(self.mark).get("states", {}) if self.mark.exists() else None
        try:
            if changed := self.changed():
                return changed
            now = self._states()
        except DataError as error:
            return str(error)
        if before is not None and (written := _written(before, now)):
            return f"{written} changed"
        self.mark.unlink(missing_ok=True)
        return ""

    def _states(self) -> dict[str, State]:
        digests = FileDigests(self.cache)
        self.node.stage.take_fingerprint(self.node.config, digests)
        return digests.states


def _written(before: dict[str, State], now: dict[str, State]) -> str:
    """Names of the files that were written to, or replaced, or are there only in one."""
    paths = sorted(before.keys() | now.keys())
    both = before.keys() & now.keys()
    return ", ".join(Path(path).name for path in paths if path not in both or was_written(before[path], now[path]))
