"""Word segmentation scores as in the SIGHAN bakeoffs, of words and of tokenizers.

A predicted word is right when both its ends are the ends of one gold word. Counts are summed over all sentences
before dividing, so long sentences weigh more. The bakeoff's own script counts the same, but for accidents of the
alignment it uses (docs/segmentation.md).

Of a tokenizer, words and tokens are spans of the UTF-8 bytes of a sentence without its spaces. A token that begins or
ends inside a character is wrong, and counts as the predicted word it is.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from paribus.corpus.paths import compression_of
from paribus.corpus.readers import RecordProblem, decode, lines, open_decompressed
from paribus.errors import DataError

if TYPE_CHECKING:
    from paribus.tokenization import Tokenizer

_UNKNOWN = "\ufffd".encode()


class SegmentedWords(NamedTuple):
    """Numbers of words of one sentence."""

    correct: int
    predicted: int
    gold: int


@dataclass(frozen=True)
class SegmentationScores:
    """Scores in [0, 1] and the counts of words behind them."""

    precision: float
    """Right predicted words over predicted words; 0 without predicted words."""
    recall: float
    """Right predicted words over gold words; 0 without gold words."""
    f1: float
    """Harmonic mean of the two; 0 when both are 0."""
    correct: int
    predicted: int
    gold: int


def segmentation_scores(predicted: Sequence[Sequence[str]], gold: Sequence[Sequence[str]]) -> SegmentationScores:
    """Score segmentations of the same sentences (SIGHAN bakeoff; arXiv 2506.15889, section 4).

    `predicted[i]` and `gold[i]` are the words of sentence i; each list's concatenation must be the same text.
    Raises DataError naming the sentence (counted from 1) where the texts differ or a word is empty.
    """
    if len(predicted) != len(gold):
        raise DataError(f"{len(predicted)} predicted sentences against {len(gold)} gold sentences; they must be pairs")
    correct = 0
    for number, (words, reference) in enumerate(zip(predicted, gold, strict=True), start=1):
        _check(number, words, reference)
        correct += len(_word_spans(map(len, words)) & _word_spans(map(len, reference)))
    return scores_of_counts(correct, sum(map(len, predicted)), sum(map(len, gold)))


def scores_of_counts(correct: int, predicted: int, gold: int) -> SegmentationScores:
    """Precision, recall and F1 of the numbers of right, predicted and gold words."""
    precision = correct / predicted if predicted else 0.0
    recall = correct / gold if gold else 0.0
    f1 = 2 * correct / (predicted + gold) if correct else 0.0
    return SegmentationScores(precision, recall, f1, correct, predicted, gold)


def read_segmented(path: Path) -> list[list[str]]:
    """The words of each line that has any; words are separated by whitespace, the ideographic space included.

    `path` is UTF-8 text, plain or compressed as .gz, .zst or .bz2. Raises DataError naming file and line for a file
    that is missing, truncated, not UTF-8, or without words.
    """
    sentences: list[list[str]] = []
    try:
        with path.open("rb") as raw:
            for line in lines(open_decompressed(path, raw, compression_of(path))):
                text = decode(line.data, line=line.number, offset=line.offset)
                if isinstance(text, RecordProblem):
                    raise DataError(f"{path}, line {text.position}: {text.message}")
                sentences.append(text.split())
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror or error})") from error
    sentences = [words for words in sentences if words]
    if not sentences:
        raise DataError(f"{path}: no words; expected lines of words separated by spaces")
    return sentences


def tokenizer_scores(tokenizer: "Tokenizer", gold: Sequence[Sequence[str]]) -> SegmentationScores:
    """Precision, recall and F1 of the tokens of each sentence against its gold words (SIGHAN bakeoff rule).

    The tokenizer gets the words without spaces between them. Its tokens must spell that text; a token U+FFFD may stand
    for one character that it does not know. Raises DataError naming the sentence (counted from 1) otherwise.
    """
    counts = sentence_counts(tokenizer, gold)
    correct, predicted, words = (sum(column) for column in zip(SegmentedWords(0, 0, 0), *counts, strict=True))
    return scores_of_counts(correct, predicted, words)


def sentence_counts(tokenizer: "Tokenizer", gold: Sequence[Sequence[str]]) -> list[SegmentedWords]:
    """The numbers behind `tokenizer_scores`, which are summed over sentences, of each; DataError as there."""
    counts = []
    for number, sentence in enumerate(gold, start=1):
        text = "".join(sentence)
        tokens = _token_lengths(tokenizer.tokenize(text), text.encode(), number)
        correct = len(_word_spans(tokens) & _word_spans(len(word.encode()) for word in sentence))
        counts.append(SegmentedWords(correct, len(tokens), len(sentence)))
    return counts


def _check(number: int, words: Sequence[str], gold_words: Sequence[str]) -> None:
    if not all(words) or not all(gold_words):
        raise DataError(f"sentence {number} has an empty word")
    text, gold_text = "".join(words), "".join(gold_words)
    if text == gold_text:
        return
    pairs = zip(text, gold_text, strict=False)
    at = next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(text), len(gold_text)))
    raise DataError(
        f"sentence {number}: the predicted words spell another text than the gold words, from character {at + 1} on: "
        f"{text[at : at + 20]!r} against {gold_text[at : at + 20]!r}"
    )


def _token_lengths(tokens: Sequence[bytes], text: bytes, number: int) -> list[int]:
    """Bytes of `text` that each token stands for."""
    lengths, at = [], 0
    for token in tokens:
        length = len(token)
        if token == _UNKNOWN and at < len(text):
            length = len(text[at : at + 4].decode(errors="ignore")[:1].encode())
        elif text[at : at + length] != token:
            break
        lengths.append(length)
        at += length
    if at != len(text) or len(lengths) != len(tokens):
        raise DataError(
            f"sentence {number}: the tokens do not spell the text from its byte {at + 1} on "
            f"({text[at : at + 30].decode(errors='replace')!r}); segmentation needs a tokenizer that loses nothing"
        )
    return lengths


def _word_spans(lengths: Iterable[int]) -> set[tuple[int, int]]:
    return set(pairwise(accumulate(lengths, initial=0)))
