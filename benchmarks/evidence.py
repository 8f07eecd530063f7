"""Compare what two commits of paribus make on this machine: keys, digests of artefacts, JSON, tables, exported files.

    python benchmarks/evidence.py BASE

BASE runs in a worktree below `build/evidence`, this checkout where it is; both by the command line alone, so that a
module may move. What BASE makes is kept there. Sentences, times, paths and versions are not compared. Exit status 0
where nothing differs but what `ALLOWED` names, else 1.
"""

import argparse
import csv
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
OUTPUT = ROOT / "build" / "evidence"
TINY = (
    "scale=tiny", "scale.tokens=16K", "corpus=files", "corpus.paths=[texts/*.jsonl]", "corpus.heldout=0.2",
    "corpus.near_duplicate=null", "evaluation.continuation_items=16", "evaluation.data=benchmarks", "engine.threads=1",
    "tracking=none",
)  # fmt: skip
TASKS = (
    "boolq", "hellaswag", "openbookqa", "piqa", "siqa", "storycloze", "winogrande", "arc_easy", "arc_challenge",
    "commonsense_qa", "copa", "lambada_openai", "memotrap_proverb_ending", "memotrap_proverb_translation",
    "memotrap_hate_speech_ending", "memotrap_history_of_science", "amazon", "sst2", "yelp", "tweet_hate",
    "tweet_offensive", "ag_news", "dbpedia", "race_high", "race_middle", "squad", "hotpotqa", "drop", "triviaqa",
    "webqs", "nq_open", "triviaqa_open_book", "nq_open_book", "nq_swap",
)  # fmt: skip
RUNS = {
    "encoders": "-m encoder=merge_rank,longest_first,left_to_right,fewest,dropout until=tokens",
    "arms": "-m arm=bpe,lbpe,scaffold_bpe,scaffold_lbpe,wordpiece,unigram,words,bytes,bpe_dropout until=contexts",
    "pretokenizers": "-m pretokenizer=gpt2,gpt2_digits,gpt4,none,punctuation,whitespace,spans until=tokens",
    "entropy": "pretokenizer=spans_entropy until=tokens",
    "orders": "-m ordering=standard,sequential,nn,cluster,in_context,in_context_released,lexical duplicates=minhash "
    "until=contexts",
    "duplicates": "-m ordering=in_context duplicates=off,exact,minhash,embedding neighbours=exact until=contexts",
    "packings": "-m packing=concatenate,best_fit,one_document",
    "budgets": "-m budget=equal_tokens,equal_text,equal_flops,equal_steps budget.steps=8",
    "neox": "model=pythia_410m model.width=32 model.layers=2 model.heads=2 model.ffn_width=64 model.context_length=64",
    "pairs": "corpus=parallel corpus.source=[pairs.jsonl] corpus.source_field=en corpus.target_field=de model=wmt_tiny "
    "packing=pair evaluation=heldout",
    "continued": "start=continued start.tokens=8K",
    "finetuning": "finetuning=scrolls finetuning.tasks=[qmsum] finetuning.answer_characters=32 "
    "finetuning.global_batch=2",
    "arms_and_seeds": "-m tokenizer=bpe,scaffold_bpe seed=0,1,2",
    "tasks": f"evaluation.tasks=[{','.join(TASKS)}] model.context_length=2048 scale.tokens=64K until=prompts",
}
"""Overrides beside `TINY`."""
MASKED = re.compile(r"(seconds?|time|given|began|ended|hours|free|path|root|host|code|command|directory|age|cached)$")
DATE = re.compile(r"\d{4}-\d\d-\d\d")
ALLOWED = {
    r"/report/files/": "pictures are SVG alone, items have files, report.tex has left",
    r"/pictures": "pictures are SVG alone",
    r"/report/notes$": "notes on ended vocabularies, resumed hours, losses of none and equal cuts have left",
    r"/report/findings/\d+/seeds_needed$": "left with the hints of more seeds",
    r"/plan/left/training_device_hours$": "left: device_hours are those of training",
}
"""Pattern of the place of a difference: why it is right."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", help="commit to compare this checkout with")
    base = git("rev-parse", parser.parse_args().base)
    OUTPUT.mkdir(parents=True, exist_ok=True)
    source, kept = OUTPUT / f"source-{base}", OUTPUT / f"{base}.json"
    if not source.exists():
        git("worktree", "add", "--detach", str(source), base)
    if not kept.exists():
        made = make(source, source)
        kept.write_text(json.dumps(made, indent=1), encoding="utf-8")
    found = list(differences(json.loads(kept.read_text(encoding="utf-8")), make(ROOT, source)))
    unexplained = [line for place, line in found if not any(re.search(pattern, place) for pattern in ALLOWED)]
    sys.stdout.writelines(f"{line}\n" for line in unexplained[:100])
    sys.stdout.write(f"{len(found)} differences, of which {len(unexplained)} are not explained\n")
    return 1 if unexplained else 0


def git(*words: str) -> str:
    return subprocess.run(["git", "-C", ROOT, *words], check=True, capture_output=True, text=True).stdout.strip()


def make(source: Path, base: Path) -> dict[str, Any]:
    """Run all commands with the sources below `source`, on inputs that the tests' helpers of `base` write."""
    directory = OUTPUT / ("base" if source == base else "here")
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    python(base, directory, "-c", INPUTS)
    made: dict[str, Any] = {"experiments": {name: experiment(source, directory, name) for name in experiments(source)}}
    for name, words in RUNS.items():
        common = (word for word in TINY if "corpus=parallel" not in words or not word.startswith("corpus.paths"))
        overrides = (*common, *words.split(), f"root={name}")
        paribus(source, directory, "run", *overrides)
        made[name] = {
            "artefacts": artefacts(directory / name),
            **{verb: masked(read(source, directory, verb, *overrides)) for verb in ("plan", "status")},
        }
        if "until=" not in words:
            made[name] |= {
                "report": masked(read(source, directory, "report", *overrides)),
                "tables": tables(directory / name),
                "pictures": sorted(path.name for path in (directory / name).glob("reports/*/figures/*")),
            }
    paribus(source, directory, "export", "last", "exported", "root=continued")
    made["exported"] = digests(directory / "exported")
    paribus(source, directory, "run", "experiment=demo", "root=demo")
    made["demo"] = {"artefacts": artefacts(directory / "demo"), "tables": tables(directory / "demo")}
    return made


