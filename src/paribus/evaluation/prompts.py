"""Stage `prompts`: statistics of a tokenizer on the prompts of the tasks, before a model is trained with it.

Tokens that cross the boundary of context and continuation, and prompts that are longer than the model's context, depend
on tokenizer and tasks alone. Here they are reported while there is time to change something. lm-eval's requests are
encoded once for all checkpoints of a run.

Where a token crosses the boundary between context and continuation, let the tokens of context + continuation agree with
those of the context alone up to byte p of the context; u are these tokens, v the other tokens of the whole text, and r
are the context's bytes from p on. With P over sequences of tokens, the score is

    log P(continuation | context) = log P(v | u) - log P(r | u),

where P(r | u) is the probability that the text goes on with the bytes r after u, in whatever tokens: the sum over all
shortest sequences of tokens whose bytes begin with r. These sequences, the covering of r, exclude each other, so the
sum is a probability (Vieira et al. 2024, arXiv 2412.03719; Phan et al. 2024, arXiv 2410.09303):

    P(r | u) = sum over tokens t that begin with r of P(t | u)
             + sum over tokens t that r begins with, r = t r', of P(t | u) P(r' | u t).

As everywhere, a text's own probability P(v | u) is that of the tokens that the tokenizer gives it, not of all others
with the same bytes; a model that has learnt its tokenizer gives those next to nothing. The score is therefore that of
the continuation in its own tokens, given the context's text after u: never above 0, and log P(v | u) as ever where r is
empty. All choices of an item have the same u and r, so the second term is the same for all of them: it moves measures
that divide by a length, and leaves the order of the choices and their shares to the first.
"""

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from paribus.config.schema import in_tokens
from paribus.errors import DataError, NumericalError
from paribus.evaluation.benchmarks import prompted
from paribus.evaluation.items import read_records, read_task_config
from paribus.evaluation.pairs import Choices, Ids, Pair, PairScores, encode_choices, fit_context, fit_pair
from paribus.stage import JSON, StageContext
from paribus.store.files import write_json
from paribus.tokenization import Tokenizer
from paribus.tokenization.encoded_corpus import EncodedCorpus

if TYPE_CHECKING:
    from paribus.evaluation.scoring import Scorer


PROMPTS_FILE = "prompts.json"
_REPORT_ITEMS = 256


@dataclass(frozen=True)
class ItemTokens:
    """Token counts of an item, without examples before it."""

    tokens: int
    """Tokens of the question and its longest answer."""
    choices: int
    """Continuations that are scored; none where the answer is written."""
    crossing: int
    """Choices of which a token crosses the boundary of context and continuation."""


def build_prompts(context: StageContext) -> dict[str, JSON]:
    """Write `prompts.json`: by task its items, choices, and those that a token crosses; prompts too long, by shots.

    An example counts with the mean length of those that may be drawn. Raises DataError where a token crosses a boundary
    and the tokens' bytes are not those of the text, which has no score then.
    """
    evaluation, model = context.config.evaluation, context.config.model
    length = model.context_length
    if model.context_bytes is not None:
        length = in_tokens(model, EncodedCorpus(context.inputs["tokens"]).bytes_per_token).context_length
    tokenizer = evaluation_tokenizer(context.inputs["tokens"] / "tokenizer")
    spellings = cache(lambda: Spellings(tokenizer.token_bytes()))
    tasks: dict[str, JSON] = {}
    for name in prompted(evaluation.tasks):
        tasks[name] = _summary(context, name, tokenizer, spellings, length)
    write_json(context.output / PROMPTS_FILE, {"tasks": tasks})
    return {"tasks": tasks}


def _summary(
    context: StageContext, name: str, tokenizer: Tokenizer, spellings: "Callable[[], Spellings]", context_length: int
) -> JSON:
    """Counts of the prompts of a task for the record; messages report those that a user may want to change."""
    tasks, listener = context.inputs["tasks"], context.listener
    config, shots = read_task_config(tasks, name), sorted(set(context.config.evaluation.task_shots(name)))

    def encode(file: str) -> list[ItemTokens]:
        items, records = list[ItemTokens](), read_records(tasks / file)
        for number, record in enumerate(records):
            items.append(item_tokens(tokenizer, spellings, record, config["target_delimiter"], (name, number)))
            if len(items) % _REPORT_ITEMS == 0:
                listener.progress(len(items), len(records), unit="items", doing=f"cutting prompts of {name}")
        return items

    items, examples = encode(f"{name}.jsonl"), encode(f"{name}.fewshot.jsonl") if max(shots) else []
    delimiter = len(tokenizer.encode(config.get("fewshot_delimiter", "\n\n")))
    description = len(tokenizer.encode(config.get("description", "")))
    mean = sum(example.tokens + delimiter for example in examples) / max(1, len(examples))
    choices, crossed = sum(item.choices for item in items), sum(item.crossing for item in items)
    if crossed:
        listener.message(
            f"{name}: a token crosses the boundary of context and continuation in {crossed} of {choices} choices; they "
            "are scored as text (docs/evaluation.md)"
        )
    long: dict[str, JSON] = {}
    for number in shots:
        # The last token of an answer is predicted and not read.
        lengths = (description + number * mean + item.tokens - 1 for item in items)
        long[str(number)] = too_long = sum(length > context_length for length in lengths)
        if too_long:
            fewer = "give fewer examples (evaluation.shots_of) or " if number else ""
            listener.message(
                f"{name}: {too_long} of {len(items)} {number}-shot prompts are longer than the model's "
                f"{context_length} tokens and lose their beginning; {fewer}raise model.context_length"
            )
    return {
        "items": len(items),
        "choices": choices,
        "crossed_items": sum(item.crossing > 0 for item in items),
        "crossed_choices": crossed,
        "long_prompts": long,
    }


