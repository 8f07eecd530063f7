"""The papers' claims and what we found: docs/findings.md, from stored runs and statistics.

python benchmarks/findings.py --english FILE [--pairs FILE --benchmarks DIR] [--pku FILE] [--start ID] [--root DIR]
    [--found FILE]

FILE of --english is a corpus that `corpus=files` reads, that of --pairs Multi30k's training pairs in English and German
with the test set below DIR, that of --pku sentences of Chinese words. Trainings are read and never made: runs that are
not there are `not shown here`. Counting tokens takes no training and is done where it is not stored. With --found, what
is found is kept in FILE too, and of runs that are not there FILE says what another command left, with code of another
version say, which finds the runs of its own. FILE of the page is docs/findings.json.
"""

import argparse
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from claims.claim import DOES_NOT, HOLDS, NOT_SHOWN, Claim, Found, marked, verdict
from claims.measured import Store
from claims.papers import claims
from claims.remembered import remembered
from claims.segmentation import segmentation_rows
from peers.table import table

PAGE = """# Findings

Made by `python benchmarks/findings.py {arguments}`
from stored runs: what the papers claim, and what we measured with small models and real text, all else being equal
([fairness.md](fairness.md)). The English text is that of [paper-statistics.md](paper-statistics.md), the Chinese that
of [segmentation.md](segmentation.md). The papers' models of language have 468M parameters and more, ours 1.4M; that of
translation has 1.2M. A claim that does not show here may hold there.{versions}

Verdicts: **holds** and **does not**, where the 95 % interval over seeds and items leaves out 0, or where the number is
counted and not sampled; **not shown here**, where the interval holds 0, and with `not run` where fewer than three seeds
were trained, which says nothing of the claim. `mde` is the smallest true difference that so many seeds and items would
show with a power of 80 % ([report.md](report.md)). Bits per byte are lower where a model is better. Intervals are
of one claim each, not adjusted for how many there are; the tables of the runs adjust.
"""
VERSIONS = """ Runs that code of an earlier version made
were read by that code, with the same command, which left what it found in [findings.json](findings.json)."""


def main(given: argparse.Namespace) -> None:
    """Print the page."""
    store = Store(_overrides(given), given.root)
    found = remembered(((claim, store.found(claim)) for claim in claims()), given.found)
    parts = [PAGE.format(arguments=_arguments(given), versions=VERSIONS if given.found else "")]
    parts += sections(found)
    if given.pku:
        parts.append(segmentation_rows(given.pku))
    parts.append("## Make them again\n\n" + "\n".join(_commands(given)))
    sys.stdout.write("\n".join(part.rstrip() + "\n" for part in parts))


def sections(found: Sequence[tuple[Claim, Found | None]]) -> list[str]:
    """Of each paper its claims and what was found."""
    made = []
    for paper in dict.fromkeys(claim.paper for claim, _ in found):
        own = [(claim, measured) for claim, measured in found if claim.paper == paper]
        made.append(f"## {paper}\n\n{_counts(own)}\n\n{_table(own)}")
    return made


def _table(found: Sequence[tuple[Claim, Found | None]]) -> str:
    head = ["where", "what it says", "its size", "measured", "here", "95 % interval", "seeds", "mde", "verdict"]
    return table(head, [_row(*each) for each in found])


def _row(claim: Claim, found: Found | None) -> list[str]:
    told = [claim.where, claim.says, claim.size, f"{claim.measure}, `{claim.experiment}`"]
    if found is None:
        return [*told, "–", "–", "–", "–", marked(NOT_SHOWN, None)]
    show = partial(_signed, digits=2 if claim.scale != 1 else 4)
    interval = "counted" if found.interval is None else " to ".join(map(show, found.interval))
    seeds = str(found.seeds) if found.seeds else "–"
    mde = "–" if found.detectable is None else f"{found.detectable:.4f}"
    return [*told, show(found.difference), interval, seeds, mde, marked(verdict(claim, found), found)]


def _signed(value: float, *, digits: int) -> str:
    return f"{value:+.{digits}f}".replace("-", "−")


def _counts(found: Sequence[tuple[Claim, Found | None]]) -> str:
    verdicts = [verdict(*each) for each in found if each[1] is not None]
    counted = [f"{verdicts.count(name)} {name}" for name in (HOLDS, DOES_NOT, NOT_SHOWN) if name in verdicts]
    if len(verdicts) < len(found):
        counted.append(f"{len(found) - len(verdicts)} not run")
    return f"Of {len(found)} claims: {', '.join(counted)}."


def _overrides(given: argparse.Namespace) -> Mapping[str, Sequence[str]]:
    """Of each experiment what its header leaves to the user."""
    text = ["corpus=files", f"corpus.paths=[{given.english}]"]
    pairs = [f"corpus.source=[{given.pairs}]", f"evaluation.data={given.benchmarks}"] if given.pairs else []
    named = dict.fromkeys(claim.experiment for claim in claims())
    own: dict[str, Sequence[str]] = dict.fromkeys(named, text)
    own["findings/translation"] = pairs
    own["findings/continual"] = [*text, f"start.run={given.start}"] if given.start else text
    own["scaffold_bpe/figure_5"] = [*text, "tokenizer.vocab_size=32K"]
    return own


def _commands(given: argparse.Namespace) -> Iterator[str]:
    yield "```bash"
    for name, overrides in _overrides(given).items():
        verb, named = "run" if name.startswith("findings/") else "tokens statistics", list(overrides)
        if name == "findings/continual":
            text = [override for override in named if not override.startswith("start.run=")]
            yield _command("run", "findings/encodings", ["seed=5", "tokenizer=bpe", "encoder=merge_rank", *text])
            named = [*text, "start.run=ID"]
        if named:
            yield _command(verb, name, named)
    yield "```"


def _command(verb: str, experiment: str, overrides: Sequence[str]) -> str:
    return f"paribus {verb} experiment={experiment} {' '.join(map(shlex.quote, overrides))}"


def _arguments(given: argparse.Namespace) -> str:
    named = [(name, getattr(given, name)) for name in ("english", "pairs", "benchmarks", "pku", "start", "found")]
    return " ".join(f"--{name} {value}" for name, value in named if value)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--english", required=True, help="corpus of English text")
    parser.add_argument("--pairs", help="training pairs of Multi30k")
    parser.add_argument("--benchmarks", help="directory with the test set of Multi30k")
    parser.add_argument("--pku", help="sentences of Chinese words")
    parser.add_argument("--start", help="run that findings/continual starts from")
    parser.add_argument("--found", type=Path, help="JSON that keeps what is found, for runs that other code made")
    parser.add_argument("--root", default="paribus_runs", help="output root of the runs")
    return parser


if __name__ == "__main__":
    main(_parser().parse_args())
