"""Commands in the test's process or a new interpreter, a small corpus for them, and a sweep that tests share."""

import fcntl
import io
import json
import subprocess
import sys
from collections.abc import Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path

from paribus.cli import main

OVERRIDES = (
    "scale=tiny",
    "scale.tokens=16K",
    "corpus=files",
    "corpus.paths=[texts/*.jsonl]",
    "corpus.heldout=0.2",
    "corpus.near_duplicate=null",
    "evaluation.continuation_items=16",
    "evaluation.shots=[0,1]",
    "tracking=none",
    "engine.threads=1",
)
SWEEP = ("-m", *OVERRIDES, "arm=bpe,scaffold_lbpe", "ordering=standard,in_context", "duplicates=embedding")
"""What `finished_once` runs: two arms, of which `tokenizer.json` holds the first alone, by two orderings."""
TOPICS = {
    "rivers": "The river carries water and silt from the hills to the sea past stones and reeds",
    "engines": "An engine burns fuel in its cylinders and turns the shaft that drives the wheels",
    "中文": "河流把水和泥沙从山上带到大海经过石头和芦苇最后到达平原上的城市和村庄",
}


def paribus(directory: Path, *arguments: str, expect: int = 0) -> subprocess.CompletedProcess[str]:
    """Run a command in this process; all commands share its fork server."""
    output, errors = io.StringIO(), io.StringIO()
    with chdir(directory), redirect_stdout(output), redirect_stderr(errors):
        status = main(arguments)
    done = subprocess.CompletedProcess(arguments, status, output.getvalue(), errors.getvalue())
    assert status == expect, f"exit {status}\n{done.stdout}\n{done.stderr}"
    return done


def command(arguments: Sequence[str]) -> list[str]:
    """The words that run the command in a new interpreter."""
    return [sys.executable, "-m", "paribus", *arguments]


def finished_once(directory: Path) -> Path:
    """A directory in which `SWEEP` has run, once for all processes that ask."""
    directory.mkdir(exist_ok=True)
    with (directory.parent / f"{directory.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (directory / "finished").exists():
            write_text_files(directory)
            paribus(directory, "run", *SWEEP)
            (directory / "finished").touch()
    return directory


def run_of(root: Path, label: str) -> str:
    """Identifier of the run with this label, such as "bpe standard", of the oldest sweep of a root."""
    paths = sorted((root / "sweeps").glob("*/sweep.json"), key=lambda path: path.stat().st_mtime)
    sweep = json.loads(paths[0].read_text(encoding="utf-8"))
    return str(next(run["run_id"] for run in sweep["runs"] if run["label"] == label))


def training_of(root: Path, label: str) -> Path:
    """Artefact of the training of that run."""
    record = json.loads((root / "runs" / run_of(root, label) / "run.json").read_text(encoding="utf-8"))
    return root / "artifacts/training" / record["stages"]["training"]["key"]


def trained(root: Path, label: str) -> Path:
    """Last checkpoint of that run."""
    return max(training_of(root, label).glob("step_*"))


def write_text_files(directory: Path) -> None:
    """360 short documents on three topics, one of them in Chinese."""
    (directory / "texts").mkdir()
    for name, sentence in TOPICS.items():
        words = sentence.split() if " " in sentence else list(sentence)
        joint = " " if " " in sentence else ""
        lines = []
        for number in range(120):
            turned = words[number % len(words) :] + words[: number % len(words)]
            text = ". ".join(joint.join(turned[i:] + turned[:i]) for i in range(4))
            lines.append(json.dumps({"text": f"{number} {text}."}, ensure_ascii=False))
        (directory / "texts" / f"{name}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_meetings(directory: Path) -> None:
    """Six meetings with a question each, as QMSum's own files have them: four to fine-tune on, two to score."""
    meetings = [
        {
            "meeting_transcripts": [{"speaker": "Ann", "content": f"{sentence} {number}."}],
            "general_query_list": [{"query": "What is it about?", "answer": f"It is about {name}."}],
            "specific_query_list": [],
        }
        for number in range(2)
        for name, sentence in TOPICS.items()
    ]
    for split, part in (("train", meetings[:4]), ("validation", meetings[4:])):
        path = directory / "benchmarks" / "qmsum" / f"{split}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [json.dumps(meeting, ensure_ascii=False) for meeting in part]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
