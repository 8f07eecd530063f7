"""Speed and memory of tokenization beside its peers, on the same text and cores, with the results compared.

python benchmarks/tokenization.py [--corpus english=FILE --corpus multilingual=FILE] [--quick]

Peers: `pip install -r benchmarks/requirements.txt`; those that are absent are named and left out. A corpus is a file
that `corpus=files` reads; without one, docstrings of installed packages are taken. The vocabulary that paribus trains
on a corpus is given to every peer that can load it. Every measurement is a process of its own, held to its cores; the
contestants take turns. The exit status is 1 where ids or merges differ that must not.
"""

import argparse
import base64
import json
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from machine import described, say, version_of
from tables import number, spread, table
from texts import documents
from tokenizer_peers import (
    BY_LINES,
    ENCODERS,
    IN_BYTE_ORDER,
    LEARNERS,
    Contestant,
    Job,
    Text,
    byte_values,
    sentencepiece_learner,
)

from paribus.tokenization import Tokenizer

REFERENCE, RIVAL = "paribus merge_rank", "gigatoken"
"""Whose ids others must have, and whose speed ratios are taken against."""
PACKAGES = sorted({contestant.package for contestant in (*ENCODERS, *LEARNERS)})
PARTS = ("encoding", "training", "start")
AVAILABLE = sorted(os.sched_getaffinity(0))
"""Cores of this process."""
CORES = (1, 2) if len(AVAILABLE) > 1 else (1,)
PASSES, SLOW_PASSES = 5, 2
SAMPLE_MEGABYTES = 10.0
"""Text that the Unigram and sentencepiece vocabularies are trained on, which would otherwise take most of the time."""
LIMIT_S = 900.0
PEER_START = "import sys, tokenizers; print(tokenizers.Tokenizer.from_file(sys.argv[1]).encode(sys.stdin.read()).ids)"

Verdict = tuple[str, bool]
"""What is said of ids or merges, and whether they are as they must be."""


@dataclass(slots=True)
class Series:
    """The outcomes of a contestant on a number of cores."""

    contestant: Contestant
    cores: int
    outcomes: list[dict[str, Any]] = field(default_factory=list)
    problem: str = ""
    """Why there is no outcome."""

    def values(self, name: str) -> list[Any]:
        """One measured value of each process."""
        return [outcome[name] for outcome in self.outcomes]

    def median(self, name: str) -> float:
        """The median over the processes."""
        return statistics.median(self.values(name))


def main(given: argparse.Namespace) -> int:
    """Measure and write the tables; 1 where something differs."""
    with tempfile.TemporaryDirectory() as scratch:
        found = list(sections(given, Path(scratch)))
    told = (
        f"{described((*PACKAGES, 'numba', 'numpy'))}. Vocabulary {given.vocabulary:,}, pre-tokens of GPT-2. Medians of "
        f"{given.repeats} processes, least and largest in brackets.\n"
    )
    sys.stdout.write("\n".join([told, *(f"### {title}\n\n{body}" for title, body, _ in found)]))
    return 0 if all(right for _, _, right in found) else 1


def sections(given: argparse.Namespace, scratch: Path) -> Iterator[tuple[str, str, bool]]:
    """Title, text and verdict: encoding every corpus, then training on the first, and what starting takes."""
    corpora = {}
    for name, path in given.corpus or [("docstrings", None)]:
        say(f"vocabularies of {name}")
        text = Text.write(documents(path), scratch / name, given.megabytes)
        corpora[name] = text, write_vocabularies(text, given.vocabulary, scratch / f"{name} vocabularies")
    first, (text, vocabularies) = next(iter(corpora.items()))
    if "encoding" in given.parts:
        for name, made in corpora.items():
            yield f"Encoding, {name}", *encoding(*made, given)
    if "training" in given.parts:
        yield f"Training, {first}", *training(text, given)
    if "start" in given.parts:
        yield "Start", *starting(vocabularies, given.repeats)