INPUTS = """
import json
from pathlib import Path
from support.benchmark_records import RECORDS
from support.command_line import TOPICS, write_corpus, write_meetings

def write(path, records):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record, ensure_ascii=False) + "\\n" for record in records), encoding="utf-8")

write_corpus(Path())
write_meetings(Path())
memotrap = RECORDS["memotrap_proverb_ending"]
for split in ("proverb_ending", "proverb_translation", "hate_speech_ending", "history_of_science"):
    write(Path("benchmarks/memotrap") / f"{split}.jsonl", [memotrap])
for name, record in RECORDS.items():
    for split in ("train", "validation", "test", "dev"):
        write(Path("benchmarks") / name / f"{split}.jsonl", [record])
words = [topic.split() for topic in TOPICS.values()]
turned = [(" ".join(topic[i:] + topic[:i]), " ".join(reversed(topic))) for topic in words for i in range(14)]
write(Path("pairs.jsonl"), [{"en": f"{i} {en}", "de": f"{de} {i}"} for i in range(9) for en, de in turned])
"""


def python(source: Path, directory: Path, *words: str, allowed: tuple[int, ...] = (0,)) -> str:
    paths = {"PYTHONPATH": f"{source}/src:{source}/tests", "PYTHONSAFEPATH": "1"}
    done = subprocess.run(
        [sys.executable, *words], cwd=directory, env=os.environ | paths, capture_output=True, text=True, check=False
    )
    if done.returncode not in allowed:
        raise SystemExit(f"{source}: {' '.join(words)}: exit {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout


def paribus(source: Path, directory: Path, *words: str) -> str:
    return python(source, directory, "-m", "paribus", *words)


def read(source: Path, directory: Path, verb: str, *overrides: str) -> Any:
    """A document; the exit status is 1 where files are missing or runs are not done."""
    return json.loads(python(source, directory, "-m", "paribus", verb, "--json", *overrides, allowed=(0, 1)))


def experiments(source: Path) -> list[str]:
    folder = source / "experiments"
    names = (path.relative_to(folder).with_suffix("").as_posix() for path in sorted(folder.rglob("*.yaml")))
    return [name for name in names if not name.rpartition("/")[2].startswith("_")]


def experiment(source: Path, directory: Path, name: str) -> dict[str, Any]:
    """Return the keys of an experiment's stages and its composed configuration."""
    plan = read(source, directory, "plan", f"experiment={name}")
    job = paribus(source, directory, "run", f"experiment={name}", "--cfg", "job")
    return {"stages": [f"{stage['name']} {stage['key']}" for stage in plan["stages"]], "job": job.splitlines()}


def artefacts(root: Path) -> dict[str, dict[str, str]]:
    """Return the digests of all artefacts: stage and key -> file -> SHA-256."""
    made = {}
    for path in sorted(root.glob("artifacts/*/*/record.json")):
        record = json.loads(path.read_text(encoding="utf-8"))
        made[f"{record['stage']} {record['key']}"] = {name: file["sha256"] for name, file in record["files"].items()}
    return made


def digests(directory: Path) -> dict[str, str]:
    """Return the digests of all files but the card, which names the commit."""
    files = sorted(path for path in directory.rglob("*") if path.is_file() and path.name != "README.md")
    return {str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def tables(root: Path) -> dict[str, list[list[str]]]:
    """Return the lines of the CSV files of the reports, but those of hours."""
    found = {}
    for path in sorted(root.glob("reports/*/*.csv")):
        with path.open(encoding="utf-8", newline="") as file:
            found[path.name] = [line for line in csv.reader(file) if "device_hours" not in line]
    return found


def masked(value: Any) -> Any:
    """Replace sentences and what differs from run to run."""
    if isinstance(value, dict):
        return {key: "…" if MASKED.search(key) else masked(item) for key, item in value.items()}
    if isinstance(value, list):
        return [masked(item) for item in value]
    return "…" if isinstance(value, str) and (" " in value or DATE.fullmatch(value)) else value


def differences(old: Any, new: Any, place: str = "") -> Iterator[tuple[str, str]]:
    """Yield the place of each difference and a line that shows it."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys()):
            yield from differences(old.get(key), new.get(key), f"{place}/{key}")
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for number, pair in enumerate(zip(old, new, strict=True)):
            yield from differences(*pair, f"{place}/{number}")
    elif old != new:
        yield place, f"{place}: {shown(old)} -> {shown(new)}"


def shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)[:120]


if __name__ == "__main__":
    sys.exit(main())
