"""Predictive entropy on the first GPU where there is one, else on the CPU."""

from pathlib import Path

import pytest
import torch

from paribus.tokenization.predictive import PredictiveEntropySpans
from support.character_models import SENTENCE, save_bert_style_model

pytestmark = pytest.mark.gpu
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def test_entropies_and_pieces_are_those_of_the_cpu(tmp_path: Path) -> None:
    save_bert_style_model(tmp_path / "model")
    texts = [SENTENCE, SENTENCE[:5], "", SENTENCE * 3]
    here, there = (PredictiveEntropySpans(tmp_path / "model", device=device) for device in ("cpu", DEVICE))
    for expected, found in zip(here.entropies(texts), there.entropies(texts), strict=True):
        assert found.tolist() == pytest.approx(expected.tolist(), abs=1e-3)
    assert [there.pieces(text) for text in texts] == [here.pieces(text) for text in texts]
