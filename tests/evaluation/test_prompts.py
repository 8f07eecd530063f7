"""Scores where a token crosses the boundary of context and continuation, against all sequences of tokens there are."""

import itertools
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from paribus.config.groups.evaluation import EvaluationConfig
from paribus.evaluation import prompts
from paribus.evaluation.pairs import encode_choices
from paribus.evaluation.prompts import Spellings, build_prompts, encode_requests, text_log_probabilities
from paribus.evaluation.rows import choice_bits
from paribus.evaluation.scoring import Scorer
from paribus.evaluation.stage import build_scores, build_tasks
from paribus.tokenization import Tokenizer
from support.evaluations import (
    WORDS,
    brute_force,
    evaluation_context,
    tiny_model,
    write_checkpoints,
    write_drawn_corpus,
)

CONTEXT_LENGTH = 16
TOKENS = (b"a", b"b", b"aa", b"ab", b"bba", b"aab")
EOS = len(TOKENS)


class Longest:
    """The longest token from the left, so that a token may cross any boundary."""

    def __init__(self, tokens: Sequence[bytes] = TOKENS) -> None:
        self.tokens, self.eos_id = tokens, len(tokens)

    def encode(self, text: str) -> NDArray[np.int64]:
        rest, ids = text.encode(), []
        while rest:
            ids.append(max((i for i, t in enumerate(self.tokens) if rest.startswith(t)), key=lambda i: self.tokens[i]))
            rest = rest[len(self.tokens[ids[-1]]) :]
        return np.array(ids, np.int64)

    def token_bytes(self) -> list[bytes]:
        return [*self.tokens, b""]


def probability_of_text(model: Any, before: list[int], text: bytes) -> float:
    """P(the text goes on with `text`), over every sequence of as many tokens as it has bytes."""
    total = 0.0
    for ids in itertools.product(range(EOS + 1), repeat=len(text)):
        spelled = itertools.takewhile(lambda identity: identity != EOS, ids)
        if b"".join(TOKENS[identity] for identity in spelled).startswith(text):
            total += math.exp(brute_force(model, before, list(ids))[0])
    return total


@pytest.fixture
def model() -> Any:
    return tiny_model(EOS + 1, CONTEXT_LENGTH)


def score(model: Any, requests: list[tuple[str, str]]) -> list[float]:
    """Scores of requests, all of one item."""
    encoded = encode_requests(Longest(), CONTEXT_LENGTH, [(("t", 0), *request) for request in requests])
    scores: list[float] = encoded.score(Scorer(model, 512)).log_probability.tolist()
    return scores


def test_the_probability_of_bytes_is_that_of_all_sequences_of_tokens_with_them(model: Any) -> None:
    before, spellings = [EOS, 1, 3], Spellings(Longest().token_bytes())
    for text in (b"a", b"b", b"ab", b"bb", b"aab"):
        logs, omitted = text_log_probabilities(Scorer(model, 192), spellings, [(np.array(before), text)])
        assert math.exp(logs[0]) == pytest.approx(probability_of_text(model, before, text), rel=1e-5), text
        assert omitted == 0.0


def test_a_continuation_is_scored_given_the_text_of_its_context(model: Any) -> None:
    assert [Longest().encode(text).tolist() for text in ("ba", "baab")] == [[1, 0], [1, 5]]
    joint = brute_force(model, [1], [5])[0]
    given = math.log(probability_of_text(model, [1], b"a"))
    assert score(model, [("ba", "ab")]) == [pytest.approx(joint - given, abs=1e-5)]


def test_choices_of_an_item_are_scored_after_one_context_in_the_order_of_their_joint_probabilities(model: Any) -> None:
    choices = ["a", "b", "ab"]
    assert [Longest().encode("bb" + text).tolist() for text in ("", *choices)] == [[1, 1], [4], [1, 1, 1], [4, 1]]
    encoded = encode_choices(Longest().encode, EOS, "bb", choices)
    assert (encoded.context.tolist(), encoded.rest.tolist(), encoded.crossing) == ([EOS], [1, 1], 2)
    joint = [brute_force(model, [EOS], ids.tolist())[0] for ids in encoded.continuations]
    scores = score(model, [("bb", choice) for choice in choices])
    given = math.log(probability_of_text(model, [EOS], b"bb"))
    assert scores == pytest.approx([value - given for value in joint], abs=1e-5)
    assert choice_bits(scores, 2) == pytest.approx(choice_bits(joint, 2), abs=1e-5)


