"""What a plan says a training takes, before and after it has run."""

from contextlib import nullcontext
from pathlib import Path

import pytest

from paribus.checks import compose_command
from paribus.config.arguments import parse
from paribus.config.groups.training import TrainingConfig
from paribus.errors import ConfigurationError
from paribus.modeling.memory import TrainingSetting, training_memory
from paribus.modeling.parameters import parameter_count, training_flops
from paribus.pipeline.prepare import prepare_runs
from paribus.pipeline.prepared import PreparedRun
from paribus.planning.length import bytes_by_rule
from paribus.planning.plan import PlannedRun, make_plan
from paribus.planning.speed import trains_on_gpu
from support.plans import shown, store_record

BASE = ("scale=tiny", "corpus=pydocs_small")
LENGTH = {"tokens", "steps", "flops"}
UNKNOWN = {"epochs", "device_hours"}
OF_THE_VOCABULARY = {"parameters", "disk", "memory", "flops"}


def prepared(root: Path, *overrides: str) -> PreparedRun:
    (run,) = prepare_runs(compose_command(parse([*BASE, f"root={root}", *overrides])))
    return run


def planned(root: Path, *overrides: str) -> PlannedRun:
    runs = prepare_runs(compose_command(parse([*BASE, f"root={root}", *overrides])), tolerate_missing=True)
    return make_plan(runs).runs[0]


@pytest.mark.parametrize(
    ("overrides", "estimated"),
    [
        ((), {"text_bytes"}),
        (("packing=best_fit",), {"text_bytes", *LENGTH}),
        (("packing=one_document",), {"text_bytes", *LENGTH}),
        (("budget=equal_text",), LENGTH),
        (("budget=equal_text", "packing=best_fit"), LENGTH),
        (("budget=equal_flops",), {"text_bytes", *LENGTH}),
        (("budget=equal_flops", "packing=best_fit"), {"text_bytes", *LENGTH}),
        (("budget=equal_steps",), {"text_bytes"}),
        (("budget=equal_steps", "packing=one_document"), {"text_bytes", "tokens"}),
    ],
)
def test_what_padding_or_text_decides_is_estimated(tmp_path: Path, overrides: tuple[str, ...], estimated: set) -> None:
    run = planned(tmp_path, *overrides)
    assert run.length.estimated == estimated | UNKNOWN | OF_THE_VOCABULARY
    assert run.full == any("packing" in override for override in overrides)


def test_figures_that_the_vocabulary_decides_are_exact_once_it_is_there_and_with_bytes(tmp_path: Path) -> None:
    overrides = ("budget=equal_flops", "budget.flops=3e9", "tokenizer.vocab_size=4096")
    asked = planned(tmp_path, *overrides)
    store_record(prepared(tmp_path, *overrides), "vocabulary", {"vocab_size": 556})
    known = planned(tmp_path, *overrides)
    model = prepared(tmp_path, *overrides).job.config.model
    assert (asked.parameters, known.parameters) == (parameter_count(model, 4096), parameter_count(model, 556))
    assert known.length.steps > 2 * asked.length.steps
    assert {"steps", "parameters"} <= asked.length.estimated
    assert known.length.estimated == {"text_bytes"} | UNKNOWN
    in_bytes = planned(tmp_path / "bytes", "budget=equal_flops", "tokenizer=bytes")
    assert in_bytes.length.estimated == {"text_bytes"} | UNKNOWN


@pytest.mark.parametrize(
    ("overrides", "path"),
    [
        (("budget.flops=300M",), "budget.flops"),
        (
            ("budget.flops=3e9", "evaluation.last_checkpoints=3", "training.checkpoints=20"),
            "evaluation.last_checkpoints",
        ),
    ],
)
def test_flops_are_judged_by_the_vocabulary_on_disk(tmp_path: Path, overrides: tuple[str, ...], path: str) -> None:
    asked = ("budget=equal_flops", "tokenizer.vocab_size=4096", *overrides)
    with pytest.raises(ConfigurationError, match=path):
        prepared(tmp_path, *asked)
    enough = ("budget.flops=1T", "evaluation.last_checkpoints=1")
    store_record(prepared(tmp_path, *asked, *enough), "vocabulary", {"vocab_size": 556})
    assert prepared(tmp_path, *asked).run_id


