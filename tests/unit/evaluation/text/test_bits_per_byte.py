"""Bits per byte of held-out documents."""

import math
from typing import Any

import numpy as np
import pytest

from paribus.evaluation.pairs import windows
from paribus.evaluation.scoring import Scorer
from paribus.evaluation.text import DocumentBits, encode_documents
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


def test_fewer_tokens_of_the_same_text_are_divided_by_the_same_bytes() -> None:
    encoder = ByteEncoder(crossing=(b"ab",))
    model = tiny_model(encoder.vocab_size, CONTEXT_LENGTH)
    model.output.weight.data.zero_()
    result = document_bits(Scorer(model, 128), encoder, ["ab" * 50])
    assert result.bits_per_byte == pytest.approx(math.log2(258) / 2, rel=1e-6)


def test_bits_do_not_depend_on_the_batch_size_and_progress_reaches_the_end() -> None:
    model, encoder, told = tiny_model(257, CONTEXT_LENGTH), ByteEncoder(), []
    one = document_bits(Scorer(model, 1), encoder, TEXTS)
    many = document_bits(Scorer(model, 4096), encoder, TEXTS, lambda done, total: told.append((done, total)))
    np.testing.assert_allclose(one.bits, many.bits, rtol=1e-5)
    assert told[-1] == (sum(one.bytes), sum(one.bytes))
