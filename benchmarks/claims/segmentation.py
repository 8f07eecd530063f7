"""The claims of Entropy-Driven Pre-Tokenization, over draws of sentences of a segmented corpus."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from segmenters import (
    COUNT_LAMBDAS,
    ENTROPY_ONLY,
    PAPER,
    PREDICTIVE,
    PUNCTUATION,
    STANDARD,
    drawn,
    method_scores,
    sentences_of,
    text_methods,
)

from claims.claim import Claim, Measured, Measurement, by_student
from claims.papers import ENTROPY_PAPER
from paribus.evaluation.segmentation import read_segmented
from paribus.store.provenance import source_of

BEST = "best lambda"
LAMBDAS = list(COUNT_LAMBDAS)
DRAWS = 5
COMPARED = (
    ("the best lambda is better than standard BPE", BEST, STANDARD),
    ("entropy alone is better than standard BPE", ENTROPY_ONLY, STANDARD),
    ("predictive entropy, of GPT-2, is better than standard BPE", PREDICTIVE, STANDARD),
    ("the best lambda is better than entropy alone", BEST, ENTROPY_ONLY),
    ("the best lambda is better than BPE with punctuation apart", BEST, PUNCTUATION),
)
"""What the paper says, and which method's F1 is compared with which; of the last it has no row."""
GPT2 = (
    "GPT-2, with 24 layers, as the paper has it. Here a model of two layers was trained for minutes; its number is "
    "that of segmentation.md."
)


def segmentation_claims() -> list[Claim]:
    """In the order of the page."""
    return [_claim(*each) for each in COMPARED]


def _claim(says: str, method: str, other: str) -> Claim:
    papers = {name: numbers[2] for name, numbers in PAPER.items()}
    papers[BEST] = max(papers[name] for name in LAMBDAS)
    known = method in papers and other in papers
    return Claim(
        paper=ENTROPY_PAPER,
        where="Table 1",
        says=says,
        size=f"{papers[method] - papers[other]:+.2f} points of F1" if known else "no such row",
        experiment="entropy/table_1",
        number="F1",
        sign=1,
        row={"method": method},
        against={"method": other},
        ours=not known,
        takes=GPT2 if PREDICTIVE in (method, other) else "",
        outside=PREDICTIVE in (method, other),
    )


def measure_segmentation(claims: Sequence[Claim], path: str | None) -> list[Measured]:
    """Differences of F1 within draws, in points, with Student's interval over the draws; None without a corpus.

    None for predictive entropy too, which takes a trained language model.
    """
    scores = _scores(Path(path)) if path else {}
    return [
        (claim, _measured(scores.get(claim.row["method"]), scores.get(claim.against["method"]))) for claim in claims
    ]


def _measured(scores: Sequence[float] | None, against: Sequence[float] | None) -> Measurement | None:
    if scores is None or against is None:
        return None
    differences = [100 * (here - there) for here, there in zip(scores, against, strict=True)]
    error = statistics.stdev(differences) / math.sqrt(DRAWS)
    return replace(by_student(statistics.mean(differences), error, DRAWS - 1), read_by=source_of(Path(__file__)) or "")


def _scores(path: Path) -> dict[str, list[float]]:
    """F1 of each method in each draw."""
    blocks, _ = drawn(sentences_of(read_segmented(path)), draws=DRAWS)
    found: dict[str, list[float]] = {}
    for train, test in blocks:
        methods = text_methods(["".join(words) for words in train])
        for name in (STANDARD, PUNCTUATION, ENTROPY_ONLY, *LAMBDAS):
            found.setdefault(name, []).append(method_scores(methods[name], train, test).tokens.f1)
    return found | {BEST: _chosen([found[name] for name in LAMBDAS])}


def _chosen(lambdas: Sequence[Sequence[float]]) -> list[float]:
    """F1 by draw of the lambda that is best on the other draws, from the F1 of each lambda by draw."""
    return [max(lambdas, key=lambda own: sum(own) - own[draw])[draw] for draw in range(DRAWS)]
