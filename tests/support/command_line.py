"""paribus in a real process, and a small corpus of the user's own for it."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from support.forked import run

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
TOPICS = {
    "rivers": "The river carries water and silt from the hills to the sea past stones and reeds",
    "engines": "An engine burns fuel in its cylinders and turns the shaft that drives the wheels",
    "中文": "河流把水和泥沙从山上带到大海经过石头和芦苇最后到达平原上的城市和村庄",
}


def paribus(directory: Path, *arguments: str, expect: int = 0, forked: bool = True) -> subprocess.CompletedProcess[str]:
    """Run a command, in an interpreter of its own unless it is `forked`: that one's sets are in another order."""
    if forked:
        done = run(["-m", "paribus", *arguments], cwd=directory)
    else:
        done = subprocess.run(command(arguments), cwd=directory, capture_output=True, text=True, check=False)
    assert done.returncode == expect, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def command(arguments: Sequence[str]) -> list[str]:
    """The same in an interpreter of its own."""
    return [sys.executable, "-m", "paribus", *arguments]


def write_corpus(directory: Path) -> None:
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