def write_vocabularies(text: Text, size: int, directory: Path) -> Path:
    """Train the vocabularies of all encoders; `directory` has each in its file format."""
    directory.mkdir(parents=True)
    options: dict[str, Any] = {"vocab_size": size, "pretokenizer": "gpt2"}
    plain = Tokenizer.train(text.documents(), algorithm="bpe", **options)
    plain.save(directory / "bpe")
    Tokenizer.train(text.documents(), algorithm="scaffold_bpe", **options).save(directory / "scaffold_bpe")
    unigram = Tokenizer.train(text.documents(SAMPLE_MEGABYTES), algorithm="unigram", encoder="viterbi", **options)
    unigram.save(directory / "unigram")
    plain.to_huggingface().save_pretrained(directory / "huggingface")
    exported = json.loads((directory / "huggingface" / "tokenizer.json").read_text())
    # Every peer reads `ByteLevel`; paribus itself may write these pre-tokens as a pattern.
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    (directory / "tokenizer.json").write_text(json.dumps(exported | {"pre_tokenizer": byte_level}))
    values = byte_values()
    with (directory / "vocabulary.tiktoken").open("wb") as file:
        for token, identity in exported["model"]["vocab"].items():
            file.write(base64.b64encode(bytes(map(values.__getitem__, token))) + b" %d\n" % identity)
    if version_of("sentencepiece"):
        sample = Text.write(text.documents(), directory / "sample", SAMPLE_MEGABYTES)
        for model in ("bpe", "unigram"):
            sentencepiece_learner(sample, size, 1, directory / f"sentencepiece.{model}", model)
    return directory


def encoding(text: Text, vocabularies: Path, given: argparse.Namespace) -> Verdict:
    """The table of encoding, and whether all ids were right."""
    whole, slow = (sum(text.sizes(limit)) / 1e6 for limit in (None, given.slow_megabytes))
    copies = max(1, math.ceil(given.warm_megabytes / whole - 0.01))

    def job(contestant: Contestant, cores: int) -> Job:
        limits = (given.slow_megabytes, 1, SLOW_PASSES) if contestant.slow else (None, copies, PASSES)
        return Job("encode", contestant, str(text.directory), cores, str(vocabularies), *limits, given.slow_megabytes)

    series = play(ENCODERS, job, given)
    for one in series:
        megabytes, repeated = (slow, 1) if one.contestant.slow else (whole, copies)
        for outcome in one.outcomes:
            # The second pass still fills what the first one left.
            warm = statistics.median(outcome["seconds"][2:])
            outcome |= {"cold": megabytes / outcome["seconds"][0], "warm": repeated * megabytes / warm}
    done = [one for one in series if one.outcomes]
    verdicts = [of_ids(one, done) for one in done]
    rows = [encoding_row(one, done, said) for one, (said, _) in zip(done, verdicts, strict=True)]
    head = ["what", "cores", "cold MB/s", "warm MB/s", "to gigatoken: cold, warm", "peak MiB", "ids"]
    caption = (
        f"{len(text.sizes()):,} documents, {whole:.1f} MB, of which slow contestants encode {slow:.1f}. Cold: the "
        f"first pass of a fresh process over the texts. Warm: {copies} copies of the texts a pass, the median of the "
        "third and later passes. Importing, loading the vocabulary and encoding one short string come before.\n\n"
    )
    return caption + table(head, rows) + left_out(series), all(right for _, right in verdicts)


def encoding_row(one: Series, done: Sequence[Series], said: str) -> list[str]:
    """A line of the table."""
    speeds, rivals = ("cold", "warm"), [other for other in done if other.contestant.name == RIVAL]
    ratios = [
        ", ".join(f"{one.median(speed) / rival.median(speed):.2f}" for speed in speeds)
        for rival in rivals
        if rival.cores == one.cores
    ]
    shown = [spread(one.values(speed)) for speed in speeds]
    return [one.contestant.name, str(one.cores), *shown, *(ratios or [""]), number(one.median("peak")), said]


def of_ids(one: Series, done: Sequence[Series]) -> Verdict:
    """What is said about the ids of a contestant."""
    random_ids = "dropout" in one.contestant.options
    same = [other for other in done if other.contestant == one.contestant]
    passes = {digest for other in same for digests in other.values("digests") for digest in digests}
    if (len(passes) > 1 and not random_ids) or (len(digests_of(same)) > 1 and one.contestant.package == "paribus"):
        return "**differ from pass to pass**", False
    if not all(one.values("decodes")):
        return "**do not decode to the text**", False
    if one.contestant.ids == "own":
        return "own vocabulary", True
    if one.contestant.ids == "decode":
        return "random, decode to the text" if random_ids else "decode to the text", True
    reference = digests_of(other for other in done if other.contestant.name == REFERENCE)
    if not reference:
        return "nothing to compare with", True
    return ("equal", True) if reference == digests_of([one]) else ("**differ**", False)