ItemKey = tuple[str, int]
"""Name of a task with its shots, and number of the document."""


class Spellings:
    """The tokens of a vocabulary in the order of their bytes, without those that have none."""

    def __init__(self, token_bytes: Sequence[bytes]) -> None:
        spellings = sorted((spelling, identity) for identity, spelling in enumerate(token_bytes) if spelling)
        self._of_id = token_bytes
        self._sorted = [spelling for spelling, _ in spellings]
        self._ids = np.array([identity for _, identity in spellings], np.int64)
        self._longest = max(map(len, self._sorted), default=0)

    def text(self, ids: Ids) -> bytes:
        """The bytes of tokens."""
        return b"".join([self._of_id[identity] for identity in ids.tolist()])

    def beginning_with(self, text: bytes) -> NDArray[np.int64]:
        """Ids of the tokens whose bytes begin with `text`."""
        start = bisect_left(self._sorted, text)
        return self._ids[start : bisect_right(self._sorted, text, lo=start, key=lambda spelling: spelling[: len(text)])]

    def within(self, text: bytes) -> list[tuple[int, int]]:
        """Id and length of the tokens whose bytes `text` begins with and is longer than."""
        tokens = []
        for length in range(1, min(len(text), self._longest + 1)):
            start = bisect_left(self._sorted, text[:length])
            end = bisect_right(self._sorted, text[:length], lo=start)
            tokens += [(int(identity), length) for identity in self._ids[start:end]]
        return tokens


def item_tokens(
    tokenizer: Tokenizer, spellings: Callable[[], Spellings], record: Mapping[str, Any], delimiter: str, name: ItemKey
) -> ItemTokens:
    """Token counts of a record that `items.write_task` wrote."""
    texts = _record_texts(record, delimiter)
    encoded = [encode_choices(tokenizer.encode, tokenizer.eos_id, *text) for text in texts]
    tokens = max(len(choices.context) + max(map(len, choices.continuations)) for choices in encoded)
    if "answers" in record:
        return ItemTokens(tokens, 0, 0)
    for choices in encoded:
        if choices.crossing:
            crossed_text(spellings(), choices, name)
    number = sum(len(choices.continuations) for choices in encoded)
    return ItemTokens(tokens, number, sum(choices.crossing for choices in encoded))


def _record_texts(record: Mapping[str, Any], delimiter: str) -> Iterator[tuple[str, list[str]]]:
    """Each context of an item with its continuations, as lm-eval composes them."""
    if "contexts" in record:
        yield from ((text, [delimiter + record["ending"]]) for text in record["contexts"])
    elif "choices" in record:
        yield record["query"], [delimiter + choice for choice in record["choices"]]
    elif "target" in record:
        yield record["query"], [delimiter + record["target"]]
    else:
        yield record["query"], [delimiter + ", ".join(spans) for spans in record["answers"]]


Request = tuple[ItemKey, str, str]
"""Item, context, continuation."""


@dataclass(frozen=True)
class Crossing:
    """An item in which a token crosses the boundary of context and continuation."""

    context: Ids
    """Tokens that its choices are conditioned on."""
    text: bytes
    """Text of the context that all choices begin with."""
    requests: list[int]
    """Places of its choices."""


@dataclass
class EncodedRequests:
    """Pairs to score, and the requests that their scores are summed for."""

    number: int
    """Number of requests."""
    pairs: list[Pair] = field(default_factory=list)
    owners: list[int] = field(default_factory=list)
    """Place of each pair's request."""
    crossings: list[Crossing] = field(default_factory=list)
    spellings: Spellings | None = None
    """Spellings of tokens, where there are crossings."""
    truncated: set[ItemKey] = field(default_factory=set)
    """Items whose prompt lost its beginning."""
    crossed: Counter[ItemKey] = field(default_factory=Counter)
    """Item -> its choices of which a token crosses the boundary."""

    @cached_property
    def _owners(self) -> NDArray[np.int64]:
        return np.array(self.owners, np.int64)

    def add(self, owner: int, parts: Sequence[Pair]) -> None:
        """Add the pairs of the request `owner`, whose scores are summed."""
        self.pairs += parts
        self.owners += [owner] * len(parts)

    def score(self, scorer: "Scorer", progress: Callable[[int], None] = lambda pairs: None) -> PairScores:
        """Score the requests; `progress` gets the number of pairs just finished."""
        scores = scorer.score(self.pairs, progress)
        sums = np.bincount(self._owners, scores.log_probability, minlength=self.number).astype(np.float64)
        greedy = np.ones(self.number, np.bool_)
        np.logical_and.at(greedy, self._owners, scores.greedy)
        if self.spellings is None:
            return PairScores(sums, greedy)
        questions = [(crossing.context, crossing.text) for crossing in self.crossings]
        texts, omitted = text_log_probabilities(scorer, self.spellings, questions)
        for crossing, log_probability in zip(self.crossings, texts, strict=True):
            sums[crossing.requests] -= log_probability
        return PairScores(sums, greedy, omitted)


