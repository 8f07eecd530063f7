"""Bits per byte of documents end to end, against one forward pass a token."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paribus.evaluation.scoring import Scorer
from paribus.evaluation.text import encode_documents, encode_stream, related_order
from support.evaluations import ByteEncoder, brute_force, tiny_model

TEXTS = ["one text", "é", "another, somewhat longer text", "", "the end"]


@pytest.mark.parametrize("context_length", [8, 64])
@pytest.mark.parametrize("order", [[0, 1, 2, 3, 4], [2, 4, 3, 0, 1]])
def test_a_token_has_the_documents_before_it_as_its_context(context_length: int, order: list[int]) -> None:
    encoder = ByteEncoder()
    model = tiny_model(encoder.vocab_size, context_length)
    found = encode_stream(encoder, TEXTS, order, context_length).bits(Scorer(model, batch_tokens=48))
    stream, owners = [256], [-1]
    for place in order:
        ids = encoder.encode(TEXTS[place]).tolist()
        stream, owners = [*stream, *ids, 256], [*owners, *[place] * len(ids), -1]
    bits, half = [0.0] * len(TEXTS), context_length // 2
    for index, owner in enumerate(owners):
        if owner >= 0:
            window = max(0, -(-(index - context_length) // half))
            end = min(context_length + window * half, len(stream) - 2)
            score, _ = brute_force(model, stream[max(0, end - context_length) : index], [stream[index]])
            bits[owner] -= score / math.log(2)
    assert found.bits == pytest.approx(bits, abs=1e-4)
    assert found.bytes.tolist() == [len(text.encode()) for text in TEXTS]
    assert found.tokens.tolist() == found.bytes.tolist()
    assert found.perplexity == pytest.approx(2 ** (sum(bits) / sum(found.tokens)))


def test_one_document_alone_has_the_bits_it_has_by_itself() -> None:
    encoder = ByteEncoder()
    scorer = Scorer(tiny_model(encoder.vocab_size, 16), batch_tokens=48)
    alone = encode_documents(encoder, TEXTS[2:3], 16).bits(scorer)
    assert encode_stream(encoder, TEXTS[2:3], [0], 16).bits(scorer).bits == pytest.approx(alone.bits)


def test_related_documents_follow_each_other() -> None:
    topics = [["cat", "dog", "bird", "fish"], ["moon", "star", "sun", "sky"], ["red", "blue", "green", "grey"]]
    texts = [" ".join(topics[number % 3][number // 3 :] + topics[number % 3]) for number in range(12)]
    topic = [place % 3 for place in related_order(texts).tolist()]
    assert sum(one != other for one, other in itertools.pairwise(topic)) == 2


@settings(max_examples=20, deadline=None)
@given(st.lists(st.sampled_from(["a cat", "a dog", "!", "cats and dogs", "文"]), min_size=1, max_size=9))
def test_every_document_is_once_in_the_order(texts: list[str]) -> None:
    order = related_order(texts)
    assert np.array_equal(np.sort(order), np.arange(len(texts)))
    assert np.array_equal(order, related_order(texts))
