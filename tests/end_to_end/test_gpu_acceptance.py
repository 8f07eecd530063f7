"""The acceptance of a GPU, rehearsed on a CPU: every step at tiny sizes, and steps that fail."""

import json
import math
import os
import signal
import subprocess
import sys
import threading
import time
from argparse import Namespace
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import torch

from paribus.modeling.decoder import rotation
from paribus.store.code import Code
from paribus.training.step import loss
from support import forked

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import gpu_acceptance  # noqa: E402
import training  # noqa: E402
from acceptance import steps  # noqa: E402
from acceptance.given import Given  # noqa: E402
from acceptance.measures import interrupted, losses, micro_batch, speed  # noqa: E402
from acceptance.measures.losses import FAMILIES, ROUNDING, TWICE, gradients_of  # noqa: E402
from acceptance.stepping import difference, distance, seconds_a_step  # noqa: E402
from acceptance.steps import STEPS, Outcome, Running, Step, environment, run  # noqa: E402
from acceptance.table import table  # noqa: E402
from loops import shapes  # noqa: E402

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


def test_a_call_ends_in_its_time_and_says_of_which_steps_there_was_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    child(tmp_path, monkeypatch, "time.sleep(60)\n")
    asked = Namespace(device="cpu", at_once=None, seconds=2.0)
    chosen = [Step("together", "", 60), Step("next", "", 60), Step("alone", "", 60, alone=True)]
    began = time.monotonic()
    with closing(gpu_acceptance._made(chosen, asked, tmp_path)) as made:
        outcomes = {one.step: one for one in made}
    assert time.monotonic() - began < 20
    assert {name: one.state for name, one in outcomes.items()} == {step.name: "no time" for step in chosen}
    assert not outcomes["together"].wrong
    for name in ("next", "alone"):
        assert outcomes[name].wrong == ["not begun: the time of the call was over"]


