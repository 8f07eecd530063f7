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

from claims.claim import DOES_NOT, HOLDS, NOT_RUN, NOT_SHOWN, Claim, Claimed, Found, Untrained, marked, verdict
from claims.detectable import bounds
from claims.measured import Store
from claims.papers import ENTROPY, claims, untrained
from claims.remembered import remembered
from claims.segmentation import DRAWS, segmentation_claims, segmented
from peers.table import table

PAGE = """# Findings

Made by `python benchmarks/findings.py {arguments}`
from stored runs: what the papers claim, and what we measured with small models and real text, all else being equal
([fairness.md](fairness.md)). The English text is that of [paper-statistics.md](paper-statistics.md), the Chinese that
of [segmentation.md](segmentation.md). The papers' models of language have 468M parameters and more, ours 1.4M; that of
translation has 1.2M. A claim that does not show here may hold there.{versions}

Tokens are counted in what a run trains on, without the twentieth of the documents that it holds out;
[paper-statistics.md](paper-statistics.md) counts all documents. So its numbers of the same claim, text and size of
vocabulary differ somewhat from these.

Verdicts: **holds** and **does not**, where the 95 % interval over seeds and items leaves out 0, or where the number is
counted and not sampled; **not shown here**, where the interval holds 0, where what was measured is not what the claim
is of, and with `not run` where fewer than three seeds were trained or nothing was counted, which says nothing of the
claim. `mde` is the smallest true difference that so many seeds and items would show with a power of 80 %
([report.md](report.md)). What is counted has none; two numbers are the least and the greatest that it can be, where of
an interval over seeds its ends alone were kept. Bits per byte are lower where a model is better. Intervals are of one
claim each, not adjusted for how many there are; the tables of the runs adjust. What is `our question` is no claim of
the paper, and not counted among them.
"""
VERSIONS = """ Runs that code of an earlier version made
were read by that code, with the same command, which left what it found in [findings.json](findings.json)."""


def main(given: argparse.Namespace) -> None:
    """Print the page."""
    store = Store(_overrides(given), given.root)
    measured = [(claim, store.found(claim)) for claim in claims()]
    found = remembered([*measured, *segmented(segmentation_claims(), given.pku)], given.found)
    parts = [PAGE.format(arguments=_arguments(given), versions=VERSIONS if given.found else "")]
    parts += sections(found)
    parts.append("## Make them again\n\n" + "\n".join(_commands(given)))
    sys.stdout.write("\n".join(part.rstrip() + "\n" for part in parts))


def sections(found: Sequence[Claimed]) -> list[str]:
    """Of each paper its claims and what was found."""
    made = []
    for paper in dict.fromkeys(claim.paper for claim, _ in found):
        own = [(claim, measured) for claim, measured in found if claim.paper == paper]
        left = [claim for claim in untrained() if claim.paper == paper]
        parts = [f"## {paper}", _counts(own, left), _segmentation(own) if paper == ENTROPY else _table(own)]
        parts += ["\n".join(f"- {note}" for note in notes)] if (notes := _notes(own)) else []
        parts += [_untrained(left)] if left else []
        made.append("\n\n".join(part.rstrip() for part in parts) + "\n")
    return made


def _table(found: Sequence[Claimed]) -> str:
    head = ["where", "what it says", "its size", "measured", "here", "95 % interval", "seeds", "mde", "verdict"]
    return table(head, [_row(*each) for each in found])


def _segmentation(found: Sequence[Claimed]) -> str:
    told = (
        "Of Table 1; all its rows and numbers are in [segmentation.md](segmentation.md). The paper's text has lost its "
        "lambdas: ours, 1, 3, 10 and 100, were chosen since they give its range, and the best of them on these draws, "
        "so what it gains over entropy alone is optimistic."
    )
    head = ["where", "what it says", "its size", "here, points of F1"]
    head += [f"95 % interval over {DRAWS} draws", "mde", "verdict"]
    rows = []
    for claim, one in found:
        row = _row(claim, one, digits=2)
        rows.append([*row[:3], *row[4:6], *row[7:]])
    return f"{told}\n\n{table(head, rows)}"


def _untrained(left: Sequence[Untrained]) -> str:
    head = ["where", "what it says", "its size", "file", "what it takes", "verdict"]
    verdict_of_all = f"{NOT_SHOWN}: {NOT_RUN}"
    rows = [
        [claim.where, claim.says, claim.size, f"`{claim.experiment}`", claim.takes, verdict_of_all] for claim in left
    ]
    told = "Neither trained nor counted here; [costs.md](costs.md) has what trainings take in hours:"
    return f"{told}\n\n{table(head, rows)}"


def _notes(found: Sequence[Claimed]) -> list[str]:
    return [note for claim, _ in found for note in claim.notes()]


def _row(claim: Claim, found: Found | None, digits: int = 4) -> list[str]:
    told = [claim.place, claim.says, claim.size.replace("-", "−"), f"{claim.measure}, `{claim.experiment}`"]
    if found is None:
        return [*told, "–", "–", "–", "–", marked(claim, None)]
    digits = 2 if claim.scale != 1 else digits
    show = partial(_signed, digits=digits, sign="" if claim.number.endswith("_share") else "+")
    interval = "counted" if found.interval is None else " to ".join(map(show, found.interval))
    seeds = str(found.seeds) if found.seeds else "–"
    least = dict.fromkeys(f"{bound:.{digits}f}" for bound in bounds(found) or ())
    mde = " to ".join(least) or "–"
    return [*told, show(found.difference), interval, seeds, mde, marked(claim, found)]


def _signed(value: float, *, digits: int, sign: str) -> str:
    return f"{value:{sign}.{digits}f}".replace("-", "−")


def _counts(found: Sequence[Claimed], left: Sequence[Untrained]) -> str:
    """Of the paper's claims; questions of ours are none."""
    own = [each for each in found if not each[0].ours]
    verdicts = [verdict(*each) for each in own] + [NOT_SHOWN] * len(left)
    counted = [f"{verdicts.count(name)} {name}" for name in (HOLDS, DOES_NOT, NOT_SHOWN) if name in verdicts]
    absent = len(left) + sum(one is None for _, one in own)
    return f"Of {len(verdicts)} claims: {', '.join(counted)}{f' ({absent} of them {NOT_RUN})' if absent else ''}."


def _overrides(given: argparse.Namespace) -> Mapping[str, Sequence[str]]:
    """Of each experiment what its header leaves to the user."""
    text = ["corpus=files", f"corpus.paths=[{given.english}]"]
    pairs = [f"corpus.source=[{given.pairs}]", f"evaluation.data={given.benchmarks}"] if given.pairs else []
    named = dict.fromkeys(claim.experiment for claim in claims())
    own: dict[str, Sequence[str]] = dict.fromkeys(named, text)
    own["findings/translation"] = pairs
    own["findings/continual"] = [*text, f"start.run={given.start}"] if given.start else text
    own["lbpe/table_6"] = [*text, "tokenizer.vocab_size=64K,128K"]
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
