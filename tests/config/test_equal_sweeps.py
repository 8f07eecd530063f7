"""All else being equal, judged before anything runs: what the runs of a sweep may differ in."""

from pathlib import Path

from paribus.checks import compose_command
from paribus.config.arguments import parse
from paribus.pipeline.prepare import prepare_runs, same_run_twice
from paribus.pipeline.prepared import PreparedRun, undeclared
from paribus.pipeline.recorder import RunRecord
from paribus.pipeline.results import collect
from paribus.pipeline.root import OutputRoot

ORDERINGS = ("-m", "scale=tiny", "ordering=standard,in_context")


def prepared(*arguments: str) -> list[PreparedRun]:
    return prepare_runs(compose_command(parse(arguments)), tolerate_missing=True)


def differing(*arguments: str) -> list[str]:
    error = undeclared(prepared(*arguments))
    return [difference.path for difference in error.differences] if error else []


def test_an_ordering_that_removes_duplicates_is_not_compared_with_one_that_does_not() -> None:
    error = undeclared(prepared(*ORDERINGS))
    assert error is not None
    lines = str(error).splitlines()
    assert "declared factors (ordering)" in lines[0]
    assert lines[1:-1] == [
        '  duplicates.kind: "off" in standard; "minhash" in in_context',
        "  duplicates.permutations: nothing in standard; 128 in in_context",
        "  duplicates.shingle: nothing in standard; 5 in in_context",
        "  duplicates.threshold: nothing in standard; 0.8 in in_context",
    ]
    for remedy in ("duplicates=off or duplicates=minhash", "-m duplicates=off,minhash", "factors=[duplicates]"):
        assert remedy in lines[-1]


def test_a_sweep_over_what_changes_no_run_is_refused() -> None:
    """The table would show one run under several labels."""
    execution = {
        "training.micro_batch": "4,8",
        "training.checkpoint_every": "10,20",
        "evaluation.device": "cpu,auto",
        "evaluation.batch_tokens": "64,128",
        "root": "a,b",
        "neighbours.retrieved": "5,10",
    }
    for field, values in execution.items():
        one, other = (f"{field}={value}" for value in values.split(","))
        for more in ((), ("tokenizer=bpe,bytes", "seed=0,1")):
            problem = str(same_run_twice(prepared("-m", "scale=tiny", f"{field}={values}", *more)))
            first, second = problem.removesuffix(" make the same run; leave one of them out").split(" and ")
            assert one in first.split() and other in second.split() and first.replace(one, other) == second, field


def test_two_jobs_that_are_one_run_are_refused() -> None:
    """Copies of one model would pass for seeds that agree, and star what no seed shows."""
    seeds = "seed=0,1 seeds.weights=0 seeds.contexts=0"
    refusals = {
        "budget.tokens=64K,64000,128K": "budget.tokens=64K and budget.tokens=64000 make the same run; leave",
        "ordering=standard,nn neighbours.retrieved=25,30": "ordering=standard neighbours.retrieved=30 make",
        f"ordering=sequential,standard {seeds}": "seed=1 make the same",
        f"{seeds} seeds.order=0": "seed=0 and seed=1 make the same run",
    }
    for words, message in refusals.items():
        assert message in str(same_run_twice(prepared("-m", "scale=tiny", "duplicates=off", *words.split()))), words


def test_each_remedy_makes_the_comparison_fair() -> None:
    for remedy in ("duplicates=off", "duplicates=minhash", "duplicates=off,minhash", "factors=[duplicates]"):
        assert differing(*ORDERINGS, remedy) == [], remedy


def test_seeds_and_swept_fields_are_no_difference() -> None:
    assert differing("-m", "seed=0,1", "tokenizer=bpe,scaffold_bpe", "training.learning_rate=1e-3,2e-3") == []


def test_a_bundle_of_sizes_is_not_one_factor() -> None:
    found = differing("-m", "scale=tiny,demo")
    assert {"model.width", "tokenizer.vocab_size", "training.learning_rate"} <= set(found)
    groups = sorted({path.split(".")[0] for path in found})
    declared = ("-m", "scale=tiny,demo", f"factors=[{','.join(groups)}]")
    scored = differing(*declared)
    lengths = {"evaluation.context_characters", "evaluation.continuation_characters"}
    assert set(scored) == {"corpus.limit", "evaluation.continuation_items", "evaluation.heldout_documents", *lengths}
    assert differing(*declared, *(f"{path}=300" for path in scored)) == []


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_no_factor_excuses_that_other_things_are_scored() -> None:
    for override in (
        "evaluation.last_checkpoints=1,2",
        "evaluation.limit=10,20",
        "evaluation.clean_overlap=0.1,0.2",
        "evaluation.continuation_items=10,20",
        "corpus.heldout=0.1,0.2",
    ):
        error = undeclared(prepared("-m", "scale=tiny", override))
        assert error is not None and [each.path for each in error.differences] == [override.partition("=")[0]]
        assert "scored on different items or text" in str(error), override
    for prompts in ("evaluation.shots=[0],[0,5]", "evaluation.fewshot_seed=1,2"):
        assert differing("-m", "scale=tiny", prompts) == []


def test_the_last_of_several_checkpoints_stand_at_the_same_shares_of_all_budgets() -> None:
    shares = ("-m", "scale=tiny", "training.checkpoints=4,5")
    error = undeclared(prepared(*shares, "evaluation.last_checkpoints=2"))
    assert error is not None
    first, difference, remedy = str(error).splitlines()
    assert "at the last of several checkpoints, which stand at other shares of their budgets" in first
    assert difference == "  training.checkpoints: 4 in training.checkpoints=4; 5 in training.checkpoints=5"
    assert remedy == (
        "Give all runs the same training.checkpoints, or score the last one alone (evaluation.last_checkpoints=1 "
        "evaluation.average_checkpoints=1)"
    )
    assert differing(*shares, "evaluation.last_checkpoints=1") == []


def test_corpora_are_not_compared_on_their_own_held_out_text(tmp_path: Path) -> None:
    first, second = written(tmp_path / "a.txt", "one\n"), written(tmp_path / "b.txt", "two\n")
    files = ("-m", "scale=tiny", "corpus=files", f"corpus.paths=[{first}],[{second}]")
    assert differing(*files) == ["fingerprints.corpus.files"]


def test_a_group_that_decides_nothing_is_compared_as_the_command_has_it(tmp_path: Path) -> None:
    """A run of another command may have been given another embedder, which its order never asked for."""
    arguments = (f"root={tmp_path}", "scale=tiny", "corpus=pydocs_small")
    (earlier,) = prepared(*arguments, "embedder.dimensions=64")
    layout = OutputRoot.of(earlier.job.config)
    RunRecord(earlier.job.config, earlier.nodes, layout).finish(None)
    composition = compose_command(parse(arguments))
    (record,), missing = collect(prepare_runs(composition), composition.factors, layout)
    assert missing == []
    assert record.config["embedder"]["dimensions"] == 128
    assert record.config["tokenizer"]["vocab_size"] == 512
