"""Bits per byte of held-out documents."""

import itertools
import math
from typing import Any

import pytest

from paribus.evaluation.pairs import windows
from paribus.evaluation.scoring import Scorer
from paribus.evaluation.text import DocumentBits, encode_documents, encode_stream, related_order
from support.evaluations import ByteEncoder, brute_force, tiny_model

CONTEXT_LENGTH = 32
TEXTS = ["short", "ä longer text that needs more than one window of thirty-two tokens, and then some.", "", "字" * 40]


def document_bits(scorer: Scorer, *progress: Any) -> DocumentBits:
    return encode_documents(ByteEncoder(), TEXTS, scorer.context_length).bits(scorer, *progress)


def test_bits_are_those_of_one_forward_pass_a_token_over_the_same_windows() -> None:
    model, encoder, expected = tiny_model(257, CONTEXT_LENGTH), ByteEncoder(), []
    for text in TEXTS:
        parts = windows(encoder.encode(text), encoder.eos_id, CONTEXT_LENGTH) if text else []
        nats = sum(brute_force(model, part.context.tolist(), part.continuation.tolist())[0] for part in parts)
        expected.append(-nats / math.log(2))
    progress: list[tuple[int, int]] = []
    for batch_tokens in (1, 128, 4096):
        result = document_bits(Scorer(model, batch_tokens), lambda done, total: progress.append((done, total)))
        assert result.bits == pytest.approx(expected, abs=1e-3)
        assert result.bytes.tolist() == [len(text.encode()) for text in TEXTS]
        assert progress[-1] == (sum(result.bytes), sum(result.bytes))


STREAM_TEXTS = ["one text", "é", "another, somewhat longer text", "", "the end"]


@pytest.mark.parametrize("context_length", [8, 64])
def test_a_token_has_the_documents_before_it_as_its_context(context_length: int) -> None:
    encoder, order = ByteEncoder(), [2, 4, 3, 0, 1]
    model = tiny_model(encoder.vocab_size, context_length)
    result = encode_stream(encoder, STREAM_TEXTS, order, context_length).bits(Scorer(model, batch_tokens=48))
    stream, owners = [256], [-1]
    for place in order:
        ids = encoder.encode(STREAM_TEXTS[place]).tolist()
        stream, owners = [*stream, *ids, 256], [*owners, *[place] * len(ids), -1]
    bits, half = [0.0] * len(STREAM_TEXTS), context_length // 2
    for index, owner in enumerate(owners):
        if owner >= 0:
            window = max(0, -(-(index - context_length) // half))
            end = min(context_length + window * half, len(stream) - 2)
            score, _ = brute_force(model, stream[max(0, end - context_length) : index], [stream[index]])
            bits[owner] -= score / math.log(2)
    assert result.bits == pytest.approx(bits, abs=1e-4)
    assert result.bytes.tolist() == result.tokens.tolist() == [len(text.encode()) for text in STREAM_TEXTS]
    assert result.perplexity == pytest.approx(2 ** (sum(bits) / sum(result.tokens)))


def test_related_documents_follow_each_other() -> None:
    topics = [["cat", "dog", "bird", "fish"], ["moon", "star", "sun", "sky"], ["red", "blue", "green", "grey"]]
    texts = [" ".join(topics[number % 3][number // 3 :] + topics[number % 3]) for number in range(12)]
    order = related_order(texts).tolist()
    assert sorted(order) == list(range(12))
    assert related_order(["!"]).tolist() == [0]
    assert sum(before % 3 != after % 3 for before, after in itertools.pairwise(order)) == 2
