"""Table 1 of *Entropy-Driven Pre-Tokenization for Byte-Pair Encoding* (arXiv 2506.15889) on a segmented corpus.

python benchmarks/segmenters.py GOLD [--draws 5] [--model DIRECTORY] [--rest FILE]

GOLD has a line of words separated by spaces; lines are cut into sentences after `。`, `！` and `？`. All sentences are
shuffled with seed 0; draw k is the k-th block of `--sentences` of them, so draws share no sentence. Each method is a
pre-tokenizer with a character BPE whose merges it confines: the first 70 % of a draw train it, the rest is scored.
`--rest` writes the text of the sentences that are in no draw, a line a sentence: what a language model of characters
for `--model` may learn from. docs/segmentation.md has the result.
"""

import argparse
import random
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from scipy.stats import t
from tables import table

from paribus.config.groups.tokenization import SpansPretokenizer
from paribus.evaluation.segmentation import SegmentationScores, read_segmented, tokenizer_scores
from paribus.tokenization import Tokenizer
from paribus.tokenization.predictive import PredictiveEntropySpans
from paribus.tokenization.pretokenize import PatternPretokenizer, Pretokenizer
from paribus.tokenization.spans import SpanPretokenizer, candidate_ngrams

SENTENCES, TRAIN, VOCABULARY = 2255, 0.7, 12_000
"""Sentences of a draw, the share of them that trains a vocabulary, and its tokens at most."""
STANDARD, PUNCTUATION = "standard BPE", "BPE, punctuation apart"
PREDICTIVE, PREDICTIVE_PUNCTUATION = "predictive entropy", "predictive entropy, punctuation apart"
ENTROPY_ONLY = "entropy only"
COMPARED = (STANDARD, PUNCTUATION)
"""With which every method is compared."""
LAMBDAS = {f"PMI + {weight:g} × entropy": weight for weight in (0.1, 1.0, 10.0, 100.0)}
COUNT_LAMBDAS = {f"PMI of counts + {weight:g} × entropy, above 0": weight for weight in (1.0, 3.0, 10.0, 100.0)}
"""Weights beside mutual information of counts; over them F1 goes from that of single characters to that of entropy."""
ROWS = (STANDARD, PUNCTUATION, PREDICTIVE, PREDICTIVE_PUNCTUATION, *LAMBDAS, *COUNT_LAMBDAS, ENTROPY_ONLY)
"""Their order in the table."""
PAPER = {
    STANDARD: (46.89, 51.96, 49.30),
    PREDICTIVE: (52.07, 64.69, 57.70),
    ENTROPY_ONLY: (51.28, 60.98, 55.71),
    "PMI of counts + 1 × entropy, above 0": (28.69, 42.92, 34.39),
    "PMI of counts + 3 × entropy, above 0": (41.24, 55.91, 47.47),
    "PMI of counts + 10 × entropy, above 0": (54.21, 64.06, 58.73),
    "PMI of counts + 100 × entropy, above 0": (52.83, 62.17, 57.12),
}
"""Precision, recall and F1 of the paper. Its text has lost the lambdas of its four triples: they stand, in its order,
beside the reading that gives their range."""
Sentences = Sequence[Sequence[str]]


@dataclass(frozen=True)
class Pieces:
    """A pre-tokenizer as a segmenter: its pieces are the words."""

    pretokenizer: PatternPretokenizer | Pretokenizer

    def tokenize(self, text: str) -> list[bytes]:
        """The bytes of each piece of `text`."""
        return [piece.encode() for piece in self.pretokenizer.pieces(text)]


@dataclass(frozen=True)
class CutAgain:
    """The pieces of a pre-tokenizer, each cut by a pattern too. For comparison only: it cannot be saved."""

    pretokenizer: Pretokenizer
    pattern: PatternPretokenizer

    def pieces(self, text: str) -> list[str]:
        """The pre-tokens of `text` in order."""
        return [part for piece in self.pretokenizer.pieces(text) for part in self.pattern.pieces(piece)]

    def to_state(self) -> dict[str, Any]:
        """Its kind alone."""
        return {"kind": self.pretokenizer.to_state()["kind"]}


@dataclass(frozen=True)
class MethodScores:
    """Scores of one method on the test sentences of one draw: of its tokens, and of the pre-tokens that BPE cuts."""

    tokens: SegmentationScores
    pieces: SegmentationScores


def text_methods(texts: Sequence[str]) -> dict[str, PatternPretokenizer | Pretokenizer]:
    """The methods that need nothing but training texts, by name; the counts of n-grams are shared."""
    shares = SpansPretokenizer(max_length=4, min_count=2)
    counts = replace(shares, information="counts", least_score=0.0)
    found = {settings: candidate_ngrams(texts, settings) for settings in (shares, counts)}

    def spans(settings: SpansPretokenizer, weight: float, *, only: bool = False) -> SpanPretokenizer:
        chosen = replace(settings, entropy_weight=weight, entropy_only=only)
        return SpanPretokenizer.from_ngrams(found[settings], chosen)

    return {
        STANDARD: PatternPretokenizer("none"),
        PUNCTUATION: PatternPretokenizer("gpt2"),
        **{name: spans(shares, weight) for name, weight in LAMBDAS.items()},
        **{name: spans(counts, weight) for name, weight in COUNT_LAMBDAS.items()},
        ENTROPY_ONLY: spans(shares, 0.0, only=True),
    }