@pytest.mark.parametrize(("limit", "seconds", "state"), [(50, 60, "too long"), (60, 50, "no time")])
def test_what_a_step_had_no_time_to_measure_is_not_wrong(
    tmp_path: Path, limit: float, seconds: float, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = "answer = {'numbers': {'left': given['until'] - time.monotonic()}, 'wrong': [], 'late': ['a half']}\n"
    child(tmp_path, monkeypatch, told + "pathlib.Path(sys.argv[3]).write_text(json.dumps(answer))\n")
    until = time.monotonic() + seconds
    outcome = run(Step("slow", "", limit), Given("cpu", True, str(tmp_path), until), Running())
    assert (outcome.state, outcome.wrong) == (state, ["a half"])
    assert outcome.numbers["left"] <= 50


def test_what_commands_of_a_step_said_is_told_where_it_takes_too_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = "pathlib.Path(given['directory'], 'alone.txt').write_text('first\\ntraining: starting\\n')\n"
    child(tmp_path, monkeypatch, f"{said}time.sleep(60)\n")
    given = Given("cpu", True, str(tmp_path), math.inf)
    outcome = run(Step("sleeps", "sleeps", 2), given, Running())
    assert (outcome.state, outcome.wrong) == ("too long", ["alone.txt: training: starting"])


def test_a_step_is_told_when_it_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of its seconds some are over before it is asked: its process imports PyTorch first."""
    told = "answer = {'numbers': {'left': given['until'] - time.monotonic()}, 'wrong': [], 'late': []}\n"
    child(tmp_path, monkeypatch, f"time.sleep(0.5)\n{told}pathlib.Path(sys.argv[3]).write_text(json.dumps(answer))\n")
    outcome = run(Step("late", "late", 60), Given("cpu", True, str(tmp_path), math.inf), Running())
    assert 20 < outcome.numbers["left"] <= 59.5


def test_what_was_measured_is_told_before_a_step_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    timeouts: list[float] = []

    def too_long(command: list[str], *, timeout: float, **_: Any) -> None:
        timeouts.append(timeout)
        raise subprocess.TimeoutExpired(command, timeout)

    monkeypatch.setattr(speed.subprocess, "run", too_long)
    until = time.monotonic() + 40
    answer = speed.measure(Given("cpu", True, str(tmp_path), until, "468m"))
    assert len(answer.late) == 2 and "not all was measured" in answer.late[0]
    assert not answer.wrong
    assert 0 < timeouts[0] <= 40 - speed.SPARE_S


def test_a_shape_of_which_no_contestant_is_left_has_no_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "write_inputs", lambda *_: None)
    device = {"type": "cpu", "memory": 8e9, "precision": "fp32", "stated": True, "peak": 1e9}
    asked: dict[str, Any] = {"steps": None, "micro_batch": None, "activation_checkpointing": False, "rounds": 1}
    asked |= {"device": "cpu", "compile": "auto", "directory": tmp_path, "checkpoint_gigabytes": 6.0}
    given = Namespace(**asked, contestants=["trainer_compiled"])
    found = list(training._measure(shapes.CPU["demo"], device, given))
    assert [one.answers for one in found] == [{}]


def test_steps_after_a_search_for_the_micro_batch_are_those_of_what_it_found(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, told in {"reset_peak_memory_stats": None, "max_memory_reserved": 0, "mem_get_info": (0, 1000)}.items():
        monkeypatch.setattr(torch.cuda, name, lambda device, told=told: told)
    monkeypatch.setattr(micro_batch, "SHAPE", shapes.CPU["demo"])
    monkeypatch.setattr(micro_batch, "ROWS", 4)
    timed: list[int] = []
    anew: list[int] = []
    monkeypatch.setattr(micro_batch, "compile_anew", lambda: anew.append(len(timed)))

    def timing(stepped: Any, *given: Any) -> list[float]:
        timed.append(stepped.micro_batch)
        return seconds_a_step(stepped, *given)

    monkeypatch.setattr(micro_batch, "seconds_a_step", timing)
    found, milliseconds = micro_batch._searched(Given("cpu", False, "", 60.0), 2)
    assert found == 4 and milliseconds > 0
    assert micro_batch._alone(Given("cpu", False, "", 60.0), found) > 0
    assert timed == [4, 4]
    # Neither is timed by code that was compiled for the other.
    assert anew == [0, 1]


@pytest.mark.parametrize(
    ("after", "without", "is_slower"),
    [
        ([100, 104], [102, 106], False),
        ([104, 100], [102, 98], False),
        ([103, 100], [100, 100], False),
        ([105, 106], [100, 102], True),
        ([103, 103], [100, 100], True),
    ],
)
def test_steps_are_slower_after_a_search_where_clocks_that_drift_do_not_explain_it(
    after: list[float], without: list[float], is_slower: bool
) -> None:
    assert micro_batch.slower(after, without) is is_slower


def planted(mistake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let decoders make a mistake."""
    if mistake == "tokens of other documents are seen":
        monkeypatch.setattr(loss, "document_attention", lambda inputs, eos: None)
    elif mistake == "tokens that come later are seen":
        right = loss.document_attention
        monkeypatch.setattr(loss, "document_attention", lambda *given: right(*given) | right(*given).mT)
    elif mistake == "heads are not turned":
        monkeypatch.setattr(rotation, "_turn", lambda *given: None)
    else:
        turn, backward = rotation._turn, rotation._RotateInPlace.backward

        def turned_on(context: Any, gradient: torch.Tensor) -> Any:
            monkeypatch.setattr(rotation, "_turn", lambda heads, cosines, sines: turn(heads, cosines, -sines))
            try:
                return backward(context, gradient)
            finally:
                monkeypatch.setattr(rotation, "_turn", turn)

        monkeypatch.setattr(rotation._RotateInPlace, "backward", staticmethod(turned_on))


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


def test_steps_are_counted_while_directories_of_the_training_vanish(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a stage's work does when it is published."""
    for name, lines in (("early", 2), ("late", 3), ("vanished", 9)):
        (tmp_path / name).mkdir()
        (tmp_path / name / interrupted.METRICS).write_text("{}\n" * lines, encoding="utf-8")
    scanned = os.scandir

    def scandir(path: Any) -> Any:
        if Path(path).name == "vanished":
            raise FileNotFoundError(path)
        return scanned(path)

    monkeypatch.setattr(os, "scandir", scandir)
    assert interrupted.trained_steps(tmp_path) == 3
    assert interrupted.trained_steps(tmp_path / "nothing") == 0


def test_what_is_not_finite_is_no_agreement() -> None:
    assert difference([1.0, math.nan], [1.0, math.nan]) == math.inf
    assert distance({"a": torch.tensor([math.nan])}, {"a": torch.ones(1)}) == math.inf


def test_what_is_broken_off_leaves_no_process_and_begins_no_further_step(tmp_path: Path) -> None:
    (tmp_path / "groups").mkdir()
    (tmp_path / "groups" / "mine").touch()
    output = tmp_path / "acceptance.json"
    command = [sys.executable, str(ROOT / "benchmarks" / "gpu_acceptance.py"), "--device", "cpu", "--steps"]
    command += ["short_memory", "groups", "environment", "--output", str(output), "--directory", str(tmp_path)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    assert "short_memory: passed" in process.stderr.readline()
    began = time.monotonic()
    process.terminate()
    process.wait(30)
    assert time.monotonic() - began < 10
    assert process.returncode == 128 + signal.SIGTERM
    assert list(json.loads(output.read_text(encoding="utf-8"))) == ["short_memory"]
    (kept,) = tmp_path.glob("acceptance_*")
    at_work = [path for path in Path("/proc").glob("[0-9]*/cmdline") if str(kept).encode() in text_of(path)]
    assert not at_work
    assert (tmp_path / "groups" / "mine").exists()


def test_a_signal_that_wakes_nobody_is_heeded_before_the_step_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one that arrives just before the wait: here another thread gets it, so that the one that waits sleeps on."""
    until = time.monotonic() + 20

    def waits(step: Step, given: Given, running: Running) -> Outcome:
        time.sleep(0.2)
        signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
        while not running.ended and time.monotonic() < until:
            time.sleep(0.01)
        return Outcome(step.name, step.about, "failed", 0.0, {}, [])

    monkeypatch.setattr(gpu_acceptance, "run", waits)
    before = signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    asked = Namespace(device="cpu", at_once=None, seconds=math.inf)
    try:
        with pytest.raises(SystemExit), closing(gpu_acceptance._made([Step("a", "", 60)], asked, tmp_path)) as made:
            next(made)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert time.monotonic() < until - 10


def text_of(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def test_outcomes_are_written_step_by_step_and_kept(tmp_path: Path) -> None:
    command = [str(ROOT / "benchmarks" / "gpu_acceptance.py"), "--device", "cpu"]
    output = tmp_path / "acceptance.json"
    for step in ("environment", "neighbours"):
        done = forked.run([*command, "--steps", step, "--output", str(output)])
        assert done.returncode == 0, done.stdout
    assert "| environment | passed |" in done.stdout and "| neighbours | passed |" in done.stdout


def test_what_became_of_a_step_is_kept_where_a_later_call_has_no_time_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    child(tmp_path, monkeypatch, "time.sleep(60)\n")
    output = tmp_path / "acceptance.json"
    made = Outcome("environment", "versions", "passed", 3.0, {"tflops": 700}, [])
    output.write_text(json.dumps({made.step: made.to_json()}), encoding="utf-8")
    asked = Namespace(device="cpu", at_once=None, seconds=1.0, part=None, directory=None, output=output)
    asked.steps = ["environment", "shares"]
    before = signal.getsignal(signal.SIGTERM)
    try:
        assert gpu_acceptance.main(asked) == 1
    finally:
        signal.signal(signal.SIGTERM, before)
    kept = json.loads(output.read_text(encoding="utf-8"))
    assert kept["environment"] == made.to_json() and kept["shares"]["state"] == "no time"
    told = capsys.readouterr()
    assert "environment: no time" in told.err
    assert "| environment | passed, by other code |" in told.out and "| shares | no time |" in told.out


@pytest.mark.parametrize("place", ["benchmarks/loops/shapes.py", "tests/gpu/test_decoder_on_device.py", "src/a.py"])
def test_what_a_step_runs_is_of_its_code(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("benchmarks/loops/shapes.py", "tests/gpu/test_decoder_on_device.py", "src/a.py"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text("before", encoding="utf-8")
    read = Code.read
    monkeypatch.setattr(steps, "ROOT", tmp_path)
    monkeypatch.setattr(Code, "read", lambda package=tmp_path / "src": read(package))
    before = steps.code_digest()
    (tmp_path / place).write_text("after", encoding="utf-8")
    assert steps.code_digest() != before


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--output", "torn.json"], "torn.json holds no outcomes of an earlier call"),
        (["--directory", "torn.json"], "--directory torn.json: is a file"),
        (["--at-once", "0"], "--at-once 0: one at least"),
        (["--seconds", "0"], "--seconds 0: above 0"),
        (["--part", "2"], "none of these steps is of part 2"),
    ],
)
def test_what_cannot_be_done_is_refused_before_any_step(given: list[str], said: str, tmp_path: Path) -> None:
    (tmp_path / "torn.json").write_text('{"environment": {', encoding="utf-8")
    command = [str(ROOT / "benchmarks" / "gpu_acceptance.py"), "--device", "cpu"]
    done = forked.run([*command, "--steps", "environment", *given], cwd=tmp_path)
    assert done.returncode != 0
    assert said in done.stderr and "Traceback" not in done.stderr
    assert (tmp_path / "torn.json").read_text(encoding="utf-8") == '{"environment": {'


def test_three_calls_make_every_step_within_nine_minutes_each(monkeypatch: pytest.MonkeyPatch) -> None:
    assert {step.part for step in STEPS} == {1, 2, 3}
    assert max(step.limit_s for step in STEPS) < gpu_acceptance.SECONDS_OF_PART < 9 * 60
    for words, seconds in (["--part", "2"], gpu_acceptance.SECONDS_OF_PART), ([], math.inf), (["--seconds", "9"], 9):
        monkeypatch.setattr(sys, "argv", ["gpu_acceptance.py", "--device", "cpu", *words])
        assert gpu_acceptance._arguments().seconds == seconds


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