def encode_requests(tokenizer: Tokenizer, context_length: int, requests: Sequence[Request]) -> EncodedRequests:
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


def crossed_text(spellings: Spellings, choices: Choices, item: ItemKey) -> bytes:
    """The bytes of the context that the choices begin with; DataError where the tokens' bytes are not the text's."""
    rest = spellings.text(choices.rest)
    if rest and all(spellings.text(ids).startswith(rest) for ids in choices.continuations):
        return rest
    raise DataError(
        f"task {item[0]}, item {item[1]}: a token crosses the boundary between context and continuation, and the bytes "
        "of the tokens are not those of the text, so the text has no score: take a tokenizer that keeps text, or "
        "remove the task from evaluation.tasks"
    )


MOST_SEQUENCES = 64
"""Largest number of sequences extended of those that end at the same byte; all there can be of up to eight bytes."""
SMALLEST_SHARE = 1e-7
"""A sequence with a smaller share of the probability of those that end at the same byte is not extended."""


@dataclass
class _Sum:
    """The sum for one text: tokens so far and their log-probability, by the byte where they end."""

    context: Ids
    text: bytes
    open: dict[int, list[tuple[float, tuple[int, ...]]]] = field(default_factory=lambda: defaultdict(list))
    covered: list[float] = field(default_factory=list)
    omitted: float = 0.0

    def take(self, place: int) -> list[tuple[float, tuple[int, ...]]]:
        """Remove the sequences that end at byte `place`; those to extend, the most probable first."""
        sequences = sorted(self.open.pop(place, ()), reverse=True)
        if not sequences:
            return []
        weights = np.exp(np.array([weight for weight, _ in sequences]) - sequences[0][0])
        weights /= weights.sum()
        count = max(1, min(MOST_SEQUENCES, int((weights >= SMALLEST_SHARE).sum())))
        self.omitted += float(weights[count:].sum())
        return sequences[:count]


def text_log_probabilities(
    scorer: "Scorer", spellings: Spellings, questions: Sequence[tuple[Ids, bytes]]
) -> tuple[NDArray[np.float64], float]:
    """log P(r | u) of each question (u, r), and the largest share that was left out of a sum.

    The share assumes that sequences left out go on with r as often as the others. r must not be empty. Where u leaves
    no room for it in the model's context, u loses its beginning. Raises NumericalError for a probability of 0.
    """
    sums = [_Sum(context, text, defaultdict(list, {0: [(0.0, ())]})) for context, text in questions]
    for place in range(max((len(text) for _, text in questions), default=0)):
        steps = [(state, weight, ids) for state in sums for weight, ids in state.take(place)]
        pairs = [_next_pair(state.context, ids, scorer.context_length) for state, _, ids in steps]
        for number, predicted in scorer.predictions(pairs):
            state, weight, ids = steps[number]
            rest = state.text[place:]
            covering = predicted[spellings.beginning_with(rest)]
            if len(covering):
                state.covered.append(weight + float(np.logaddexp.reduce(covering)))
            for identity, length in spellings.within(rest):
                state.open[place + length].append((weight + float(predicted[identity]), (*ids, identity)))
    logs = np.array([np.logaddexp.reduce(state.covered) for state in sums], np.float64)
    if not np.isfinite(logs).all():
        text = sums[int(np.isfinite(logs).argmin())].text
        raise NumericalError(f"the model gives the end of a context, {text!r}, no probability in any of its tokens")
    return logs, max((state.omitted for state in sums), default=0.0)


def _next_pair(context: Ids, ids: tuple[int, ...], context_length: int) -> Pair:
    """A pair whose last token, an arbitrary one, is predicted after the context and `ids`."""
    ids = (*ids, 0)
    if len(context) + len(ids) - 1 <= context_length:
        return Pair(context, np.array(ids, np.int64))
    window = np.concatenate([context, np.array(ids, np.int64)])[-context_length - 1 :]
    return Pair(window[:-1], window[-1:])


def evaluation_tokenizer(directory: Path) -> Tokenizer:
    """A run's tokenizer; instead of BPE-dropout it applies all merges, as the authors of dropout score models.

    Dropout would split a context differently for each of its choices (Provilkov et al. 2020, section 3).
    """
    tokenizer = Tokenizer.load(directory)
    return tokenizer.with_encoder("merge_rank") if tokenizer.settings.encoder == "dropout" else tokenizer
