"""Speed and memory of tokenization beside its peers, on the same text and cores, with the results compared.

python benchmarks/tokenization.py [--corpus english=FILE --corpus multilingual=FILE] [--output FILE] [--quick]

Peers: `pip install -r benchmarks/requirements.txt`; those that are absent are named and left out. A corpus is a file
that `corpus=files` reads; without one, docstrings of installed packages are taken. The vocabulary that paribus trains
on a corpus is given to every peer that can load it. Every measurement is a process of its own, held to its cores; the
contestants take turns. The exit status is 1 where ids or merges differ that must not.
"""

import argparse
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from peers import encoding, learning, start, strings, vocabularies
from peers.contestants import ENCODERS, LEARNERS, STRING_ENCODERS, Contestant
from peers.corpus import documents
from peers.job import available_cores
from peers.text import Text, write

Prepared = tuple[Text, Path, dict[str, str]]
"""Documents, the directory of their vocabularies, and why there are some not."""
PACKAGES = sorted({contestant.function for contestant in (*ENCODERS, *LEARNERS)})
PARTS = ("encoding", "training", "strings", "start")


def main(given: argparse.Namespace) -> int:
    """Measure and write the tables; 1 where something differs."""
    with tempfile.TemporaryDirectory() as scratch:
        corpora = dict(_prepared(given, Path(scratch)))
        sections = list(_sections(given, corpora))
    report = "\n".join([_machine(given), *(f"### {title}\n\n{body}" for title, body, _ in sections)])
    sys.stdout.write(report)
    if given.output:
        given.output.write_text(report, encoding="utf-8")
    return 0 if all(right for _, _, right in sections) else 1


def _prepared(given: argparse.Namespace, scratch: Path) -> Iterator[tuple[str, Prepared]]:
    for name, path in given.corpus or [("docstrings", None)]:
        _report(f"vocabularies of {name}")
        text = write(documents(path), scratch / name, given.megabytes)
        made = scratch / f"{name} vocabularies"
        yield name, (text, made, vocabularies.prepare(text, given.vocabulary, made))


def _sections(given: argparse.Namespace, corpora: dict[str, Prepared]) -> Iterator[tuple[str, str, bool]]:
    def chosen(contestants: Sequence[Contestant]) -> list[Contestant]:
        return [contestant for contestant in contestants if contestant.function in (given.only or PACKAGES)]

    first, made, _ = next(iter(corpora.values()))
    if "encoding" in given.parts:
        for name, (text, directory, missing) in corpora.items():
            sizes = (given.repeats, given.passes, given.warm_megabytes, given.slow_megabytes, given.limit)
            encoded = encoding.Plan(text, directory, given.cores, *sizes)
            yield f"Encoding, {name}", *encoding.measure(encoded, chosen(ENCODERS), missing, _report)
    if "training" in given.parts:
        learned = learning.Plan(first, given.vocabulary, given.cores, given.repeats, given.limit)
        yield f"Training, {next(iter(corpora))}", *learning.measure(learned, chosen(LEARNERS), _report)
    if "strings" in given.parts:
        limits = {"repeats": given.repeats, "limit_s": given.limit, "report": _report}
        yield "Short strings", *strings.measure(first, made, chosen(STRING_ENCODERS), **limits)
    if "start" in given.parts:
        yield "Start", *start.measure(made, given.repeats, _report)


def _machine(given: argparse.Namespace) -> str:
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    return (
        f"{_processor()}, {len(available_cores())} cores, load average {load} at the end; {time.strftime('%Y-%m-%d')}; "
        f"Python {platform.python_version()}, {', '.join(_versions())}. Vocabulary {given.vocabulary:,}, pre-tokens of "
        f"GPT-2. Medians of {given.repeats} processes, least and largest in brackets.\n"
    )


def _versions() -> Iterator[str]:
    for name in [*PACKAGES, "llvmlite", "numba", "numpy"]:
        try:
            yield f"{name} {version(name)}"
        except PackageNotFoundError:
            yield f"{name} is not installed"


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _report(what: str) -> None:
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {what}\n")


def _corpus(argument: str) -> tuple[str, Path]:
    name, _, path = argument.rpartition("=")
    return name or Path(path).name.partition(".")[0], Path(path)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add: Callable[..., object] = parser.add_argument
    add(
        "--corpus", type=_corpus, action="append", help="NAME=FILE; may be given several times; the first is trained on"
    )
    add("--parts", nargs="+", choices=PARTS, default=PARTS)
    add("--only", nargs="+", choices=PACKAGES, help="these contestants")
    add("--vocabulary", type=int, default=32768, help="tokens")
    add("--repeats", type=int, default=5, help="processes for each measurement")
    add("--passes", type=int, default=5, help="warm passes in a process")
    add("--cores", type=int, nargs="+", default=sorted({1, min(2, len(available_cores()))}))
    add("--megabytes", type=float, help="take only the beginning of each corpus")
    add("--slow-megabytes", type=float, default=20.0, help="text that slow peers encode, and that ids are compared on")
    add("--warm-megabytes", type=float, default=50.0, help="a smaller corpus is repeated to this size for warm passes")
    add("--limit", type=float, default=900.0, help="seconds after which a process is given up")
    add("--output", type=Path, help="file for the tables")
    add("--quick", action="store_true", help="a small sample, once: shows that everything works, measures nothing")
    given = parser.parse_args()
    if given.quick:
        quick = {
            "vocabulary": 1024,
            "repeats": 1,
            "passes": 2,
            "megabytes": 0.5,
            "slow_megabytes": 0.2,
            "warm_megabytes": 1.0,
        }
        vars(given).update(quick)
    return given


if __name__ == "__main__":
    sys.exit(main(_arguments()))
