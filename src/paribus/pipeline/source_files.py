"""Files that a stage reads from outside the store, watched while it reads them."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from rich.markup import escape

from paribus.errors import DataError
from paribus.pipeline.graph import Node, named
from paribus.pipeline.root import OutputRoot
from paribus.store import files
from paribus.store.claims import Claim
from paribus.store.files import FileDigests, State, read_object_if_any, was_written

SECONDS_UNTIL_ASKED_AGAIN = (1.0, 4.0, 15.0, 40.0)
Result = TypeVar("Result")


@dataclass(frozen=True)
class SourceFiles:
    """The files of a stage. Texts say what changed, as the begin of a sentence; they are empty where nothing did."""

    node: Node
    root: OutputRoot

    @property
    def mark(self) -> Path:
        """File with the states of the files as the attempt began; removed once they are found untouched after it."""
        return self.root.store.reading(*self.node.place)

    @contextmanager
    def reading(self, held: Claim, say: Callable[[str], None]) -> Iterator[None]:
        """Watch the files in the block: DataError where they are, or were meanwhile, not those of the key.

        However the stage ends, its work stays only if the files are found untouched; whether those of an attempt that
        was killed are, the next one sees, and `say`s if it begins anew.
        """
        changed, before = _patiently(self._look)
        if changed:
            raise DataError(f"{changed} since the command began; give it again when nobody writes there")
        if self.mark.exists() and (written := _written(read_object_if_any(self.mark).get("states", {}), before)):
            self.root.store.discard_work(*self.node.place)
            doubt = f"{written} changed since an attempt began that was killed"
            say(f"[yellow]{named(self.node.name)} begun anew: {escape(doubt)}[/yellow]")
        if before:
            self.mark.parent.mkdir(parents=True, exist_ok=True)
            files.write_json(self.mark, {"states": before})
        try:
            yield
        except BaseException:
            with suppress(OSError, DataError):  # of what is away nothing is known: the mark stays, the next one looks
                if held.held() and self.touched(before):
                    self.root.store.discard_work(*self.node.place)
            raise
        if touched := _patiently(lambda: self.touched(before)):
            self.root.store.discard_work(*self.node.place)
            raise DataError(
                f"{touched} while the stage {self.node.name} read it, so nothing is published; give the command again "
                "when nobody writes there"
            )

    def touched(self, before: Mapping[str, State]) -> str:
        """Contents that changed since `before`, if back again too; without any, forget the mark. Raises DataError."""
        changed, now = self._look()
        written = _written(before, now)
        if changed or written:
            return changed or f"{written} changed"
        self.mark.unlink(missing_ok=True)
        return ""

    def _look(self) -> tuple[str, dict[str, State]]:
        """Contents that are no longer those of the key, and the states of all files; DataError where one is gone."""
        digests = FileDigests(self.root.cache)
        before = self.node.identity["identity"].get("fingerprint", {})
        now = self.node.stage.take_fingerprint(self.node.config, digests)
        names = dict.fromkeys(_differing(f"files of {self.node.name}", before, now))
        return f"{', '.join(names)} changed" if names else "", digests.states


def _patiently(look: Callable[[], Result]) -> Result:
    """Result of `look`, tried again where a file server does not answer: hours of a stage hang on it."""
    for seconds in SECONDS_UNTIL_ASKED_AGAIN:
        try:
            return look()
        except OSError:
            time.sleep(seconds)
    return look()


def _written(before: Mapping[str, State], now: Mapping[str, State]) -> str:
    """Names of the files that were written to, or replaced, or are there only in one."""
    paths = sorted(before.keys() | now.keys())
    both = before.keys() & now.keys()
    return ", ".join(Path(path).name for path in paths if path not in both or was_written(before[path], now[path]))


def _differing(name: str, before: Any, now: Any) -> Iterator[str]:
    """Names of what is not the same in two fingerprints: of mappings, and of lists whose entries begin with one."""
    if before == now:
        return
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        for part in sorted(before.keys() | now.keys()):
            yield from _differing(part, before.get(part), now.get(part))
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        for first, second in zip(before, now, strict=True):
            named = isinstance(first, list) and isinstance(second, list) and first[:1] == second[:1] != []
            yield from _differing(str(first[0]) if named else name, str(first), str(second))
    else:
        yield name
