"""What a plan says a training takes, before and after it has run, and what it refuses."""

from contextlib import nullcontext
from pathlib import Path

import pytest

from paribus.checks import compose_command
from paribus.config.arguments import parse
from paribus.errors import ConfigurationError
from paribus.modeling.parameters import parameter_count, training_flops
from paribus.pipeline.prepare import prepare_runs
from paribus.pipeline.prepared import PreparedRun
from paribus.planning.length import bytes_by_rule
from paribus.planning.plan import Plan, PlannedRun, make_plan
from support.plans import shown, store_record

CORPUS = {"train": {"documents": 100, "bytes": 44_000}}


def prepared_runs(root: Path, *overrides: str, tolerate_missing: bool = False) -> list[PreparedRun]:
    command = parse(["scale=tiny", "corpus=pydocs_small", f"root={root}", *overrides])
    return prepare_runs(compose_command(command), tolerate_missing=tolerate_missing)


def prepared(root: Path, *overrides: str) -> PreparedRun:
    (run,) = prepared_runs(root, *overrides)
    return run


def planned(root: Path, *overrides: str) -> PlannedRun:
    return make_plan(prepared_runs(root, *overrides, tolerate_missing=True)).runs[0]


def words(plan: Plan) -> str:
    return " ".join(shown(plan).split())


def test_numbers_that_depend_on_the_vocabulary_are_exact_once_it_exists_and_with_bytes(tmp_path: Path) -> None:
    overrides = ("budget=equal_flops", "budget.flops=3e9", "tokenizer.vocab_size=4096")
    asked = planned(tmp_path, *overrides)
    run = prepared(tmp_path, *overrides)
    store_record(run, "vocabulary", {"vocab_size": 556})
    known, model = planned(tmp_path, *overrides), run.job.config.model
    assert (asked.parameters, known.parameters) == (parameter_count(model, 4096), parameter_count(model, 556))
    assert known.length.steps > 2 * asked.length.steps
    assert {"steps", "parameters"} <= asked.length.estimated
    assert not {"steps", "parameters"} & known.length.estimated


def test_full_contexts_flops_and_steps_are_planned_to_the_step(tmp_path: Path) -> None:
    model = prepared(tmp_path).job.config.model
    step = training_flops(model, 512, 8 * 64)
    for overrides, steps in (
        (("budget.tokens=1000",), 2),
        *(
            (("budget=equal_flops", f"budget.flops={6 * step + 1}", f"packing={packing}"), 7)
            for packing in ("concatenate", "best_fit")
        ),
        (("budget=equal_steps", "budget.steps=7", "packing=best_fit"), 7),
        (("budget=equal_steps", "budget.steps=1K"), 1000),
    ):
        length = planned(tmp_path, *overrides).length
        assert (length.steps, length.tokens, length.flops) == (steps, steps * 8 * 64, steps * step), overrides


def test_a_batch_and_a_context_in_bytes_are_planned_by_bytes_a_token(tmp_path: Path) -> None:
    batch = planned(tmp_path, "budget=equal_text", "training.global_batch=0", "training.batch_bytes=2KB").length
    assert {"steps", "tokens", "flops", "memory"} <= batch.estimated
    assert batch.steps == pytest.approx(200_000 / 2000, rel=0.05)
    nine = ("budget=equal_steps", "budget.steps=9")
    context = planned(tmp_path, "model.context_length=0", "model.context_bytes=1KB", *nine).length
    length = 8 * round(1000 / bytes_by_rule(512) / 8)
    assert (context.steps, context.tokens) == (9, 9 * 8 * length)
    assert "steps" not in context.estimated


def test_epochs_are_planned_once_there_is_text(tmp_path: Path) -> None:
    run = prepared(tmp_path, "budget.tokens=51200")
    assert make_plan([run]).runs[0].length.epochs is None
    store_record(run, "corpus", CORPUS)
    with_ends = 44_000 / (44_000 / bytes_by_rule(512) + 100)
    assert make_plan([run]).runs[0].length.epochs == pytest.approx(51_200 * with_ends / 44_000)
    store_record(run, "tokens", {"bytes": 44_000, "tokens": 21_900, "documents": 100})
    length = make_plan([run]).runs[0].length
    assert (length.text_bytes, length.epochs) == (102_400, pytest.approx(51_200 / 22_000))
    store_record(run, "order", {"documents": 50, "removed": 50, "entries": 50})
    assert make_plan([run]).runs[0].length.epochs == pytest.approx(2 * 51_200 / 22_000)


def test_an_epoch_of_groups_is_a_context_of_each(tmp_path: Path) -> None:
    run = prepared(tmp_path, "ordering=nn", "budget=equal_text", "budget.text=100KB")
    store_record(run, "corpus", CORPUS)
    before = make_plan([run]).runs[0].length.epochs
    store_record(run, "order", {"documents": 100, "removed": 0, "entries": 2_100, "groups": 100})
    context = run.job.config.model.context_length * 44_000 / (44_000 / bytes_by_rule(512) + 100)
    assert make_plan([run]).runs[0].length.epochs == before == pytest.approx(100_000 / (100 * context))


