"""`evaluation.average_checkpoints`: a scored model has the mean weights of several checkpoints."""

import json
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import load_file, save_file

from paribus.config.groups.evaluation import EvaluationConfig
from paribus.errors import DataError
from paribus.evaluation.scoring import averaged_checkpoints, mean_weights
from paribus.evaluation.stage import build_scores, build_tasks
from paribus.modeling.models import build_model, load_model, save_model
from paribus.stage import StageContext
from paribus.tokenization import Tokenizer
from paribus.training.distributed import ALONE
from support.evaluations import STAGE_MODEL, WORDS, stage_context, write_checkpoints, write_drawn_corpus
from support.training_inputs import TRANSLATOR

EVALUATION = EvaluationConfig(continuation_items=12, heldout_documents=10, shots=(0,), average_checkpoints=3)
STEPS = (10, 20, 30, 40)
WEIGHTS = "model.safetensors"


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.train([" ".join(WORDS)] * 3, vocab_size=320, special_tokens=["<|endoftext|>"])


@pytest.fixture
def root(tokenizer: Tokenizer, tmp_path: Path) -> Path:
    """With corpus, tasks and checkpoints of unlike weights."""
    write_drawn_corpus(tmp_path)
    build_tasks(stage_context(tmp_path, EVALUATION, "tasks", "corpus"))
    write_checkpoints(tmp_path, tokenizer, STEPS)
    return tmp_path


def context(root: Path, evaluation: EvaluationConfig, name: str) -> StageContext:
    found = stage_context(root, evaluation, name, "training", "tasks", "corpus")
    return replace(found, config=replace(found.config, training=replace(found.config.training, checkpoints=4)))


def values(root: Path, name: str) -> dict[int, dict[str, float]]:
    """Bits of each held-out document by checkpoint."""
    found: dict[int, dict[str, float]] = {}
    for row in pq.read_table(root / name / "heldout.parquet").to_pylist():
        found.setdefault(row["checkpoint"], {})[row["document"]] = row["bits"]
    return found


def mean_by_hand(root: Path, steps: tuple[int, ...], target: Path) -> None:
    """A checkpoint with the mean of each parameter, taken from the models and not from their files."""
    models = [load_model(root / "training" / f"step_{step:08d}") for step in steps]
    with torch.no_grad():
        for name, parameter in models[0].named_parameters():
            others = [dict(model.named_parameters())[name] for model in models]
            parameter.copy_(torch.stack(others).double().mean(dim=0))
    save_model(models[0], target)


def test_a_scored_model_is_the_mean_of_the_last_checkpoints(root: Path, tokenizer: Tokenizer) -> None:
    result = build_scores(context(root, EVALUATION, "averaged"))
    alone = root / "other"
    for step in (10, 20):
        directory = alone / "training" / f"step_{step:08d}"
        mean_by_hand(root, (20, 30, 40), directory)
        tokenizer.save(directory / "tokenizer")
    for name in ("corpus", "tasks"):
        (alone / name).symlink_to(root / name)
    single = replace(EVALUATION, average_checkpoints=1)
    expected = build_scores(stage_context(alone, single, "evaluation", "training", "tasks", "corpus"))
    assert result["checkpoints"] == [40]
    assert result["metrics"] == pytest.approx(expected["metrics"], rel=1e-5)
    assert values(root, "averaged")[40] == pytest.approx(values(alone, "evaluation")[20], rel=1e-5)
    build_scores(context(root, single, "last"))
    assert values(root, "averaged")[40] != pytest.approx(values(root, "last")[40], rel=1e-2)
    about = [json.loads((root / name / "statistics.json").read_text())["embeddings"] for name in ("averaged", "last")]
    assert about[0]["uniformity"] != about[1]["uniformity"]


def test_each_of_several_scored_models_is_the_mean_of_those_up_to_it(root: Path) -> None:
    result = build_scores(context(root, replace(EVALUATION, last_checkpoints=2), "both"))
    assert result["checkpoints"] == [30, 40]
    build_scores(context(root, EVALUATION, "last"))
    assert values(root, "both")[40] == values(root, "last")[40] != values(root, "both")[30]


def test_what_a_killed_evaluation_averaged_is_not_taken_for_whole(root: Path) -> None:
    paths = {step: root / "training" / f"step_{step:08d}" for step in STEPS}
    torn = root / "work" / "step_00000040.partial"
    torn.mkdir(parents=True)
    (torn / WEIGHTS).write_bytes(b"half")
    found = averaged_checkpoints(paths, 3, root / "work", ALONE)
    assert list(found) == [30, 40]
    assert sorted(path.name for path in (root / "work").iterdir()) == ["step_00000030", "step_00000040"]
    assert {path.name for path in found[40].iterdir()} == {path.name for path in paths[40].iterdir()}
    assert averaged_checkpoints(paths, 1, root / "none", ALONE) == paths
    assert not (root / "none").exists()


def test_the_mean_is_rounded_once(tmp_path: Path) -> None:
    for number, value in enumerate((1.0, 2.0**-24, 2.0**-24, 2.0**-24)):
        (tmp_path / str(number)).mkdir()
        save_file({"x": torch.tensor([value])}, tmp_path / str(number) / WEIGHTS)
    mean = mean_weights([tmp_path / str(number) for number in range(4)])["x"]
    assert mean.dtype == torch.float32
    assert mean.item() == torch.tensor((1.0 + 3 * 2.0**-24) / 4).item() != 0.25


def test_an_encoder_decoder_is_averaged_too(tmp_path: Path) -> None:
    models = [build_model(TRANSLATOR, 257, seed, eos_id=256) for seed in (1, 2)]
    paths = {}
    for step, model in enumerate(models, start=1):
        paths[step] = tmp_path / f"step_{step:08d}"
        save_model(model, paths[step])
    found = dict(load_model(averaged_checkpoints(paths, 2, tmp_path / "work", ALONE)[2]).named_parameters())
    for (name, one), (_, other) in zip(*(model.named_parameters() for model in models), strict=True):
        assert torch.allclose(found[name], (one + other) / 2, atol=1e-7), name


def test_checkpoints_of_different_models_are_refused(root: Path, tokenizer: Tokenizer) -> None:
    first = root / "training" / "step_00000020"
    save_model(build_model(replace(STAGE_MODEL, ffn_width=16), tokenizer.vocab_size, 1, eos_id=0), first)
    with pytest.raises(DataError, match=r"step_00000020 and .*step_00000030 are no checkpoints of one model"):
        build_scores(context(root, EVALUATION, "averaged"))
    assert load_file(first / WEIGHTS)
