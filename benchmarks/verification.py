"""What it costs to verify artefacts before they are used: the first time, and when they are remembered.

python benchmarks/verification.py [--artefacts 1000] [--files 10] [--bytes 100000] [--directory DIR]
prints a Markdown table. The artefacts are written into a new directory below DIR, which is removed at the end.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from paribus.pipeline.clean import examine
from paribus.store.artifacts import Artifact, Store, file_digests, write_record


def main(artefacts: int, files: int, size: int, directory: Path) -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory(dir=directory) as root:
        store = Store(Path(root))
        made = [_write(store, number, files, size) for number in range(artefacts)]
        time.sleep(2.5)
        rows = [
            ("first use: every byte is hashed", _seconds(lambda: _find(store, made))),
            ("later use, median of 5", sorted(_seconds(lambda: _find(store, made)) for _ in range(5))[2]),
            ("paribus clean --verify", _seconds(lambda: examine(store, lambda line: None))),
        ]
    lines = [f"| {artefacts} artefacts of {files} files of {size} bytes | s |", "|---|---|"]
    lines += [f"| {name} | {seconds:.3f} |" for name, seconds in rows]
    sys.stdout.write("\n".join(lines) + "\n")


def _write(store: Store, number: int, files: int, size: int) -> Artifact:
    key = f"{number:064x}"
    path = store.path("tokens", key)
    path.mkdir(parents=True)
    for name in range(files):
        (path / f"{name}.npy").write_bytes(os.urandom(size))
    write_record(path, {"stage": "tokens", "key": key, "files": file_digests(path), "result": {}})
    return Artifact("tokens", key, path)


def _find(store: Store, made: list[Artifact]) -> None:
    for artifact in made:
        if store.find(artifact.stage, artifact.key) is None:
            raise SystemExit(f"{artifact.path}: {store.damage(artifact.stage, artifact.key)}")


def _seconds(function: Callable[[], object]) -> float:
    begun = time.perf_counter()
    function()
    return time.perf_counter() - begun


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--artefacts", type=int, default=1000)
    parser.add_argument("--files", type=int, default=10)
    parser.add_argument("--bytes", type=int, default=100_000)
    parser.add_argument("--directory", type=Path)
    chosen = parser.parse_args()
    main(chosen.artefacts, chosen.files, chosen.bytes, chosen.directory)
