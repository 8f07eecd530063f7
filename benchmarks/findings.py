"""Write a page of what the papers claim and what stored runs say of it, such as docs/findings.md.

python benchmarks/findings.py PAGE --english FILE [--pairs FILE --benchmarks DIR] [--pku FILE] [--start ID] [--root DIR]

FILE of --english is a corpus that `corpus=files` reads, that of --pairs Multi30k's training pairs in English and
German with the test set below DIR, that of --pku sentences of Chinese words; ID is the run that findings/continual goes
on from. Models are not trained here; token statistics are made where they are missing. A JSON file beside PAGE keeps
the measurements. Those of claims whose runs are missing, since earlier code made them, are taken from it. The commands
at the end of PAGE, which make them all again, stay as they are.
"""

import argparse
from collections.abc import Mapping, Sequence
from functools import partial
from math import floor, log10
from pathlib import Path

from claims.claim import DOES_NOT, HOLDS, NOT_RUN, NOT_SHOWN, OUTSIDE, JudgedClaim, judge_claims
from claims.kept import with_kept
from claims.measured import Store
from claims.papers import ENTROPY_PAPER, claims
from claims.resampled import RESAMPLES
from claims.segmentation import DRAWS, measure_segmentation, segmentation_claims
from tables import table

PAGE = """# Findings

The claims of four papers, and what we measured of each with small models and real text, all else being equal
([fairness.md](fairness.md)). Our language models have 1.4M parameters and a vocabulary of 4,096 tokens, and read 2M
tokens or 6.6 MB of text in contexts of 256 tokens; the papers' have 468M parameters and more. Our model of translation
has 1.2M parameters and reads the 29,000 pairs of Multi30k. Token statistics are of the papers' sizes of vocabulary. The
English text is that of [paper-statistics.md](paper-statistics.md), the Chinese that of
[segmentation.md](segmentation.md). A claim that does not show here may hold at the papers' size.

Verdicts:

- **holds**, **does not hold**: the difference has the sign that the paper claims, or the other one, and column `p` is
  below 0.05. It is adjusted by Holm over the {tests} tests of this page. The sign alone is tested; sizes are shown.
- **not shown here**: it may be chance.
- **outside this design**: our setup (size of the model, length of training, number of starts, what else differs) cannot
  answer, whatever the number. The page says what a test would take; none is made.
- **not run**: nothing was measured, or with fewer than three seeds.

`effect in the paper` is the smallest and the largest difference over its benchmarks, no interval. `difference here` is
that from BPE, from random order, or from the method that the claim names. Bits per byte are lower where a model is
better. Intervals (95 %) and `detectable`, the smallest true difference found with a power of 80 %, are of one claim
each and not adjusted, so an interval may leave out 0 where the verdict is `not shown here`. With trained models they
are over seeds and items. With token statistics they are a bootstrap over the documents that a run trains on
({resamples} resamples), with the vocabulary held fixed. The same documents trained the vocabulary: text that it has not
seen can give numbers outside these intervals. The corpus names no works; pieces of one book are drawn as if they were
independent, so they are also too narrow. How statistics change with the size of the vocabulary and the language is in
paper-statistics.md, which counts the held-out documents too.

Rows with `our question` are no claim of the paper; they are tested, and not counted among its claims.
[findings.json](findings.json) has each tested number with its own p-value, its degrees of freedom and the commits of
the code that trained and read it.
"""
SEGMENTATION = (
    "Of Table 1; [segmentation.md](segmentation.md) has all its rows. The paper's text has lost its lambdas: 1, 3, 10 "
    "and 100 are ours, and give its range. For each draw of sentences the best is chosen on the other draws.\n\n"
)


def main(given: argparse.Namespace) -> None:
    """Write the page and the file beside it."""
    _, again, commands = given.page.read_text(encoding="utf-8").partition("## Make them again")
    store = Store(_overrides(given), given.root)
    measured = [(claim, store.measure(claim)) for claim in claims()]
    measured += measure_segmentation(segmentation_claims(), given.pku)
    judged = judge_claims(with_kept(measured, given.page.with_suffix(".json")))
    parts = [page_top(judged), *sections(judged), again + commands]
    given.page.write_text("\n".join(part.rstrip() + "\n" for part in parts), encoding="utf-8")


def page_top(judged: Sequence[JudgedClaim]) -> str:
    """What the page is of, and what its words mean."""
    return PAGE.format(tests=sum(one.p_adjusted is not None for one in judged), resamples=RESAMPLES)


def sections(judged: Sequence[JudgedClaim]) -> list[str]:
    """The tables of each paper."""
    made = []
    for paper in dict.fromkeys(one.claim.paper for one in judged):
        own = [one for one in judged if one.claim.paper == paper]
        measured, others = ([one for one in own if bool(one.claim.number) == known] for known in (True, False))
        parts = [f"## {paper}", _counts(own), _segmentation(measured) if paper == ENTROPY_PAPER else _table(measured)]
        parts += ["\n".join(notes)] if (notes := _notes(measured)) else []
        parts += [_unmeasured(others)] if others else []
        made.append("\n\n".join(part.rstrip() for part in parts) + "\n")
    return made