RESULT = {
    "tokens": 70_000, "positions": 90_112, "text_bytes": 250_000, "steps": 176, "flops": 123_456_789, "epochs": 1.25,
    "device_hours": 0.5, "devices": 2, "parameters": 28_128,
}  # fmt: skip


# What would be refused


def test_a_plan_tolerates_missing_files_but_no_unknown_task(tmp_path: Path) -> None:
    assert len(prepared_runs(tmp_path, "evaluation.tasks=[piqa]", tolerate_missing=True)) == 1
    for override in ("evaluation.tasks=[piqq]", "+evaluation.shots_of.piqq=[1]"):
        with pytest.raises(ConfigurationError, match="unknown task 'piqq'; nearest: piqa"):
            prepared_runs(tmp_path, override, tolerate_missing=True)


def test_flops_are_judged_by_the_vocabulary_on_disk(tmp_path: Path) -> None:
    scored = ("evaluation.last_checkpoints=3", "training.checkpoints=20")
    for overrides, path in (
        (("budget.flops=300M",), "budget.flops"),
        (("budget.flops=3e9", *scored), "evaluation.last_checkpoints"),
    ):
        asked = ("budget=equal_flops", "tokenizer.vocab_size=4096", *overrides)
        with pytest.raises(ConfigurationError, match=path):
            prepared(tmp_path / path, *asked)
        enough = ("budget.flops=1T", "evaluation.last_checkpoints=1")
        store_record(prepared(tmp_path / path, *asked, *enough), "vocabulary", {"vocab_size": 556})
        assert prepared(tmp_path / path, *asked).run_id


def test_too_few_checkpoints_to_score_are_refused(tmp_path: Path) -> None:
    message = "3 are to be scored or averaged, and"
    for overrides, refused in (
        (("training.checkpoints=1000",), True),
        (("budget=equal_flops", "training.checkpoints=1000"), True),
        (("budget=equal_steps", "budget.steps=2", "training.checkpoints=3"), True),
        (("budget=equal_steps", "budget.steps=3", "training.checkpoints=3"), False),
    ):
        with pytest.raises(ConfigurationError, match=message) if refused else nullcontext():
            prepared_runs(tmp_path, "evaluation.last_checkpoints=3", *overrides)


def test_a_training_that_left_too_few_checkpoints_or_repeated_text_is_refused_by_its_record(tmp_path: Path) -> None:
    few = ("budget=equal_text", "training.checkpoints=200", "evaluation.last_checkpoints=3")
    store_record(prepared(tmp_path, *few), "training", RESULT)
    message = r"evaluation\.last_checkpoints: 3 are to be scored or averaged, .* at 2 of .* 176 steps"
    with pytest.raises(ConfigurationError, match=message):
        prepared(tmp_path, *few)
    store_record(prepared(tmp_path), "training", RESULT)
    assert prepared(tmp_path, "budget.max_epochs=1.25").run_id == prepared(tmp_path).run_id
    with pytest.raises(ConfigurationError, match=r"budget\.max_epochs: 1\.2 refuses .* 1\.25 epochs"):
        prepared(tmp_path, "budget.max_epochs=1.2")


def test_a_plan_says_what_a_limit_of_epochs_would_refuse(tmp_path: Path) -> None:
    run = prepared(tmp_path, "budget.tokens=51200", "budget.max_epochs=2")
    store_record(run, "corpus", CORPUS)
    text = shown(make_plan([run]))
    epochs = 51_200 / (44_000 / bytes_by_rule(512) + 100)
    assert "would refuse" in text and f"~{epochs:.3g} epochs, but budget.max_epochs is 2" in text


def test_a_plan_says_that_orders_of_a_part_of_the_corpus_read_other_documents(tmp_path: Path) -> None:
    orders, text = "ordering=standard,sequential", ("budget=equal_text", "budget.text=100KB")
    covers = "the orders each read different documents, since the budget covers {} of the corpus"
    perhaps = "the orders may each read different documents, since the budget may not cover the corpus"
    remedy = ": corpus.sample='${budget.text}' chooses them before they are ordered"
    for place, (overrides, corpus_bytes, sentence) in enumerate((
        ((orders, *text), None, perhaps + remedy),
        ((orders, *text), 400_000, covers.format("25 %") + remedy),
        ((orders, *text), 105_000, None),
        ((orders, *text, "corpus.sample=${budget.text}"), None, None),
        ((orders, *text, "corpus.sample=10MB"), None, covers.format("1 %")),
        ((*text, "tokenizer=bpe,bytes"), 400_000, None),
        ((*text, "ordering=standard", "seeds.order=0,1"), 400_000, None),
        ((orders, "budget=equal_steps", "budget.steps=3", "tokenizer=bytes"), None, f"{perhaps}: corpus.sample=1.54KB"),
    )):  # fmt: skip
        runs = prepared_runs(tmp_path / str(place), "-m", *overrides)
        if corpus_bytes is not None:
            store_record(runs[0], "corpus", {"train": {"documents": 100, "bytes": corpus_bytes}})
        plan = words(make_plan(runs))
        assert (sentence or "") in plan and ("different documents" in plan) == (sentence is not None), overrides
