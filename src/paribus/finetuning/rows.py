"""From examples to rows of token ids: question, document, the word that asks for the answer, and the answer.

The parts are encoded apart, so that a row is the same whatever stands next to a part. A document loses its end where
the row would not fit.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from paribus.evaluation.prompts.pairs import Ids
from paribus.finetuning.data import Question, TaskData
from paribus.finetuning.examples import SEPARATOR
from paribus.tokenization import Tokenizer
from paribus.tokenization.encoded_corpus import EncodedCorpusWriter

ASKED = "\n\nAnswer:"


@dataclass(frozen=True)
class FinetuningPrompt:
    """What a model reads before it answers."""

    ids: Ids
    document_bytes: int
    """UTF-8 bytes of the part of the document that is in it."""
    cut: bool
    """Whether the document, or the question too, lost its end."""


class Rows:
    """The prompts and answers of a task in token ids."""

    def __init__(self, tokenizer: Tokenizer, data: TaskData, context_length: int) -> None:
        self.tokenizer = tokenizer
        self._asked = tokenizer.encode(ASKED)
        self._lengths = tokenizer.token_byte_lengths()
        self._context_length = context_length
        longest = max(len(self._answer(question)) for question in data.train) + 1
        self.answer_tokens = min(longest, context_length // 2)
        """Room for an answer and the end-of-document token after it: that of the longest, half a context at most."""
        self._documents = [tokenizer.encode(document)[: context_length + 1] for document in data.documents]

    def answer(self, question: Question) -> Ids:
        """The first accepted answer, cut to its room."""
        return self._answer(question)[: self.answer_tokens - 1]

    def is_cut(self, question: Question) -> bool:
        """Whether the answer loses its end."""
        return len(self._answer(question)) >= self.answer_tokens

    def prompt(self, question: Question) -> FinetuningPrompt:
        """The prompt of a question, of `context_length` - `answer_tokens` tokens at most."""
        room = max(0, self._context_length - self.answer_tokens - len(self._asked))
        asking = self.tokenizer.encode(question.question + SEPARATOR) if question.question else self._asked[:0]
        whole = self._documents[question.document]
        part = whole[: max(0, room - len(asking))]
        cut = len(part) < len(whole) or len(asking) > room
        ids = np.concatenate([asking[:room], part, self._asked])
        return FinetuningPrompt(ids, int(self._lengths[part].sum()), cut)

    def _answer(self, question: Question) -> Ids:
        return self.tokenizer.encode(f" {question.answers[0]}")


def write_rows(directory: Path, rows: Rows, questions: Sequence[Question]) -> dict[str, int]:
    """An encoded corpus of pairs, prompt and answer, of `questions` in order; how many of each were cut."""
    cut = {"documents_cut": 0, "answers_cut": 0}
    with EncodedCorpusWriter(directory, rows.tokenizer, pairs=True) as writer:
        for question in questions:
            prompt, answer = rows.prompt(question), rows.answer(question)
            ids = np.concatenate([prompt.ids, answer])
            size = np.array([len(question.answers[0].encode())])
            writer.append(ids, np.array([len(ids)]), size, np.array([len(prompt.ids)]))
            cut["documents_cut"] += prompt.cut
            cut["answers_cut"] += rows.is_cut(question)
    return cut