@pytest.mark.parametrize("override", ["evaluation.tasks=[piqq]", "+evaluation.shots_of.piqq=[1]"])
def test_a_plan_tolerates_missing_files_but_no_unknown_task(tmp_path: Path, override: str) -> None:
    plannable = compose_command(parse([*BASE, f"root={tmp_path}", "evaluation.tasks=[piqa]"]))
    assert len(prepare_runs(plannable, tolerate_missing=True)) == 1
    with pytest.raises(ConfigurationError, match="unknown task 'piqq'; nearest: piqa"):
        prepare_runs(compose_command(parse([*BASE, f"root={tmp_path}", override])), tolerate_missing=True)


def test_full_contexts_are_planned_to_the_step(tmp_path: Path) -> None:
    run = planned(tmp_path, "budget.tokens=1000").length
    model = prepared(tmp_path).job.config.model
    assert (run.steps, run.tokens) == (2, 2 * 8 * 64)
    assert run.flops == training_flops(model, 512, 2 * 8 * 64)


def test_flops_and_steps_are_planned_to_the_step(tmp_path: Path) -> None:
    model = prepared(tmp_path).job.config.model
    step = training_flops(model, 512, 8 * 64)
    for packing in ("concatenate", "best_fit"):
        for override, steps in ((f"budget.flops={6 * step + 1}", 7), ("budget.steps=7", 7), ("budget.steps=1K", 1000)):
            kind = "equal_flops" if "flops" in override else "equal_steps"
            run = planned(tmp_path, f"budget={kind}", override, f"packing={packing}").length
            assert (run.steps, run.tokens, run.flops) == (steps, steps * 8 * 64, steps * step)


RESULT = {
    "tokens": 70_000, "positions": 90_112, "text_bytes": 250_000, "steps": 176, "flops": 123_456_789, "epochs": 1.25,
    "device_hours": 0.5, "devices": 2, "parameters": 28_128,
}  # fmt: skip


def test_a_trained_run_shows_what_its_record_says(tmp_path: Path) -> None:
    run = prepared(tmp_path, "packing=best_fit")
    store_record(run, "training", RESULT)
    planned_run = make_plan([run]).runs[0]
    shown = planned_run.length
    assert (shown.tokens, shown.text_bytes, shown.steps, shown.flops) == (70_000, 250_000, 176, 123_456_789.0)
    assert (shown.epochs, planned_run.hours) == (1.25, 0.5)
    assert shown.estimated == frozenset()
    assert planned_run.parameters == 28_128


def test_epochs_are_planned_once_there_is_text(tmp_path: Path) -> None:
    run = prepared(tmp_path, "budget.tokens=51200")
    assert make_plan([run]).runs[0].length.epochs is None
    store_record(run, "corpus", {"train": {"documents": 100, "bytes": 44_000}})
    with_ends = 44_000 / (44_000 / bytes_by_rule(512) + 100)
    assert make_plan([run]).runs[0].length.epochs == pytest.approx(51_200 * with_ends / 44_000)
    store_record(run, "tokens", {"bytes": 44_000, "tokens": 21_900, "documents": 100})
    shown = make_plan([run]).runs[0].length
    assert (shown.text_bytes, shown.epochs) == (102_400, pytest.approx(51_200 / 22_000))
    store_record(run, "order", {"documents": 50, "removed": 50, "entries": 50})
    assert make_plan([run]).runs[0].length.epochs == pytest.approx(2 * 51_200 / 22_000)


