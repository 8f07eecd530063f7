"""The process that does one job: `python -m peers.child JOB RESULT`, both JSON. Started by `peers.job`."""

import hashlib
import importlib
import json
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from peers.job import Job
from peers.text import Text

STRINGS = 2000
_READY = "Ready? 1, 2, 3."
"""Encoded before anything is measured, so that what is loaded late is not taken for encoding."""


def main(job: Job, result: Path) -> None:
    """Do the job and write what was measured."""
    trained = result.with_name("trained")
    kinds: dict[str, Callable[[Job], dict[str, Any]]]
    kinds = {"encode": encode, "strings": strings, "train": partial(train, output=trained)}
    result.write_text(json.dumps({"aside": 0.0, "aside_cpu": 0.0} | kinds[job.kind](job)))


def encode(job: Job) -> dict[str, Any]:
    """A cold pass over the texts, warm passes over copies of them, then digests of the ids."""
    import numpy as np

    texts = list(Text(Path(job.text)).documents(job.limit))
    base = peak_mib()
    started = time.perf_counter()
    built = _built(job)
    if isinstance(built, str):
        return {"problem": built}
    ready = time.perf_counter() - started
    once, copies = built.prepare(texts), built.prepare(texts * job.copies)
    seconds, digests = [], set()
    for number in range(1 + job.passes):
        began = time.perf_counter()
        ids = built.batch(copies if number else once)
        seconds.append(time.perf_counter() - began)
        digests.add(_digest(ids[: len(ids) // (job.copies if number else 1)]))
        del ids
    measured = {"base": base, "ready": ready, "seconds": seconds, "peak": peak_mib(), "digests": sorted(digests)}
    sample = list(Text(Path(job.text)).documents(job.sample))
    ids = np.asarray(built.batch(built.prepare(sample)))
    measured |= {"tokens": len(ids), "digest": _digest(ids)}
    if built.decode is not None:
        measured["decodes"] = built.decode(ids) == "".join(sample)
    return measured


def strings(job: Job) -> dict[str, Any]:
    """Short strings one by one: a cold pass and warm ones."""
    import numpy as np

    texts = Text(Path(job.text)).strings(STRINGS)
    started = time.perf_counter()
    built = _built(job)
    if isinstance(built, str):
        return {"problem": built}
    ready, seconds, one = time.perf_counter() - started, [], built.one
    for _ in range(1 + job.passes):
        began = time.perf_counter()
        for text in texts:
            one(text)
        seconds.append(time.perf_counter() - began)
    ids = np.concatenate([np.asarray(one(text), dtype=np.int64) for text in texts])
    return {"ready": ready, "seconds": seconds, "tokens": len(ids), "digest": _digest(ids)}


def train(job: Job, output: Path) -> dict[str, Any]:
    """Train and save; then, aside, what was learned is brought into one form."""
    from peers import trainers

    importlib.import_module(trainers.PACKAGES.get(job.function, job.function))
    began = time.perf_counter()
    learned = getattr(trainers, job.function)(Text(Path(job.text)), job.vocab_size, job.cores, output, **job.options)
    seconds, peak = time.perf_counter() - began, peak_mib()
    began, began_cpu = time.perf_counter(), time.process_time()
    found = learned()
    measured = {
        "seconds": seconds,
        "peak": peak,
        "merges": [[left.hex(), right.hex()] for left, right in found.merges],
        "tokens": sorted(token.hex() for token in found.tokens),
    }
    return measured | {"aside": time.perf_counter() - began, "aside_cpu": time.process_time() - began_cpu}


def peak_mib() -> float:
    """The most memory this process has held (Linux: of this program only, not of the one that forked it)."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 1024


def _built(job: Job) -> Any:
    """The encoder, ready to go, or why there is none."""
    from peers import encoders

    try:
        built = getattr(encoders, job.function)(Path(job.vocabularies), job.cores, **job.options)
        built.batch(built.prepare([_READY]))
        built.one(_READY)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return built


def _digest(ids: Any) -> str:
    import numpy as np

    digest, piece = hashlib.sha256(), 1 << 20  # in pieces, not to add to the peak of memory
    for start in range(0, len(ids), piece):
        digest.update(np.ascontiguousarray(ids[start : start + piece], dtype=np.uint32).data)
    return digest.hexdigest()[:16]


if __name__ == "__main__":
    main(Job(**json.loads(sys.argv[1])), Path(sys.argv[2]))
