"""lm-eval's requests as token ids, made once for all checkpoints of a run."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from paribus.errors import DataError
from paribus.evaluation.prompts.boundary import Spellings, text_log_probabilities
from paribus.evaluation.prompts.pairs import Choices, Ids, Pair, PromptEncoder, encode_choices, fit_context, fit_pair

if TYPE_CHECKING:
    from paribus.evaluation.models.scoring import Scorer

Item = tuple[str, int]
"""Name of a task with its shots, and number of the document."""
Request = tuple[Item, str, str]
"""Item, context, continuation."""


@dataclass(frozen=True)
class Crossing:
    """An item of which a token crosses the boundary."""

    context: Ids
    """What its choices are conditioned on."""
    text: bytes
    """What they all begin with, of the context."""
    requests: list[int]
    """Places of its choices."""


class Answers(NamedTuple):
    """Scores of requests, in their order."""

    log_probability: NDArray[np.float64]
    """(requests,) natural logarithm of the continuation's probability; 0 for an empty one."""
    greedy: NDArray[np.bool_]
    """(requests,) whether each token scored is the most probable one."""
    omitted: float
    """Largest share left out of a sum at a boundary (`paribus.evaluation.prompts.boundary`)."""


@dataclass
class EncodedRequests:
    """Pairs to score, and what becomes of their scores."""

    number: int
    """Requests."""
    pairs: list[Pair] = field(default_factory=list)
    owners: list[int] = field(default_factory=list)
    """Place of each pair's request."""
    crossings: list[Crossing] = field(default_factory=list)
    spellings: Spellings | None = None
    """Where there are crossings."""
    truncated: set[Item] = field(default_factory=set)
    """Items whose prompt lost its beginning."""
    crossed: Counter[Item] = field(default_factory=Counter)
    """Item -> its choices of which a token crosses the boundary."""

    @cached_property
    def _owners(self) -> NDArray[np.int64]:
        return np.array(self.owners, np.int64)

    def add(self, owner: int, parts: Sequence[Pair]) -> None:
        """The pairs of a request, whose scores are added up."""
        self.pairs += parts
        self.owners += [owner] * len(parts)

    def score(self, scorer: "Scorer", progress: Callable[[int], None] = lambda pairs: None) -> Answers:
        """What a model says; `progress` is told the number of pairs just finished."""
        scores = scorer.score(self.pairs, progress)
        sums = np.bincount(self._owners, scores.log_probability, minlength=self.number).astype(np.float64)
        greedy = np.ones(self.number, np.bool_)
        np.logical_and.at(greedy, self._owners, scores.greedy)
        if self.spellings is None:
            return Answers(sums, greedy, 0.0)
        questions = [(crossing.context, crossing.text) for crossing in self.crossings]
        texts, omitted = text_log_probabilities(scorer, self.spellings, questions)
        for crossing, log_probability in zip(self.crossings, texts, strict=True):
            sums[crossing.requests] -= log_probability
        return Answers(sums, greedy, omitted)


def encode_requests(tokenizer: PromptEncoder, context_length: int, requests: Sequence[Request]) -> EncodedRequests:
    """Requests in order; those of one item and context that follow each other are its choices.

    Raises DataError where a token crosses a boundary and the tokens' bytes are not those of the text.
    """
    encoded = EncodedRequests(len(requests))
    for (item, context), group in groupby(range(len(requests)), key=lambda place: requests[place][:2]):
        places = list(group)
        texts = [requests[place][2] for place in places]
        choices = encode_choices(tokenizer.encode, tokenizer.eos_id, context, texts)
        longest = max(map(len, choices.continuations))
        if len(choices.context) + longest - 1 > context_length:
            encoded.truncated.add(item)
        if choices.crossing:
            spellings = encoded.spellings = encoded.spellings or Spellings(tokenizer.token_bytes())
            choices = replace(choices, context=fit_context(choices.context, longest, context_length))
            encoded.crossings.append(Crossing(choices.context, crossed_text(spellings, choices, item), places))
            encoded.crossed[item] += choices.crossing
        for place, continuation in zip(places, choices.continuations, strict=True):
            encoded.add(place, fit_pair(Pair(choices.context, continuation), context_length))
    return encoded


def crossed_text(spellings: Spellings, choices: Choices, item: Item) -> bytes:
    """The bytes of the context that the choices begin with; DataError where the tokens' bytes are not the text's."""
    rest = spellings.text(choices.rest)
    if rest and all(spellings.text(ids).startswith(rest) for ids in choices.continuations):
        return rest
    raise DataError(
        f"task {item[0]}, item {item[1]}: a token crosses the boundary between context and continuation, and the bytes "
        "of the tokens are not those of the text, so the text has no score: take a tokenizer that keeps text, or "
        "remove the task from evaluation.tasks"
    )