def digests_of(series: Iterable[Series]) -> set[str]:
    """Of the ids of the sample."""
    return {digest for one in series for digest in one.values("digest")}


def training(text: Text, given: argparse.Namespace) -> Verdict:
    """The table of training, and whether the merges of those that must agree do."""

    def job(contestant: Contestant, cores: int) -> Job:
        return Job("train", contestant, str(text.directory), cores, size=given.vocabulary)

    series = play(LEARNERS, job, given)
    done = [one for one in series if one.outcomes]
    merges = {one.contestant.name: one.values("merges")[0] for one in done}
    for check, checked in ((IN_BYTE_ORDER, "paribus BPE"), (BY_LINES, "gigabpe")):
        if checked in merges:
            say(f"{check.name}, not measured")
            merges[check.name] = measure(job(check, CORES[-1])).get("merges", [])
    verdicts = [of_merges(one, merges) for one in done]
    rows = [training_row(one, done, said) for one, (said, _) in zip(done, verdicts, strict=True)]
    head = ["what", "cores", "process s", "process CPU s", "training s", "to the fastest peer's process", "peak MiB"]
    caption = (
        f"{given.vocabulary:,} tokens from {sum(text.sizes()) / 1e6:.1f} MB. Process: from the start of Python to its "
        "end, the vocabulary saved, kernels compiled before. Training: reading the text, training and saving.\n\n"
    )
    return caption + table([*head, "merges"], rows) + left_out(series), all(right for _, right in verdicts)


def training_row(one: Series, done: Sequence[Series], said: str) -> list[str]:
    """A line of the table."""
    peers = [other for other in done if other.cores == one.cores and other.contestant.package != "paribus"]
    fastest = min((other.median("wall") for other in peers), default=None)
    return [
        one.contestant.name,
        str(one.cores),
        spread(one.values("wall")),
        number(one.median("cpu")),
        spread(one.values("seconds")),
        f"{one.median('wall') / fastest:.2f}" if fastest else "",
        number(one.median("peak")),
        said,
    ]


def of_merges(one: Series, merges: dict[str, list[list[str]]]) -> Verdict:
    """What is said about the merges of a contestant."""
    name, found, plain = one.contestant.name, one.values("merges")[0], merges.get("paribus BPE", [])
    if any(other != found for other in one.values("merges")):
        return "**differ from run to run**", False
    if not found:
        return "other pre-tokens", True
    if name == "tokenizers":
        ours, theirs = ({left + right for left, right in pairs} for pairs in (plain, found))
        return f"other ties: {len(ours & theirs):,} of {len(ours):,} tokens those of paribus BPE", True
    other = {
        "paribus BPE": IN_BYTE_ORDER.name,
        "gigabpe": BY_LINES.name,
        "gigatoken": "tokenizers",
        "paribus Scaffold-BPE": "paribus BPE",
    }[name]
    expected = merges.get(other)
    if not expected:
        return f"nothing to compare with ({other})", True
    common = min(len(expected), len(found))
    equal = next((place for place in range(common) if expected[place] != found[place]), common)
    if equal < common:
        return f"**the first {equal:,} of {common:,} those of {other}**", False
    more = f", and {len(found) - len(expected):,} more" if name == "paribus Scaffold-BPE" else ""
    return f"{equal:,}, those of {other}{more}", True


def starting(vocabularies: Path, repeats: int) -> Verdict:
    """The table of whole processes that encode one sentence, and whether none failed."""
    say("start of paribus tokens encode")
    encode = ["-m", "paribus", "tokens", "encode", str(vocabularies / "bpe")]
    peer = ["-c", PEER_START, str(vocabularies / "tokenizer.json")]
    with tempfile.TemporaryDirectory() as cache:
        taken = {
            "`paribus tokens encode`": [started(encode) for _ in range(repeats)],
            "`paribus --version`": [started(["-m", "paribus", "--version"]) for _ in range(repeats)],
            "Python with `tokenizers`": [started(peer) for _ in range(repeats)],
            "`paribus tokens encode`, first use after installation: kernels are compiled": [
                started(encode, PARIBUS_CACHE=cache)
            ],
        }
    failed = [what for what, values in taken.items() if None in values]
    rows = [[what, "**failed**" if what in failed else spread(values)] for what, values in taken.items()]
    text = "Whole processes that encode one sentence.\n\n" + table(["what", "s"], rows)
    return text, not failed


