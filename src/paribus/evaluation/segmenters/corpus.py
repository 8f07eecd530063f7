"""Tokenizers scored as word segmenters against a corpus segmented by hand.

Words and tokens are spans of the UTF-8 bytes of a sentence without its spaces. A token is right when its span is a gold
word's, so one that begins or ends inside a character is wrong, and counts as the predicted word it is.
"""

from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import NamedTuple, Protocol

from paribus.corpus.readers.compression import FRAMES, open_decompressed
from paribus.corpus.readers.lines import decode, lines
from paribus.corpus.readers.record import RecordProblem
from paribus.errors import DataError
from paribus.evaluation.measures.segmentation import SegmentationScores, scores_of_counts

_UNKNOWN = "\ufffd".encode()


class Segmenter(Protocol):
    """What is scored: a `Tokenizer`, or anything that cuts text into byte strings."""

    def tokenize(self, text: str) -> Sequence[bytes]:
        """The bytes of each token, in order."""


class SegmentedWords(NamedTuple):
    """Numbers of words of one sentence."""

    correct: int
    predicted: int
    gold: int


def read_segmented(path: Path) -> list[list[str]]:
    """The words of each line that has any; words are separated by whitespace, the ideographic space included.

    `path` is UTF-8 text, plain or compressed as .gz, .zst or .bz2. Raises DataError naming file and line for a file
    that is missing, truncated, not UTF-8, or without words.
    """
    compression = path.suffix.removeprefix(".")
    sentences: list[list[str]] = []
    try:
        with path.open("rb") as raw:
            for line in lines(open_decompressed(path, raw, compression if compression in FRAMES else None)):
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


def tokenizer_scores(tokenizer: Segmenter, gold: Sequence[Sequence[str]]) -> SegmentationScores:
    """Precision, recall and F1 of the tokens of each sentence against its gold words (SIGHAN bakeoff rule).

    The tokenizer gets the words without spaces between them. Its tokens must spell that text; a token U+FFFD may stand
    for one character that it does not know. Raises DataError naming the sentence (counted from 1) otherwise.
    """
    counts = sentence_counts(tokenizer, gold)
    correct, predicted, words = (sum(column) for column in zip(SegmentedWords(0, 0, 0), *counts, strict=True))
    return scores_of_counts(correct, predicted, words)


def sentence_counts(tokenizer: Segmenter, gold: Sequence[Sequence[str]]) -> list[SegmentedWords]:
    """The numbers behind `tokenizer_scores`, which are summed over sentences, of each; DataError as there."""
    counts = []
    for number, sentence in enumerate(gold, start=1):
        text = "".join(sentence)
        tokens = _token_lengths(tokenizer.tokenize(text), text.encode(), number)
        correct = len(_spans(tokens) & _spans(len(word.encode()) for word in sentence))
        counts.append(SegmentedWords(correct, len(tokens), len(sentence)))
    return counts


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


def _spans(lengths: Iterable[int]) -> set[tuple[int, int]]:
    return set(pairwise(accumulate(lengths, initial=0)))
