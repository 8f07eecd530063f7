"""Bits per byte of held-out documents."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paribus.evaluation.pairs import windows
from paribus.evaluation.scoring import Scorer
from paribus.evaluation.text import DocumentBits, encode_documents, encode_stream, related_order
from support.evaluations import ByteEncoder, brute_force, tiny_model

CONTEXT_LENGTH = 32
TEXTS = ["short", "ä longer text that needs more than one window of thirty-two tokens, and then some.", "", "字" * 40]


def document_bits(scorer: Scorer, encoder: ByteEncoder, texts: list[str], *progress: Any) -> DocumentBits:
    return encode_documents(encoder, texts, scorer.context_length).bits(scorer, *progress)


def test_bits_are_those_of_one_forward_pass_a_token_over_the_same_windows() -> None:
    model, encoder = tiny_model(257, CONTEXT_LENGTH), ByteEncoder()
    result = document_bits(Scorer(model, 128), encoder, TEXTS)
    for place, text in enumerate(TEXTS):
        parts = windows(encoder.encode(text), encoder.eos_id, CONTEXT_LENGTH) if text else []
        nats = sum(brute_force(model, part.context.tolist(), part.continuation.tolist())[0] for part in parts)
        assert result.bits[place] == pytest.approx(-nats / math.log(2), abs=1e-3)
    assert result.bytes.tolist() == [len(text.encode()) for text in TEXTS]


def test_a_uniform_model_needs_log2_of_the_vocabulary_a_token() -> None:
    model, encoder = tiny_model(257, CONTEXT_LENGTH), ByteEncoder(crossing=())
    model.output.weight.data.zero_()
    result = document_bits(Scorer(model, 128), encoder, TEXTS)
    assert result.bits_per_byte == pytest.approx(math.log2(257), rel=1e-6)


def test_bits_do_not_depend_on_the_batch_size_and_progress_reaches_the_end() -> None:
    model, encoder, told = tiny_model(257, CONTEXT_LENGTH), ByteEncoder(), []
    one = document_bits(Scorer(model, 1), encoder, TEXTS)
    many = document_bits(Scorer(model, 4096), encoder, TEXTS, lambda done, total: told.append((done, total)))
    np.testing.assert_allclose(one.bits, many.bits, rtol=1e-5)
    assert told[-1] == (sum(one.bytes), sum(one.bytes))


# Bits per byte of documents end to end, against one forward pass a token.

STREAM_TEXTS = ["one text", "é", "another, somewhat longer text", "", "the end"]


@pytest.mark.parametrize("context_length", [8, 64])
@pytest.mark.parametrize("order", [[0, 1, 2, 3, 4], [2, 4, 3, 0, 1]])
def test_a_token_has_the_documents_before_it_as_its_context(context_length: int, order: list[int]) -> None:
    encoder = ByteEncoder()
    model = tiny_model(encoder.vocab_size, context_length)
    found = encode_stream(encoder, STREAM_TEXTS, order, context_length).bits(Scorer(model, batch_tokens=48))
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
    assert found.bits == pytest.approx(bits, abs=1e-4)
    assert found.bytes.tolist() == [len(text.encode()) for text in STREAM_TEXTS]
    assert found.tokens.tolist() == found.bytes.tolist()
    assert found.perplexity == pytest.approx(2 ** (sum(bits) / sum(found.tokens)))


def test_related_documents_follow_each_other() -> None:
    topics = [["cat", "dog", "bird", "fish"], ["moon", "star", "sun", "sky"], ["red", "blue", "green", "grey"]]
    texts = [" ".join(topics[number % 3][number // 3 :] + topics[number % 3]) for number in range(12)]
    topic = [place % 3 for place in related_order(texts).tolist()]
    assert sum(one != other for one, other in itertools.pairwise(topic)) == 2


@given(st.lists(st.sampled_from(["a cat", "a dog", "!", "cats and dogs", "文"]), min_size=1, max_size=9))
def test_every_document_is_once_in_the_order(texts: list[str]) -> None:
    order = related_order(texts)
    assert np.array_equal(np.sort(order), np.arange(len(texts)))
    assert np.array_equal(order, related_order(texts))
