"""The claims of Entropy-Driven Pre-Tokenization, over draws of sentences of a segmented corpus."""

import math
import re
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

from scipy.stats import t

from claims.claim import Claim, Claimed, Found
from claims.detectable import detectable
from claims.papers import ENTROPY
from paribus.errors import DataError
from paribus.evaluation.segmenters.corpus import read_segmented
from paribus.evaluation.segmenters.methods import (
    COUNT_LAMBDAS,
    ENTROPY_ONLY,
    PREDICTIVE,
    PUNCTUATION,
    STANDARD,
    count_name,
    method_scores,
    text_methods,
)
from paribus.evaluation.segmenters.table import PAPER, drawn, sentences_of
from paribus.reporting.significance.quantile import TWO_SIDED

PAGE = Path(__file__).resolve().parents[2] / "docs/segmentation.md"
BEST = count_name(COUNT_LAMBDAS[2])
SENTENCES, DRAWS, TRAIN, VOCABULARY = 2255, 5, 0.7, 12_000
COMPARED = (
    ("the best lambda is better than standard BPE", BEST, STANDARD),
    ("entropy alone is better than standard BPE", ENTROPY_ONLY, STANDARD),
    ("predictive entropy, of GPT-2, is better than standard BPE", PREDICTIVE, STANDARD),
    ("the best lambda is better than entropy alone", BEST, ENTROPY_ONLY),
    ("the best lambda is better than BPE with punctuation apart", BEST, PUNCTUATION),
)
"""What the paper says, and which method's F1 is compared with which; of the last it has no row."""
NOTE = (
    "the paper's predictive entropy is that of GPT-2, of 24 layers. What was measured is that of a model of two, "
    "trained here for minutes, which does not judge that. Its difference is that of segmentation.md, and mde is "
    "reckoned from the interval there."
)


def segmentation_claims() -> list[Claim]:
    """In the order of the page."""
    return [_claim(*each) for each in COMPARED]


def _claim(says: str, method: str, other: str) -> Claim:
    known = method in PAPER and other in PAPER
    return Claim(
        paper=ENTROPY,
        where="Table 1",
        says=says,
        size=f"{PAPER[method][2] - PAPER[other][2]:+.2f} points of F1" if known else "no such row",
        experiment="entropy/table_1",
        number="F1",
        sign=1,
        row={"method": method},
        against={"method": other},
        ours=not known,
        stands_in=PREDICTIVE in (method, other),
        note=NOTE if PREDICTIVE in (method, other) else "",
    )


def segmented(claims: Sequence[Claim], path: str | None) -> list[Claimed]:
    """Differences of F1 within draws, in points, with Student's interval over the draws; None without a corpus.

    What a language model does is taken from the page that has it: training one is no part of this.
    """
    scores = _scores(Path(path)) if path else {}
    return [(claim, _found(claim, scores)) for claim in claims]


def _found(claim: Claim, scores: Mapping[str, Sequence[float]]) -> Found | None:
    method, other = claim.row["method"], claim.against["method"]
    if method == PREDICTIVE:
        return printed(PAGE.read_text(encoding="utf-8"), method)
    if not scores:
        return None
    differences = [100 * (here - there) for here, there in zip(scores[method], scores[other], strict=True)]
    return _over_draws(statistics.mean(differences), statistics.stdev(differences) / math.sqrt(DRAWS))


def printed(page: str, method: str) -> Found:
    """What the table of `page` has of a method's difference from standard BPE; DataError where it has none."""
    row = re.search(rf"^\| {re.escape(method)} \|.*$", page, re.MULTILINE)
    told = re.search(r"([+−]\d+\.\d+) ± (\d+\.\d+)", row[0]) if row else None
    if told is None:
        raise DataError(f"{PAGE}: no row of {method!r} with its difference from {STANDARD!r}")
    middle, half = float(told[1].replace("−", "-")), float(told[2])
    return _over_draws(middle, half / float(t.ppf(TWO_SIDED, DRAWS - 1)))


def _over_draws(middle: float, error: float) -> Found:
    half = float(t.ppf(TWO_SIDED, DRAWS - 1)) * error
    return Found(middle, (middle - half, middle + half), DRAWS, detectable(error, DRAWS - 1))


def _scores(path: Path) -> dict[str, list[float]]:
    """F1 of each method in each draw."""
    blocks, _ = drawn(sentences_of(read_segmented(path)), size=SENTENCES, draws=DRAWS, seed=0)
    found: dict[str, list[float]] = {}
    for block in blocks:
        cut = round(TRAIN * len(block))
        train, test = block[:cut], block[cut:]
        methods = text_methods(["".join(words) for words in train], max_length=4, min_count=2)
        for name in (STANDARD, PUNCTUATION, ENTROPY_ONLY, *map(count_name, COUNT_LAMBDAS)):
            tokens = method_scores(methods[name], train, test, vocab_size=VOCABULARY, unknown="token").tokens
            found.setdefault(name, []).append(tokens.f1)
    return found
