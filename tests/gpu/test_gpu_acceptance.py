"""The acceptance of a GPU, rehearsed on a CPU: every step at tiny sizes, and steps that fail."""

import json
import math
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from paribus.modeling import fused
from paribus.training import losses as loss
from support import forked

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import gpu_acceptance  # noqa: E402
from acceptance import steps  # noqa: E402
from acceptance.given import Given  # noqa: E402
from acceptance.measures import losses  # noqa: E402
from acceptance.measures.losses import FAMILIES, ROUNDING, TWICE, gradients_of  # noqa: E402
from acceptance.stepping import difference, distance  # noqa: E402
from acceptance.steps import STEPS, Running, Step, environment, run  # noqa: E402
from acceptance.table import table  # noqa: E402

LONG = ("gpu_tests", "compiling", "micro_batch", "interrupted", "whole_runs", "continued", "uncompiled", "speed")
"""Steps of a minute and more, of things that other tests do on a CPU too; `make gpu-rehearsal` has them as well."""
REHEARSED = list({step.of if step.module == "losses" else step.module: step for step in STEPS}.values())
REHEARSED = [step for step in REHEARSED if step.module not in LONG]


@pytest.mark.slow
@pytest.mark.parametrize("step", REHEARSED, ids=lambda step: step.name)
def test_every_step_passes_its_rehearsal(step: Step, tmp_path: Path) -> None:
    """In a fork, of one thread; `run` starts a process of its own, which other tests here look at."""
    given, answer, work = (tmp_path / name for name in ("given.json", "answer.json", "work"))
    work.mkdir()
    Given("cpu", True, str(work), time.monotonic() + step.limit_s, step.of).write(given)
    threads = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    words = ["-m", "acceptance.child", step.module, str(given), str(answer)]
    done = forked.run(words, env=environment() | threads)
    assert done.returncode == 0, done.stderr
    found = json.loads(answer.read_text(encoding="utf-8"))
    assert not found["wrong"]
    assert found["numbers"]


def test_a_step_that_fails_or_takes_too_long_says_so_and_stops_nothing(tmp_path: Path) -> None:
    given = Given("cpu", True, str(tmp_path), math.inf)
    missing = run(Step("not_there", "no such step", 60), given, Running())
    assert missing.state == "failed" and "not_there" in missing.wrong[-1]
    slow = run(Step("losses", "the losses", 0.5, of="llama"), given, Running())
    assert slow.state == "too long" and not slow.numbers
    assert missing.code == slow.code == steps.code_digest()
    lines = table([missing.to_json(), slow.to_json()], missing.code).splitlines()
    assert lines[2].startswith("| not_there | failed |") and lines[3].startswith("| losses_llama | too long |")


def child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, does: str) -> None:
    """Let the process of every step do that, where `given` is what it is told."""
    (tmp_path / "modules" / "acceptance").mkdir(parents=True)
    measure = "import json, sys, time, pathlib\ngiven = json.loads(pathlib.Path(sys.argv[2]).read_text())\n"
    (tmp_path / "modules" / "acceptance" / "child.py").write_text(measure + does, encoding="utf-8")
    monkeypatch.setattr(steps, "environment", lambda: {"PYTHONPATH": str(tmp_path / "modules")})


def planted(mistake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let decoders make a mistake."""
    if mistake == "tokens of other documents are seen":
        monkeypatch.setattr(loss, "document_attention", lambda inputs, eos: None)
    elif mistake == "tokens that come later are seen":
        right = loss.document_attention
        monkeypatch.setattr(loss, "document_attention", lambda *given: right(*given) | right(*given).mT)
    elif mistake == "heads are not turned":
        monkeypatch.setattr(fused, "_turn", lambda *given: None)
    else:
        turn, backward = fused._turn, fused._RotateInPlace.backward

        def turned_on(context: Any, gradient: torch.Tensor) -> Any:
            monkeypatch.setattr(fused, "_turn", lambda heads, cosines, sines: turn(heads, cosines, -sines))
            try:
                return backward(context, gradient)
            finally:
                monkeypatch.setattr(fused, "_turn", turn)

        monkeypatch.setattr(fused._RotateInPlace, "backward", staticmethod(turned_on))


@pytest.fixture(scope="module", params=["llama", "gpt_neox"])
def gradients(request: pytest.FixtureRequest) -> Iterator[tuple[Given, Any, Any]]:
    """As a GPU's are compared, of one family: in float32, and in bfloat16; of fewer rows and a smaller vocabulary."""
    given = Given("cpu", False, "", 60.0, request.param)
    model, cpu = FAMILIES[given.of], torch.device("cpu")
    with pytest.MonkeyPatch.context() as smaller:
        smaller.setattr(losses, "ROWS", 2)
        smaller.setattr(losses, "VOCABULARY", 512)
        right, rounded = (gradients_of(model, name, cpu, given, documents=True) for name in ("fp32", "bf16"))
        yield given, right, rounded


@pytest.mark.parametrize(
    "mistake",
    [
        "tokens of other documents are seen",
        "tokens that come later are seen",
        "heads are not turned",
        "gradients are turned the wrong way",
    ],
)
def test_gradients_tell_what_losses_of_a_few_steps_do_not(
    gradients: tuple[Given, Any, Any], mistake: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    given, right, rounded = gradients
    planted(mistake, monkeypatch)
    wrong = distance(gradients_of(FAMILIES[given.of], "bf16", torch.device("cpu"), given, documents=True), right)
    assert wrong > TWICE * distance(rounded, right) > ROUNDING


def test_what_is_not_finite_is_no_agreement() -> None:
    assert difference([1.0, math.nan], [1.0, math.nan]) == math.inf
    assert distance({"a": torch.tensor([math.nan])}, {"a": torch.ones(1)}) == math.inf


def test_a_machine_without_a_gpu_is_told_so_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["gpu_acceptance.py"])
    monkeypatch.setattr(gpu_acceptance, "visible_devices", lambda: 0)
    with pytest.raises(SystemExit) as ended:
        gpu_acceptance._arguments()
    assert ended.value.code == 2
    assert "--device cuda: PyTorch sees no GPU here; --device cpu rehearses the steps" in capsys.readouterr().err
    monkeypatch.setattr(gpu_acceptance, "visible_devices", lambda: 1)
    assert gpu_acceptance._arguments().device == "cuda"


def test_every_step_has_its_module() -> None:
    for step in STEPS:
        assert (ROOT / "benchmarks" / "acceptance" / "measures" / f"{step.module}.py").is_file()