def test_a_batch_and_a_context_in_bytes_are_planned_by_bytes_a_token(tmp_path: Path) -> None:
    run = planned(tmp_path, "budget=equal_text", "training.global_batch=0", "training.batch_bytes=2KB")
    assert {"steps", "tokens", "flops", "memory"} <= run.length.estimated
    assert run.length.steps == pytest.approx(200_000 / 2000, rel=0.05)
    longer = planned(
        tmp_path, "model.context_length=0", "model.context_bytes=1KB", "budget=equal_steps", "budget.steps=9"
    )
    length = 8 * round(1000 / bytes_by_rule(512) / 8)
    assert (longer.length.steps, longer.length.tokens) == (9, 9 * 8 * length)
    assert "steps" not in longer.length.estimated


@pytest.mark.parametrize(
    ("overrides", "refused"),
    [
        (("training.checkpoints=1000",), True),
        (("budget=equal_flops", "training.checkpoints=1000"), True),
        (("budget=equal_steps", "budget.steps=2", "training.checkpoints=3"), True),
        (("budget=equal_steps", "budget.steps=3", "training.checkpoints=3"), False),
        (("packing=best_fit", "training.checkpoints=1000"), False),
        (("budget=equal_text", "training.checkpoints=1000"), False),
    ],
)
def test_too_few_checkpoints_to_score_are_refused(overrides: tuple[str, ...], refused: bool, tmp_path: Path) -> None:
    wanting = parse([*BASE, f"root={tmp_path}", "evaluation.last_checkpoints=3", *overrides])
    with pytest.raises(ConfigurationError, match="3 are to be scored or averaged, and") if refused else nullcontext():
        prepare_runs(compose_command(wanting))


def test_a_plan_says_that_a_budget_in_text_may_leave_too_few_checkpoints_to_score(tmp_path: Path) -> None:
    few = ("budget=equal_text", "budget.text=1MB", "training.checkpoints=10000", "evaluation.last_checkpoints=2")
    told = " ".join(shown(make_plan([prepared(tmp_path, *few)])).split())
    assert "may refuse bpe-merge_rank-standard-seed0: evaluation.last_checkpoints: 2 are to be scored" in told
    assert "end at 1 of the budget's" in told


def test_a_training_that_left_too_few_checkpoints_is_refused_by_its_record(tmp_path: Path) -> None:
    few = ("budget=equal_text", "training.checkpoints=200", "evaluation.last_checkpoints=3")
    run = prepared(tmp_path, *few)
    store_record(run, "training", RESULT)
    with pytest.raises(
        ConfigurationError,
        match=r"evaluation\.last_checkpoints: 3 are to be scored or averaged, .* at 2 of .* 176 steps",
    ):
        prepared(tmp_path, *few)


def test_a_plan_says_what_a_limit_of_epochs_would_refuse(tmp_path: Path) -> None:
    run = prepared(tmp_path, "budget.tokens=51200", "budget.max_epochs=2")
    store_record(run, "corpus", {"train": {"documents": 100, "bytes": 44_000}})
    text = shown(make_plan([run]))
    assert "would refuse" in text
    epochs = 51_200 / (44_000 / bytes_by_rule(512) + 100)
    assert f"~{epochs:.3g} epochs, but budget.max_epochs is 2" in text


ORDERS = ("ordering=standard,sequential", "budget=equal_text", "budget.text=100KB")
OTHER_DOCUMENTS = "the orders each read different documents, since the budget covers {} of the corpus"
PERHAPS = "the orders may each read different documents, since the budget may not cover the corpus"
OF_THE_BUDGET = ": corpus.sample='${budget.text}' chooses them before they are ordered"
DRAWN_TWICE = ("ordering=standard", "seeds.order=0,1")


