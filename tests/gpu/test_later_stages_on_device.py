"""What follows a training: on the first GPU where there is one, else on the CPU."""

from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest
import torch

from paribus.corpus.artifact import CorpusWriter
from paribus.evaluation.stage import build_scores, build_tasks
from support.finetunings import finetuning_config, run_data, run_finetuned, with_training, write_checkpoint, write_task
from support.stages import context_at
from support.training_inputs import execute, pair_config, pair_texts, write_pair_inputs

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("precision", ["fp32", "tf32", "bf16"])
def test_a_model_is_fine_tuned_and_answers(precision: Literal["fp32", "tf32", "bf16"], tmp_path: Path) -> None:
    if precision == "tf32" and not torch.cuda.is_available():
        pytest.skip("TF32 is a GPU's")
    write_task(tmp_path)
    write_checkpoint(tmp_path)
    given = with_training(finetuning_config(tmp_path), device="auto", precision="auto")
    given = replace(given, evaluation=replace(given.evaluation, device="auto", precision=precision))
    run_data(tmp_path, given)
    result = run_finetuned(tmp_path, given)
    assert list(result["metrics"]) == ["eval/qasper/0shot/f1"]  # type: ignore[arg-type]


def test_pairs_that_were_trained_on_are_scored_and_translated(tmp_path: Path) -> None:
    pytest.importorskip("sacrebleu")
    inputs = write_pair_inputs(tmp_path)
    given = pair_config()
    given = replace(
        given,
        training=replace(given.training, device="auto", precision="auto"),
        evaluation=replace(given.evaluation, device="auto", translations=8, beams=2),
    )
    execute(tmp_path, "pairs", inputs, given)
    with CorpusWriter(tmp_path / "corpus", heldout=0.5, pairs=True) as writer:
        for number, (source, target) in enumerate(pair_texts(30)):
            writer.add(f"pair{number}", source, "test", target)
    artefacts = {"corpus": tmp_path / "corpus", "tasks": tmp_path / "tasks", "training": tmp_path / "pairs/output"}
    build_tasks(context_at(tmp_path / "tasks", tmp_path / "tasks.work", given, artefacts))
    result = build_scores(context_at(tmp_path / "scores", tmp_path / "scores.work", given, artefacts))
    assert {"eval/bits_per_byte", "eval/translation/0shot/bleu"} <= result["metrics"].keys()  # type: ignore[union-attr]
