"""Table 1 of *Entropy-Driven Pre-Tokenization for Byte-Pair Encoding* (arXiv 2506.15889) on a segmented corpus.

    python -m paribus.evaluation.segmenters.table GOLD [--draws 5] [--model DIRECTORY] [--rest FILE]

GOLD has a line of words separated by spaces; lines are cut into sentences after `。`, `！` and `？`. All sentences are
shuffled with the seed; draw k is the k-th block of `--sentences` of them, so draws share no sentence. The first part of
a draw trains the vocabulary, the rest of it is scored. `--rest` writes the text of the sentences that are in no draw, a
line a sentence: what a language model for `--model` may learn from.
"""

import argparse
import random
import statistics
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from paribus.errors import ConfigurationError, ParibusError
from paribus.evaluation.segmenters.corpus import read_segmented
from paribus.evaluation.segmenters.methods import (
    COUNT_LAMBDAS,
    ENTROPY_ONLY,
    LAMBDAS,
    PREDICTIVE,
    PREDICTIVE_PUNCTUATION,
    PUNCTUATION,
    STANDARD,
    MethodScores,
    count_name,
    lambda_name,
    method_scores,
    model_methods,
    text_methods,
)

PAPER = {
    STANDARD: (46.89, 51.96, 49.30),
    PREDICTIVE: (52.07, 64.69, 57.70),
    ENTROPY_ONLY: (51.28, 60.98, 55.71),
    **dict(
        zip(
            map(count_name, COUNT_LAMBDAS),
            ((28.69, 42.92, 34.39), (41.24, 55.91, 47.47), (54.21, 64.06, 58.73), (52.83, 62.17, 57.12)),
            strict=True,
        )
    ),
}
"""Precision, recall and F1 of the paper. Its text has lost the lambdas of its four triples: they stand, in its order,
beside the reading that gives their range."""
ROWS = (
    STANDARD,
    PUNCTUATION,
    PREDICTIVE,
    PREDICTIVE_PUNCTUATION,
    *map(lambda_name, LAMBDAS),
    *map(count_name, COUNT_LAMBDAS),
    ENTROPY_ONLY,
)
"""Their order in the table."""
_SENTENCE_ENDS = frozenset("。！？")


def sentences_of(lines: Sequence[list[str]]) -> list[list[str]]:
    """Lines of words cut after each word that ends a sentence."""
    return [sentence for line in lines for sentence in _cut(line)]


def _cut(line: list[str]) -> Iterator[list[str]]:
    start = 0
    for end, word in enumerate(line, start=1):
        if word in _SENTENCE_ENDS or end == len(line):
            yield line[start:end]
            start = end


def drawn(
    sentences: Sequence[list[str]], *, size: int, draws: int, seed: int
) -> tuple[list[list[list[str]]], list[list[str]]]:
    """`draws` blocks of `size` shuffled sentences; and the sentences in none of them, in their own order."""
    if size * draws > len(sentences):
        raise ConfigurationError(f"{draws} draws of {size} sentences are more than the corpus' {len(sentences)}")
    order = list(range(len(sentences)))
    random.Random(seed).shuffle(order)
    blocks = [[sentences[i] for i in order[size * k : size * (k + 1)]] for k in range(draws)]
    return blocks, [sentences[i] for i in sorted(order[size * draws :])]


def table(rows: dict[str, list[MethodScores]]) -> str:
    """Markdown, in per cent: means over the draws, with the standard deviation where there are several; differences of
    F1 within draws with the half width of their 95 % interval (Student's t)."""
    heads = ["pre-tokens", "P", "R", "F1", "paper P", "R", "F1", "F1 of the pre-tokens alone"]
    heads += [f"F1 − {name}" for name in (STANDARD, PUNCTUATION)]
    lines: list[list[str]] = []
    for name in sorted(rows, key=ROWS.index):
        lines.append([name, *_measured(rows[name]), *(_difference(rows, name, other) for other in ROWS[:2])])
        lines[-1][4:4] = [f"{value:.2f}" for value in PAPER[name]] if name in PAPER else ["–"] * 3
    body = "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
    return f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}\n{body}"


def _measured(draws: list[MethodScores]) -> list[str]:
    measures = [[getattr(scores.tokens, measure) for scores in draws] for measure in ("precision", "recall", "f1")]
    measures.append([scores.pieces.f1 for scores in draws])
    return [_with_spread(values, 1.0) for values in measures]


def _difference(rows: dict[str, list[MethodScores]], name: str, other: str) -> str:
    from scipy.stats import t

    pairs = zip(rows[name], rows.get(other, []), strict=False)
    differences = [here.tokens.f1 - there.tokens.f1 for here, there in pairs]
    if name == other or not differences:
        return "–"
    number = len(differences)
    return _with_spread(differences, float(t.ppf(0.975, number - 1)) / number**0.5 if number > 1 else 0.0, sign="+")


def _with_spread(shares: Sequence[float], deviations: float, sign: str = "") -> str:
    """Mean and so many standard deviations."""
    spread = f" ± {100 * deviations * statistics.stdev(shares):.2f}" if len(shares) > 1 else ""
    return f"{100 * statistics.mean(shares):{sign}.2f}".replace("-", "−") + spread


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the table to the standard output."""
    options = _parser().parse_args(arguments)
    try:
        sys.stdout.write(_run(options))
    except ParibusError as error:
        sys.exit(f"error: {error}")


def _run(options: argparse.Namespace) -> str:
    sentences = sentences_of(read_segmented(options.gold))
    blocks, rest = drawn(sentences, size=options.sentences, draws=options.draws, seed=options.seed)
    if options.rest:
        options.rest.write_text("".join("".join(words) + "\n" for words in rest), encoding="utf-8")
    fixed = model_methods(options.model) if options.model else {}
    rows: dict[str, list[MethodScores]] = {}
    for number, block in enumerate(blocks, start=1):
        cut = round(options.train * len(block))
        train, test = block[:cut], block[cut:]
        texts = ["".join(words) for words in train]
        methods = text_methods(texts, max_length=options.max_length, min_count=options.min_count) | fixed
        for name, pretokenizer in methods.items():
            sys.stderr.write(f"draw {number} of {options.draws}: {name}\n")
            scores = method_scores(pretokenizer, train, test, vocab_size=options.vocabulary, unknown=options.unknown)
            rows.setdefault(name, []).append(scores)
    return table(rows)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m paribus.evaluation.segmenters.table", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("gold", type=Path, help="segmented corpus, plain or compressed")
    parser.add_argument("--sentences", type=int, default=2255, help="sentences of a draw")
    parser.add_argument("--draws", type=int, default=1, help="draws to average over")
    parser.add_argument("--seed", type=int, default=0, help="of the shuffle")
    parser.add_argument("--train", type=float, default=0.7, help="share of a draw that trains the vocabulary")
    parser.add_argument("--vocabulary", type=int, default=12_000, help="tokens at most")
    parser.add_argument("--unknown", choices=("token", "byte_fallback"), default="token", help="unseen characters")
    parser.add_argument("--max-length", type=int, default=4, help="characters of the longest span")
    parser.add_argument("--min-count", type=int, default=2, help="occurrences that a span needs")
    parser.add_argument("--model", type=Path, help="causal language model of characters, for predictive entropy")
    parser.add_argument("--rest", type=Path, help="file for the text that is in no draw")
    return parser


if __name__ == "__main__":
    main()