def method_scores(pretokenizer: PatternPretokenizer | Pretokenizer, train: Sentences, test: Sentences) -> MethodScores:
    """Train a vocabulary inside the pieces of the training sentences and score it on the test sentences."""
    tokenizer = Tokenizer.train(
        ("".join(words) for words in train),
        vocab_size=VOCABULARY,
        unit="character",
        unknown="token",
        pretokenizer=pretokenizer.name if isinstance(pretokenizer, PatternPretokenizer) else pretokenizer,
    )
    return MethodScores(tokenizer_scores(tokenizer, test), tokenizer_scores(Pieces(pretokenizer), test))


def sentences_of(lines: Sequence[list[str]]) -> list[list[str]]:
    """Lines of words cut after each word that ends a sentence."""
    return [sentence for line in lines for sentence in _cut(line)]


def _cut(line: list[str]) -> Iterator[list[str]]:
    start = 0
    for end, word in enumerate(line, start=1):
        if word in {"。", "！", "？"} or end == len(line):
            yield line[start:end]
            start = end


def drawn(
    sentences: Sequence[list[str]], *, draws: int, size: int = SENTENCES
) -> tuple[list[tuple[list[list[str]], list[list[str]]]], list[list[str]]]:
    """Training and test sentences of each draw; and the sentences in no draw, in their own order."""
    if size * draws > len(sentences):
        sys.exit(f"error: {draws} draws of {size} sentences are more than the corpus' {len(sentences)}")
    order, cut = list(range(len(sentences))), round(TRAIN * size)
    random.Random(0).shuffle(order)
    blocks = [[sentences[at] for at in order[size * draw : size * (draw + 1)]] for draw in range(draws)]
    return [(block[:cut], block[cut:]) for block in blocks], [sentences[at] for at in sorted(order[size * draws :])]


def table_of(rows: dict[str, list[MethodScores]]) -> str:
    """Markdown, in per cent: means over the draws, with the standard deviation where there are several; differences of
    F1 within draws with the half width of their 95 % interval (Student's t)."""
    lines = []
    for name in sorted(rows, key=ROWS.index):
        tokens = [scores.tokens for scores in rows[name]]
        own = [_mean([getattr(scores, measure) for scores in tokens]) for measure in ("precision", "recall", "f1")]
        paper = [f"{value:.2f}" for value in PAPER[name]] if name in PAPER else ["–"] * 3
        pieces = _mean([scores.pieces.f1 for scores in rows[name]])
        differences = ["–" if name == other else _difference(rows[name], rows[other]) for other in COMPARED]
        lines.append([name, *own, *paper, pieces, *differences])
    head = ["pre-tokens", "P", "R", "F1", "paper P", "R", "F1", "F1 of the pre-tokens alone"]
    return table([*head, *(f"F1 − {other}" for other in COMPARED)], lines)


def _difference(ours: Sequence[MethodScores], theirs: Sequence[MethodScores]) -> str:
    differences = [here.tokens.f1 - there.tokens.f1 for here, there in zip(ours, theirs, strict=True)]
    draws = len(differences)
    return _mean(differences, float(t.ppf(0.975, draws - 1)) / draws**0.5 if draws > 1 else 0.0, sign="+")


def _mean(shares: Sequence[float], deviations: float = 1.0, sign: str = "") -> str:
    """Mean and so many standard deviations."""
    spread = f" ± {100 * deviations * statistics.stdev(shares):.2f}" if len(shares) > 1 else ""
    return f"{100 * statistics.mean(shares):{sign}.2f}".replace("-", "−") + spread


def main(given: argparse.Namespace) -> None:
    """Write the table to the standard output."""
    blocks, rest = drawn(sentences_of(read_segmented(given.gold)), draws=given.draws, size=given.sentences)
    if given.rest:
        given.rest.write_text("".join("".join(words) + "\n" for words in rest), encoding="utf-8")
    fixed: dict[str, Pretokenizer] = {}
    if given.model:
        predictive = PredictiveEntropySpans(given.model)
        fixed = {PREDICTIVE: predictive, PREDICTIVE_PUNCTUATION: CutAgain(predictive, PatternPretokenizer("gpt2"))}
    rows: dict[str, list[MethodScores]] = {}
    for number, (train, test) in enumerate(blocks, start=1):
        sys.stderr.write(f"draw {number} of {given.draws}\n")
        texts = ["".join(words) for words in train]
        methods = text_methods(texts) | fixed
        for name, pretokenizer in methods.items():
            rows.setdefault(name, []).append(method_scores(pretokenizer, train, test))
    sys.stdout.write(table_of(rows))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gold", type=Path, help="segmented corpus, plain or compressed")
    parser.add_argument("--sentences", type=int, default=SENTENCES, help="sentences of a draw")
    parser.add_argument("--draws", type=int, default=1, help="draws to average over")
    parser.add_argument("--model", type=Path, help="causal language model of characters, for predictive entropy")
    parser.add_argument("--rest", type=Path, help="file for the text that is in no draw")
    main(parser.parse_args())
