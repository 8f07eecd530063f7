"""What models are scored in."""

from pathlib import Path

import numpy as np
import pytest
import torch

from paribus.checks import check_scoring
from paribus.config.groups.evaluation import EvaluationConfig
from paribus.errors import ConfigurationError
from paribus.evaluation.generation import GenerationRequest, Generator
from paribus.evaluation.pairs import Pair
from paribus.evaluation.scoring import Scorer, load_checkpoint_model
from paribus.modeling.models import save_model
from support.evaluations import ByteEncoder, tiny_model
from support.models import ENCODER_DECODER
from support.run_config import run_config


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    save_model(tiny_model(257), tmp_path)
    return tmp_path


class Coder(ByteEncoder):
    def decode(self, ids: object) -> str:
        return "".join(chr(ord("a") + identity % 26) for identity in ids)  # type: ignore[attr-defined]


def test_bfloat16_scores_are_those_of_float32_up_to_its_rounding_and_not_the_same(checkpoint: Path) -> None:
    pairs = [Pair(np.arange(5, 5 + size), np.arange(size, size + 4)) for size in range(1, 20)]
    exact, half = (
        Scorer(load_checkpoint_model(checkpoint, "cpu", precision), 128).score(pairs).log_probability
        for precision in ("fp32", "bf16")
    )
    assert 1e-4 < np.abs(half / exact - 1).max() < 0.05


def test_texts_are_written_in_bfloat16_too(checkpoint: Path) -> None:
    model = load_checkpoint_model(checkpoint, "cpu", "bf16")
    assert model.computes_in == torch.bfloat16
    written = Generator(Scorer(model, 128), Coder()).write([GenerationRequest("abc", (), 5)])
    assert len(written[0].text) == 5


def test_tf32_is_refused_on_a_cpu_and_set_on_a_gpu(checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigurationError, match=r"evaluation\.precision is tf32, which GPUs have, .* take fp32"):
        load_checkpoint_model(checkpoint, "cpu", "tf32")
    told: list[str] = []
    module = "paribus.evaluation.scoring"
    monkeypatch.setattr(f"{module}.resolve_device", lambda *_: torch.device("cuda", 0))
    monkeypatch.setattr(torch.nn.Module, "to", lambda model, device: model)
    monkeypatch.setattr(torch, "set_float32_matmul_precision", told.append)
    for precision in ("tf32", "fp32"):
        load_checkpoint_model(checkpoint, "cuda", precision)
    assert told == ["high", "highest"]


def test_an_encoder_decoder_is_scored_in_float32_only() -> None:
    config = run_config(model=ENCODER_DECODER, evaluation=EvaluationConfig(precision="bf16", tasks=()))
    assert ("evaluation.precision", "bf16, but an encoder_decoder is scored in fp32 only") in check_scoring(config)


def test_a_training_after_scores_in_tf32_multiplies_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    from paribus.config.groups.training import TrainingConfig
    from support.steps import make_stepper

    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        make_stepper(tiny_model(40), TrainingConfig(device="cpu", precision="fp32"))
        assert torch.get_float32_matmul_precision() == "highest"
    finally:
        torch.set_float32_matmul_precision(before)