@pytest.mark.parametrize(
    ("overrides", "text_bytes", "told"),
    [
        (ORDERS, None, PERHAPS + OF_THE_BUDGET),
        (ORDERS, 400_000, OTHER_DOCUMENTS.format("25 %") + OF_THE_BUDGET),
        (ORDERS, 105_000, None),
        ((*ORDERS, "corpus.sample=${budget.text}"), None, None),
        ((*ORDERS, "corpus.sample=10MB"), None, OTHER_DOCUMENTS.format("1 %")),
        ((*ORDERS, "corpus.sample=0.5"), None, PERHAPS),
        ((*ORDERS[1:], "tokenizer=bpe,bytes"), 400_000, None),
        ((*ORDERS[1:], "seed=0,1"), 400_000, None),
        ((*ORDERS[1:], *DRAWN_TWICE), 400_000, None),
        (
            (ORDERS[0], "budget=equal_steps", "budget.steps=3", "tokenizer=bytes"),
            None,
            f"{PERHAPS}: corpus.sample=1.54KB",
        ),
    ],
)
def test_a_plan_says_that_orders_of_a_part_of_the_corpus_read_other_documents(
    tmp_path: Path, overrides: tuple[str, ...], text_bytes: int | None, told: str | None
) -> None:
    arguments = ["-m", *BASE, f"root={tmp_path}", *overrides]
    runs = prepare_runs(compose_command(parse(arguments)))
    if text_bytes is not None:
        store_record(runs[0], "corpus", {"train": {"documents": 100, "bytes": text_bytes}})
    text = " ".join(shown(make_plan(runs)).split())
    assert (told or "") in text and ("different documents" in text) == (told is not None)


def test_an_epoch_of_groups_is_a_context_of_each(tmp_path: Path) -> None:
    run = prepared(tmp_path, "ordering=nn", "budget=equal_text", "budget.text=100KB")
    store_record(run, "corpus", {"train": {"documents": 100, "bytes": 44_000}})
    (expected,) = make_plan([run]).runs
    store_record(run, "order", {"documents": 100, "removed": 0, "entries": 2_100, "groups": 100})
    (plan,) = make_plan([run]).runs
    context = run.job.config.model.context_length * 44_000 / (44_000 / bytes_by_rule(512) + 100)
    assert plan.length.epochs == pytest.approx(100_000 / (100 * context))
    assert expected.length.epochs == plan.length.epochs


def test_a_finished_training_that_repeated_text_is_refused_where_that_is_not_allowed(tmp_path: Path) -> None:
    store_record(prepared(tmp_path), "training", RESULT)
    assert prepared(tmp_path, "budget.max_epochs=1.25").run_id == prepared(tmp_path).run_id
    with pytest.raises(ConfigurationError, match=r"budget\.max_epochs: 1\.2 refuses .* 1\.25 epochs"):
        prepared(tmp_path, "budget.max_epochs=1.2")


def test_memory_is_that_of_the_configured_micro_batch_on_the_configured_device(tmp_path: Path) -> None:
    cpu, gpu, small = (
        planned(tmp_path, *overrides)
        for overrides in (("training.device=cpu",), ("training.device=cuda",), ("training.micro_batch=1",))
    )
    model = prepared(tmp_path).job.config.model
    expected = training_memory(model, 512, TrainingSetting(micro_batch=8, share=8))
    assert expected is not None
    assert (cpu.memory, cpu.gpu, gpu.gpu) == (expected.device, False, True)
    assert gpu.memory is not None
    assert small.memory is not None
    assert max(gpu.memory, small.memory) < expected.device


def test_a_gpu_is_taken_to_be_there_where_its_driver_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    driver = tmp_path / "version"
    assert not trains_on_gpu(TrainingConfig(), driver)
    driver.touch()
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert trains_on_gpu(TrainingConfig(), driver)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert not trains_on_gpu(TrainingConfig(), driver)
    assert trains_on_gpu(TrainingConfig(device="cuda:1"), driver)


@pytest.mark.parametrize(("launcher", "said"), [("basic", 1), ("submitit_slurm", 0)])
def test_an_absent_device_is_told_only_where_the_runs_are_made_here(launcher: str, said: int, tmp_path: Path) -> None:
    """Jobs that a scheduler places elsewhere judge their devices themselves."""
    given = ["-m", *BASE, f"root={tmp_path}", "seed=0,1", f"hydra/launcher={launcher}", "training.device=cuda:63"]
    plan = make_plan(prepare_runs(compose_command(parse(given)), tolerate_missing=True))
    assert len([problem for problem in plan.problems if "cuda:63" in problem]) == said
