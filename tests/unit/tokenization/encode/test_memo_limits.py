"""What is remembered has an end, and ids never depend on it."""

import random

import numpy as np
import pytest

from paribus.tokenization import Tokenizer, encode
from paribus.tokenization.kernels import layout

WORDS = random.Random(4)
TEXTS = [
    " ".join("".join(WORDS.choices("abcdefgh", k=WORDS.choice((3, 9, 14, 17, 40, 300)))) for _ in range(400))
    for _ in range(60)
]


@pytest.mark.parametrize("largest", [12, 13, 20])
@pytest.mark.parametrize("encoder", ["merge_rank", "longest_first"])
def test_a_full_memo_changes_no_ids(largest: int, encoder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tok = Tokenizer.train(TEXTS[:5], vocab_size=600).with_encoder(encoder)
    alone = [Tokenizer(tok.vocabulary, tok.settings).encode(text) for text in TEXTS]
    monkeypatch.setattr(encode, "_LARGEST_SHORT", largest)
    monkeypatch.setattr(encode, "_LARGEST_LONG", largest)
    limited = Tokenizer(tok.vocabulary, tok.settings)
    for _ in range(2):
        ids, offsets = limited.encode_batch(TEXTS)
        assert np.array_equal(ids, np.concatenate(alone))
        assert np.array_equal(np.diff(offsets), [len(found) for found in alone])
    kept = limited._encoding._workspace()
    assert (kept._slots[layout.SHORT_FREE] == -1) == (largest < 20)
    assert kept._slots[layout.SHORT_SHIFT] >= 64 - largest
    assert kept._slots[layout.LONG_SHIFT] >= 64 - largest