def _table(judged: Sequence[JudgedClaim]) -> str:
    head = ["where", "claim", "effect in the paper", "measured", "difference here", "95 % interval", "seeds"]
    return table([*head, "detectable", "p", "verdict"], [_row(one) for one in judged])


def _segmentation(judged: Sequence[JudgedClaim]) -> str:
    head = [
        "where",
        "claim",
        "effect in the paper",
        "difference here, points of F1",
        f"95 % interval over {DRAWS} draws",
    ]
    rows = [[*row[:3], *row[4:6], *row[7:]] for row in map(_row, judged)]
    return SEGMENTATION + table([*head, "detectable", "p", "verdict"], rows)


def _notes(judged: Sequence[JudgedClaim]) -> list[str]:
    """What tests of claims outside the design would take, and which numbers were not made anew."""
    places: dict[str, list[str]] = {}
    for one in judged:
        if one.claim.takes:
            places.setdefault(one.claim.takes, []).append(one.claim.where)
    notes = [f"- {', '.join(dict.fromkeys(named))}, {OUTSIDE}: it takes {takes}" for takes, named in places.items()]
    old = [one.claim.where for one in judged if one.measurement and one.measurement.p_value is None]
    if old:
        notes.append(
            f"- {', '.join(dict.fromkeys(old))}: measured by earlier code, which kept no p-value; not made anew."
        )
    return notes


def _unmeasured(judged: Sequence[JudgedClaim]) -> str:
    head = ["where", "claim", "effect in the paper", "file", "what it takes", "verdict"]
    rows = [
        [one.claim.where, one.claim.says, one.claim.size, f"`{one.claim.experiment}`", one.claim.takes, one.verdict]
        for one in judged
    ]
    return f"Not measured here; [costs.md](costs.md) has what trainings take in hours:\n\n{table(head, rows)}"


def _row(one: JudgedClaim) -> list[str]:
    """Numbers have two digits of the half of their interval."""
    claim, measurement = one.claim, one.measurement
    told = [claim.place, claim.says, claim.size.replace("-", "−"), f"{claim.measure}, `{claim.experiment}`"]
    verdict = f"**{one.verdict}**" if one.verdict in (HOLDS, DOES_NOT) else one.verdict
    if measurement is None or measurement.interval is None or measurement.detectable is None:
        return [*told, *["–"] * 5, verdict]
    low, high = measurement.interval
    digits = max(0, 1 - floor(log10((high - low) / 2)))
    show = partial(_signed, digits=digits)
    p_value = "–" if one.p_adjusted is None else f"{one.p_adjusted:.4f}" if one.p_adjusted >= 0.0001 else "< 0.0001"
    numbers = [show(measurement.difference), f"{show(low)} to {show(high)}", str(measurement.seeds or "–")]
    return [*told, *numbers, f"{measurement.detectable:.{digits}f}", p_value, verdict]


def _signed(value: float, *, digits: int) -> str:
    return f"{value:+.{digits}f}".replace("-", "−")


def _counts(judged: Sequence[JudgedClaim]) -> str:
    """Verdicts of the paper's claims, without questions of ours."""
    verdicts = [one.verdict for one in judged if not one.claim.ours]
    kinds = [name for name in (HOLDS, DOES_NOT, NOT_SHOWN, OUTSIDE, NOT_RUN) if name in verdicts]
    return f"{len(verdicts)} claims: {', '.join(f'{verdicts.count(name)} {name}' for name in kinds)}."


def _overrides(given: argparse.Namespace) -> Mapping[str, Sequence[str]]:
    """Of each experiment what its header leaves to the user."""
    text = ["corpus=files", f"corpus.paths=[{given.english}]"]
    pairs = [f"corpus.source=[{given.pairs}]", f"evaluation.data={given.benchmarks}"] if given.pairs else []
    named = dict.fromkeys(claim.experiment for claim in claims() if claim.number)
    own: dict[str, Sequence[str]] = dict.fromkeys(named, text)
    own["findings/translation"] = pairs
    own["findings/continual"] = [*text, f"start.run={given.start}"]
    own["lbpe/table_6"] = [*text, "tokenizer.vocab_size=64K,128K"]
    return own


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("page", type=Path, help="Markdown file to write anew, with a JSON file beside it")
    parser.add_argument("--english", required=True, help="corpus of English text")
    parser.add_argument("--pairs", help="training pairs of Multi30k")
    parser.add_argument("--benchmarks", help="directory with the test set of Multi30k")
    parser.add_argument("--pku", help="sentences of Chinese words")
    parser.add_argument("--start", default="ID", help="run that findings/continual goes on from")
    parser.add_argument("--root", default="paribus_runs", help="output root of the runs")
    main(parser.parse_args())