def test_choices_of_a_context_that_is_too_long_lose_the_same_beginning(model: Any) -> None:
    requests = [(("t", 0), "b" * 40 + "aba", continuation) for continuation in ("ab", "abb" * 4)]
    encoded = encode_requests(Longest(), CONTEXT_LENGTH, requests)
    assert encoded.truncated == {("t", 0)}
    assert {pair.context.tobytes() for pair in encoded.pairs} == {encoded.crossings[0].context.tobytes()}
    assert all(len(pair.context) + len(pair.continuation) - 1 <= CONTEXT_LENGTH for pair in encoded.pairs)
    assert np.isfinite(encoded.score(Scorer(model, 256)).log_probability).all()


def test_of_many_sequences_the_probable_are_followed_and_the_share_of_the_rest_is_returned(
    model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    question = [(np.array([EOS]), b"aabaabba")]
    scorer, spellings = Scorer(model, 1024), Spellings(Longest().token_bytes())
    (exact,), nothing = text_log_probabilities(scorer, spellings, question)
    monkeypatch.setattr(prompts, "MOST_SEQUENCES", 3)
    (estimate,), omitted = text_log_probabilities(scorer, spellings, question)
    assert nothing < 1e-6 < omitted < 0.5
    assert exact - 2 * omitted < estimate < exact


EVALUATION = EvaluationConfig(continuation_items=20, heldout_documents=10)
TEXTS = [" ".join(WORDS)] * 3 + [" ".join(reversed(WORDS))] * 3


@pytest.fixture(params=["crossing", "words", "bytes"])
def tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    end = ["<|endoftext|>"]
    if request.param == "bytes":
        return Tokenizer.train([], algorithm="bytes", special_tokens=end)
    pretokenizer = "none" if request.param == "crossing" else "gpt2"
    return Tokenizer.train(TEXTS, vocab_size=300, pretokenizer=pretokenizer, special_tokens=end)


def test_the_counts_before_training_are_those_of_scoring(tmp_path: Path, tokenizer: Tokenizer) -> None:
    write_drawn_corpus(tmp_path)
    build_tasks(evaluation_context(tmp_path, EVALUATION, "tasks", "corpus"))
    tokenizer.save(tmp_path / "tokens" / "tokenizer")
    build_prompts(evaluation_context(tmp_path, EVALUATION, "prompts", "tokens", "tasks"))
    counted = json.loads((tmp_path / "prompts" / "prompts.json").read_text())["tasks"]["continuation"]
    write_checkpoints(tmp_path, tokenizer, steps=(10,))
    build_scores(evaluation_context(tmp_path, EVALUATION, "evaluation", "training", "tasks", "corpus"))
    scored = json.loads((tmp_path / "evaluation" / "statistics.json").read_text())["tasks"]["continuation"]
    assert counted["crossed_items"] == scored["crossed_items"]["0"]
    assert counted["crossed_choices"] == scored["crossed_choices"]["0"]
    assert counted["long_prompts"] == {shots: len(items) for shots, items in scored["truncated_items"].items()}
    assert (counted["items"], counted["choices"]) == (20, 80)


def test_a_prompt_that_fits_exactly_is_not_cut() -> None:
    texts = ["b" * length for length in range(1, 60)]
    whole = [
        text for text in texts if not encode_requests(Longest(), CONTEXT_LENGTH, [(("t", 0), text, "a")]).truncated
    ]
    ids = encode_choices(Longest().encode, EOS, whole[-1], ["a"])
    assert len(ids.context) + len(ids.continuations[0]) - 1 == CONTEXT_LENGTH
