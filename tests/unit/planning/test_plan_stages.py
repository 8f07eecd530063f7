"""What a plan says of the stages beside training: from those that were timed, and from the items that there are."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from paribus.config.groups.evaluation import EvaluationConfig
from paribus.config.groups.model import EncoderDecoderModel
from paribus.config.groups.packing import PairPacking
from paribus.config.groups.plan import PlanConfig
from paribus.config.groups.tokenization import DropoutEncoder
from paribus.modeling.counts import flops_per_token, source_flops_per_token
from paribus.ordering.contexts.readings import SAMPLED
from paribus.pipeline.prepared_run import PreparedRun
from paribus.planning.bill import bill
from paribus.planning.other_stages import Encoded
from paribus.planning.plan import Plan, make_plan
from support.plans import MODEL, STATED, TRAINING, planned_run, store_record

TRANSLATOR = EncoderDecoderModel(
    width=32, encoder_layers=2, decoder_layers=3, heads=2, ffn_width=48, context_length=32, positions=32
)
CORPUS = {"train": {"documents": 10, "bytes": 1_000_000}}
TRAINED = {
    "tokens": 1, "text_bytes": 1, "steps": 1, "epochs": 1.0, "flops": 5e9, "device_hours": 0.5, "parameters": 1000,
}  # fmt: skip


def before(plan: Plan) -> tuple[float, set[str], set[str]]:
    """Seconds of this machine, and the stages for which they are known and not known."""
    stages = plan.others.before
    return stages.hours.value * 3600, set(stages.known), set(stages.unknown)


def test_nothing_is_known_of_stages_before_one_was_timed(tmp_path: Path) -> None:
    plan = make_plan([planned_run(tmp_path)])
    assert before(plan) == (0.0, set(), {"corpus", "vocabulary", "tokens", "tasks", "prompts", "order", "contexts"})
    assert plan.others.after.unknown == ("evaluation",)
    assert "before training: hours not known of corpus, tasks, vocabulary, tokens" in "\n".join(bill(plan))


def test_a_stage_takes_as_long_a_byte_as_its_kind_took_on_another_corpus(tmp_path: Path) -> None:
    run = planned_run(tmp_path)
    store_record(run, "corpus", CORPUS)
    store_record(run, "corpus", {"train": {"documents": 5, "bytes": 250_000}}, key="other")
    store_record(run, "vocabulary", {}, key="other", inputs={"corpus": "other"}, seconds=3.0)
    seconds, known, unknown = before(make_plan([run]))
    assert (seconds, known) == (pytest.approx(12.0), {"vocabulary"})
    assert unknown == {"tokens", "tasks", "prompts", "order", "contexts"}


def test_the_same_kind_of_tokenizer_says_more_than_another(tmp_path: Path) -> None:
    run = planned_run(tmp_path)
    store_record(run, "corpus", CORPUS)
    groups = run.nodes["vocabulary"].identity["identity"]
    slow = groups | {"tokenizer": {"kind": "unigram"}}
    store_record(run, "vocabulary", {}, key="slow", identity=slow, seconds=50.0)
    assert before(make_plan([run]))[0] == pytest.approx(50.0)
    store_record(run, "vocabulary", {}, key="fast", seconds=2.0)
    assert before(make_plan([run]))[0] == pytest.approx(2.0)


def test_an_encoding_takes_as_long_as_it_has_draws(tmp_path: Path) -> None:
    run = planned_run(tmp_path, encoder=DropoutEncoder(draws=32), packing=PairPacking())
    store_record(run, "corpus", CORPUS)
    groups = run.nodes["tokens"].identity["identity"]
    once = {**groups, "encoder": {**groups["encoder"], "draws": 1}}
    store_record(run, "tokens", {}, key="once", identity=once, seconds=2.0)
    assert before(make_plan([run]))[0] == pytest.approx(64.0)


def test_draws_take_room_as_often_as_they_are(tmp_path: Path) -> None:
    pairs = {"train": {"documents": 1_000, "bytes": 100_000, "target_bytes": 60_000}}
    told = {}
    for draws in (1, 32):
        run = planned_run(tmp_path / str(draws), encoder=DropoutEncoder(draws=draws), packing=PairPacking())
        bare = make_plan([run])
        assert bare.others.encoded == Encoded(draws=draws, unknown=True)
        assert ("room for tokens and contexts is not known" in "\n".join(bill(bare))) == (draws > 1)
        store_record(run, "corpus", pairs)
        plan = make_plan([run])
        told[draws] = "\n".join(bill(plan))
        # A byte is a token of two bytes; bounds, lengths of sources and four arrays of contexts are of eight.
        assert plan.others.encoded.tokens == draws * (2 * 100_000 + 2 * 8 * 1_000) + 8 * 1_000
        # All 100,000 bytes are sampled, two integers each.
        assert plan.others.encoded.contexts == draws * 8 * (4 * 1_000 + 2 * 100_000)
    assert "still to encode: ~218.8 KiB of tokens and 1.6 MiB of contexts\n" in told[1] + "\n"
    assert "~6.6 MiB of tokens and 49.8 MiB of contexts, which 32 draws of BPE-dropout take 32 times" in told[32]


def test_documents_take_the_room_of_their_tokens_and_no_draws_nothing_is_said_of_without_a_corpus(
    tmp_path: Path,
) -> None:
    run = planned_run(tmp_path)
    assert "still to encode" not in "\n".join(bill(make_plan([run])))
    store_record(run, "corpus", CORPUS)
    encoded = make_plan([run]).others.encoded
    # 31,251 contexts of 32 tokens, ends of documents among them, and a sample of the bytes.
    contexts = 8 * (4 * 31_251 + 2 * SAMPLED)
    assert encoded == Encoded(tokens=2 * 1_000_000 + 2 * 8 * 10, contexts=contexts)
    store_record(run, "tokens", {"documents": 10, "bytes": 1_000_000, "tokens": 1_000_000})
    assert make_plan([run]).others.encoded == Encoded(contexts=contexts)
    assert "still to encode: ~5.0 MiB of contexts" in "\n".join(bill(make_plan([run])))
    store_record(run, "contexts", {})
    assert make_plan([run]).others.encoded == Encoded()


def test_a_record_that_cannot_be_read_times_nothing(tmp_path: Path) -> None:
    run = planned_run(tmp_path)
    store_record(run, "corpus", CORPUS)
    damaged = tmp_path / "artifacts" / "vocabulary" / "torn" / "record.json"
    damaged.parent.mkdir(parents=True)
    damaged.write_text('{"seconds": 3', encoding="utf-8")
    assert before(make_plan([run]))[1] == set()


def stored_tasks(run: PreparedRun) -> None:
    """40 items of 300 bytes and 8 examples of 30, and 6,400 bytes of held-out text."""
    result = {
        "tasks": {"continuation": {"items": 40, "fewshot": 8, "written": False}},
        "texts": {},
        "heldout": {"documents": 3, "bytes": 6400},
    }
    files = {"continuation.jsonl": 12_000, "continuation.fewshot.jsonl": 240}
    store_record(run, "tasks", result, files=files)


def test_scoring_is_forward_passes_over_items_and_held_out_text(tmp_path: Path) -> None:
    run = planned_run(tmp_path, evaluation=EvaluationConfig(shots=(0, 1), last_checkpoints=3))
    stored_tasks(run)
    plan = make_plan([run])
    # In bytes a token is a byte; prompts of 300 and of 330 are cut to the context of 32. Held-out text is read once
    # document by document, and twice end to end.
    flops = flops_per_token(MODEL, 257) / 3 * (40 * 2 * 32 + 3 * 6400) * 3
    scoring = plan.others.after
    assert scoring.hours.value == pytest.approx(flops / (0.4 * 989e12) / 3600)
    assert (scoring.known, scoring.timed, scoring.whole) == (("evaluation",), False, True)
    assert plan.training_hours is not None
    assert plan.device_hours is not None
    assert plan.device_hours.value == pytest.approx(plan.training_hours.value + scoring.hours.value)


def test_answers_that_are_written_make_scoring_longer_than_is_said(tmp_path: Path) -> None:
    run = planned_run(tmp_path, evaluation=EvaluationConfig(tasks=("triviaqa",), shots=(0,)))
    result = {
        "tasks": {"triviaqa": {"items": 1, "fewshot": 0, "written": True}},
        "heldout": {"documents": 1, "bytes": 10},
    }
    store_record(run, "tasks", result, files={f"triviaqa{part}.jsonl": 9 for part in ("", ".fewshot")})
    plan = make_plan([run])
    assert not plan.others.after.whole
    assert "still to score: at least ~" in "\n".join(bill(plan))


def translating(root: Path, **evaluation: Any) -> Plan:
    """A plan of scoring 10 held-out pairs of 24 bytes a side in the file, and a test set of 1,000."""
    settings = EvaluationConfig(**{"tasks": ("multi30k_en_de",), "translations": 4} | evaluation)
    run = planned_run(root, model=TRANSLATOR, packing=PairPacking(), evaluation=settings)
    named = [name for name in settings.tasks if name == "multi30k_en_de"]
    result = {"tasks": {name: {"items": 1_000} for name in named}, "heldout": {"documents": 10, "bytes": 100}}
    files = {f"{name}.pairs.jsonl": 48_000 for name in named} | {"heldout.jsonl": 480}
    store_record(run, "tasks", result, files=files)
    return make_plan([run])


def test_translations_are_written_a_token_at_a_time_by_every_hypothesis(tmp_path: Path) -> None:
    plan = translating(tmp_path / "held", tasks=(), translations=4)
    assert "a token of each hypothesis to be a step" in "\n".join(bill(plan))
    held = plan.others.after
    # In bytes a token is a byte: 25 tokens a side, of hypotheses half as many again, and the context has 32.
    target, source = flops_per_token(TRANSLATOR, 257) / 3, source_flops_per_token(TRANSLATOR, 257) / 3
    read = 10 * 25 * target + (10 + 4) * 25 * source
    written = 3 * 4 * 4 * 32 * target
    one_batch = 32 * 3 * 0.002
    assert held.hours.value * 3600 == pytest.approx((read + written) / (0.4 * 989e12) + one_batch)
    assert (held.known, held.timed, held.whole) == (("evaluation",), False, True)
    test_set = translating(tmp_path / "test").others.after.hours.value * 3600
    # On a GPU a batch has 32,768 tokens, of sources and of four hypotheses: 262 rows, so four batches.
    assert test_set == pytest.approx(5 * one_batch, rel=0.01)
    assert translating(tmp_path / "none", tasks=(), translations=0).others.after.hours.value < held.hours.value / 1000


@pytest.mark.parametrize(("recorded", "devices"), [({}, 1), ({"gpus": 8}, 8)])
def test_scores_take_as_long_as_those_of_the_same_items_took_here(
    recorded: dict[str, int], devices: int, tmp_path: Path
) -> None:
    trained, other = planned_run(tmp_path, PlanConfig()), planned_run(tmp_path, PlanConfig(), seed=1)
    store_record(trained, "training", TRAINED)
    store_record(trained, "evaluation", {}, seconds=36.0, **recorded)
    scoring = make_plan([trained, other]).others.after
    parameters = make_plan([other]).runs[0].parameters
    assert scoring.hours.value == pytest.approx(0.01 * devices * parameters / 1000)
    assert (scoring.known, scoring.timed) == (("evaluation",), True)
    elsewhere = planned_run(tmp_path, STATED, seed=1)
    assert make_plan([elsewhere]).others.after.unknown == ("evaluation",)


def test_a_device_that_is_not_here_is_said_while_something_is_to_be_trained_on_it(tmp_path: Path) -> None:
    run = planned_run(tmp_path, training=replace(TRAINING, device="cuda:63"))
    assert [problem.partition(" is asked")[0] for problem in make_plan([run]).problems] == ["training.device: cuda:63"]
    store_record(run, "training", TRAINED)
    assert make_plan([run]).problems == ()


def until(run: PreparedRun, stage: Any) -> PreparedRun:
    return replace(run, job=replace(run.job, config=replace(run.job.config, until=stage)))


def test_stages_behind_until_are_neither_planned_nor_counted(tmp_path: Path) -> None:
    plan = make_plan([until(planned_run(tmp_path), "contexts")])
    assert {stage.name for stage in plan.stages} == {"corpus", "vocabulary", "tokens", "order", "contexts"}
    assert (plan.trainings, plan.flops, plan.disk_bytes) == ([], 0, 0)
    assert plan.device_hours is not None and plan.device_hours.value == 0
    assert plan.others.after.unknown == ()
    told = "\n".join(bill(plan))
    assert "until=contexts: what follows that stage, or does not lead to it, is neither made nor counted" in told
    assert "to train" not in told


def test_a_training_is_counted_where_it_is_the_last_stage(tmp_path: Path) -> None:
    plan = make_plan([until(planned_run(tmp_path), "training")])
    assert "training" in {stage.name for stage in plan.stages} and "evaluation" not in {s.name for s in plan.stages}
    assert len(plan.trainings) == 1 and plan.flops > 0
    assert "still to train: 1 training" in "\n".join(bill(plan))


def test_nothing_is_probed_where_nothing_is_trained(tmp_path: Path) -> None:
    said: list[str] = []
    make_plan([until(planned_run(tmp_path, plan=PlanConfig(throughput="probe")), "order")], said.append)
    assert said == []