def started(arguments: Sequence[str], **variables: str) -> Any:
    """Seconds of a process from start to end; None where it fails."""
    began = time.perf_counter()
    text, environment = "All else being equal.", threads(CORES[-1]) | variables
    done = subprocess.run(
        [sys.executable, *arguments], env=environment, input=text, text=True, capture_output=True, check=False
    )
    return time.perf_counter() - began if done.returncode == 0 else None


def play(
    contestants: Iterable[Contestant], job: Callable[[Contestant, int], Job], given: argparse.Namespace
) -> list[Series]:
    """Outcomes of each contestant that was asked for, on each number of cores; who fails once is not asked again.

    The order is drawn anew for every turn, since it matters who came before: one that used little memory lets a virtual
    machine give memory back, which the next one then waits for.
    """
    series = [
        Series(contestant, cores) for contestant in contestants if contestant.package in given.only for cores in CORES
    ]
    for turn in range(given.repeats):
        for one in random.Random(turn).sample(series, len(series)):
            if not one.problem:
                say(f"{turn + 1}/{given.repeats} {one.contestant.name}, cores: {one.cores}")
                outcome = measure(job(one.contestant, one.cores))
                one.problem = outcome.get("problem", "")
                one.outcomes += [] if one.problem else [outcome]
    return series


def measure(job: Job) -> dict[str, Any]:
    """What a fresh process measured, with its seconds from start to end; `problem` says why there is nothing."""
    with tempfile.TemporaryDirectory() as scratch:
        result, child = Path(scratch) / "result.json", Path(__file__).with_name("tokenizer_peers.py")
        held_to = ["taskset", "--cpu-list", ",".join(map(str, AVAILABLE[-job.cores :]))]
        command = [*held_to, sys.executable, str(child), json.dumps(asdict(job)), str(result)]
        before, began = os.times(), time.perf_counter()
        try:
            done = subprocess.run(
                command, env=threads(job.cores), capture_output=True, text=True, timeout=LIMIT_S, check=False
            )
        except subprocess.TimeoutExpired:
            return {"problem": f"more than {LIMIT_S:.0f} s"}
        after, wall = os.times(), time.perf_counter() - began
        if done.returncode != 0:
            return {"problem": (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]}
        measured: dict[str, Any] = json.loads(result.read_text())
    cpu = after.children_user - before.children_user + after.children_system - before.children_system
    return measured | {"wall": wall - measured["aside"], "cpu": cpu - measured["aside_cpu"]}


def threads(cores: int) -> dict[str, str]:
    """This process's environment with the thread counts that libraries read from it."""
    names = ("RAYON_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    parallel = {"TOKENIZERS_PARALLELISM": "true" if cores > 1 else "false"}
    return os.environ | dict.fromkeys(names, str(cores)) | parallel


def left_out(series: Sequence[Series]) -> str:
    """Lines of contestants that were not measured, and why."""
    reasons = {one.contestant.name: one.problem for one in series if one.problem}
    return "".join(["\n" if reasons else "", *(f"- not measured: {name}: {why}\n" for name, why in reasons.items())])


def named_file(argument: str) -> tuple[str, Path]:
    """NAME=FILE."""
    name, _, path = argument.rpartition("=")
    return name or Path(path).name.partition(".")[0], Path(path)


def arguments() -> argparse.Namespace:
    """Those of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add = parser.add_argument
    add("--corpus", type=named_file, action="append", help="NAME=FILE, several times; the first is trained on")
    add("--parts", nargs="+", choices=PARTS, default=PARTS)
    add("--only", nargs="+", choices=PACKAGES, default=PACKAGES, help="these contestants")
    add("--repeats", type=int, default=5, help="processes for each measurement")
    add("--megabytes", type=float, help="take only the beginning of each corpus")
    add("--slow-megabytes", type=float, default=20.0, help="text that slow peers encode, and that ids are compared on")
    add("--quick", action="store_true", help="a small sample, once: shows that everything works, measures nothing")
    # A corpus is repeated to `warm_megabytes`, for a warm pass to take a time that can be measured.
    parser.set_defaults(vocabulary=32_768, warm_megabytes=50.0)
    given = parser.parse_args()
    if given.quick:
        quick = {"vocabulary": 1024, "repeats": 1, "megabytes": 0.5, "slow_megabytes": 0.2, "warm_megabytes": 1.0}
        vars(given).update(quick)
    return given


if __name__ == "__main__":
    sys.exit(main(arguments()))
