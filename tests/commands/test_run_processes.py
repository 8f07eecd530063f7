"""paribus as its users run it: real commands in real processes, on text of their own."""

import csv
import json
import os
import re
import signal
import subprocess
import time
from collections import Counter
from itertools import permutations
from pathlib import Path

import pytest

from paribus.checks import compose_command
from paribus.config.arguments import parse
from paribus.pipeline.prepare import prepare_runs
from paribus.planning.plan import make_plan
from support.command_line import OVERRIDES, command, paribus, write_corpus


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory in which a sweep of two tokenizers and two orderings has run."""
    directory = tmp_path_factory.mktemp("sweep")
    write_corpus(directory)
    paribus(directory, "run", "-m", *OVERRIDES, *SWEEP)
    return directory


SWEEP = ("tokenizer=bpe,scaffold_bpe", "ordering=standard,in_context", "duplicates=embedding")


def made(directory: Path) -> Counter[str]:
    return Counter(path.parent.parent.name for path in (directory / "paribus_runs/artifacts").glob("*/*/record.json"))


def test_a_sweep_makes_each_shared_artefact_once(sweep: Path) -> None:
    assert made(sweep) == {
        "corpus": 1,
        "vocabulary": 2,
        "tokens": 2,
        "embeddings": 1,
        "neighbours": 1,
        "duplicates": 1,
        "order": 2,
        "contexts": 4,
        "training": 4,
        "tasks": 1,
        "prompts": 2,
        "evaluation": 4,
    }


def test_a_plan_in_a_fresh_root_names_exactly_what_the_sweep_made(
    sweep: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(sweep)
    plan = make_plan(prepare_runs(compose_command(parse(["-m", *OVERRIDES, *SWEEP, f"root={tmp_path}"]))))
    assert {stage.state for stage in plan.stages} == {"missing"}
    artifacts = (path.parent for path in (sweep / "paribus_runs/artifacts").glob("*/*/record.json"))
    assert {(stage.name, stage.key) for stage in plan.stages} == {(path.parent.name, path.name) for path in artifacts}
    assert len(plan.stages) == len({(stage.name, stage.key) for stage in plan.stages})
    assert len(plan.trainings) == made(sweep)["training"]


def test_the_same_command_again_makes_nothing(sweep: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in (sweep / "paribus_runs/artifacts").rglob("record.json")}
    done = paribus(sweep, "run", "-m", *OVERRIDES, *SWEEP)
    assert "4 of 4 runs done already" in done.stdout
    assert " done in " not in done.stdout
    assert "bits / byte" in " ".join(done.stdout.split())
    assert before == {path: path.stat().st_mtime_ns for path in (sweep / "paribus_runs/artifacts").rglob("record.json")}


def test_plan_and_status_agree_that_all_is_cached(sweep: Path) -> None:
    plan = paribus(sweep, "plan", "-m", *OVERRIDES, *SWEEP).stdout
    assert "missing" not in plan
    assert "4 cached" in plan
    assert "not started" not in paribus(sweep, "status", "-m", *OVERRIDES, *SWEEP).stdout


def test_the_report_has_a_row_a_combination_and_links_its_runs(sweep: Path) -> None:
    paribus(sweep, "report", "-m", *OVERRIDES, *SWEEP)
    (report,) = (sweep / "paribus_runs/reports").iterdir()
    with (report / "report.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    bits = [row for row in rows if row["measure"] == "bits_per_byte"]
    assert len(bits) == 4
    runs = {run.name for run in (sweep / "paribus_runs/runs").iterdir()}
    assert {row["run_ids"] for row in bits} <= runs
    assert [row["baseline"] for row in bits] == ["", *["bpe, standard"] * 3]
    assert {path.name for path in report.iterdir()} >= {"report.parquet", "tables.tex", "report.md"}
    assert (report / "plots/vocabulary_overlap.svg").is_file()
    (sweep_log,) = (sweep / "paribus_runs/sweeps").glob("*/events.jsonl")
    told = [json.loads(line) for line in sweep_log.read_text(encoding="utf-8").splitlines()]
    shares = {line["name"]: line["value"] for line in told if line["event"] == "metric"}
    pairs = permutations(("bpe", "scaffold_bpe"))
    for one, other in pairs:
        assert 0.5 < shares[f"vocabulary_overlap/{one} in {other}"] <= 1
        assert shares[f"vocabulary_overlap/occurrences per million of {one} not in {other}"] > 0
    page = (report / "report.html").read_text(encoding="utf-8")
    for run in (sweep / "paribus_runs/runs").iterdir():
        assert run.name in page
    assert re.search(r"Of it both first read \S+% .*at the same step, and \S+% .*within 5 steps", page)
    assert "http://" not in page.replace("http://www.w3.org", "")


def test_a_report_refuses_runs_that_differ_in_more_than_the_declared_factors(sweep: Path) -> None:
    paribus(sweep, "run", *OVERRIDES, "training.learning_rate=5e-4", "ordering=in_context", "tokenizer=scaffold_bpe")
    records = sorted((sweep / "paribus_runs/runs").glob("*/run.json"))
    loaded = [json.loads(path.read_text(encoding="utf-8")) for path in records]
    pairs = zip(records, loaded, strict=True)
    record, changed = next(pair for pair in pairs if pair[1]["identity"]["training"]["learning_rate"] == 1e-3)
    original = json.dumps(changed)
    changed["identity"]["training"]["learning_rate"] = 0.123
    record.write_text(json.dumps(changed), encoding="utf-8")
    refused = paribus(sweep, "report", "-m", *OVERRIDES, *SWEEP, expect=2)
    assert "training.learning_rate" in refused.stderr
    why = paribus(sweep, "report", "--why", "-m", *OVERRIDES, *SWEEP, expect=2).stdout
    assert "Not declared, so that the table is refused:\n  training.learning_rate\n" in why
    assert {"    0.001: ", "    0.123: "} <= {line[:11] for line in why.splitlines()}
    assert "  tokenizer.kind\n" in why
    record.write_text(original, encoding="utf-8")


def test_a_report_lists_runs_that_are_missing(sweep: Path) -> None:
    done = paribus(sweep, "report", "-m", *OVERRIDES, "tokenizer=bpe,bytes", "duplicates=embedding", expect=1)
    assert "not started" in done.stdout


def test_a_run_made_again_from_nothing_has_the_same_bytes(sweep: Path) -> None:
    """Also where a command after the training, which trained nothing, had named a device that is not here."""
    run = sorted((sweep / "paribus_runs/runs").iterdir())[0]
    record = json.loads((run / "run.json").read_text(encoding="utf-8"))
    record["config"]["training"]["device"] = "cuda:7"
    (run / "run.json").write_text(json.dumps(record), encoding="utf-8")
    refused = paribus(sweep, "rerun", run.name, expect=2)
    assert "training.device: cuda:7 is asked for" in refused.stderr
    assert not list((sweep / "paribus_runs/reruns").iterdir())
    assert "no device" in paribus(sweep, "rerun", run.name, "embedder.device=cpu", expect=2).stderr
    done = paribus(sweep, "rerun", run.name, "training.device=cpu", forked=False)
    assert done.stdout.count("identical") >= 7
    assert "differs" not in done.stdout


def test_seeds_share_everything_but_order_and_training(sweep: Path) -> None:
    plan = paribus(sweep, "plan", "-m", *OVERRIDES, "seed=0,5", "duplicates=embedding").stdout
    lines = {line.split()[0]: line for line in plan.partition("every run:")[0].splitlines() if line.split()}
    assert "1 cached" in lines["vocabulary"]
    assert "1 cached, 1 missing" in lines["training"]


def test_a_run_killed_in_training_carries_on_and_ends_like_an_undisturbed_one(sweep: Path, tmp_path: Path) -> None:
    write_corpus(tmp_path)
    arguments = ("run", *OVERRIDES, "tokenizer=bpe", "ordering=standard", "duplicates=embedding")
    process = subprocess.Popen(command(arguments), cwd=tmp_path, stdout=subprocess.DEVNULL, start_new_session=True)
    partial = tmp_path / "paribus_runs/artifacts/partial"
    deadline = time.monotonic() + 300
    while not list(partial.glob("training-*/work/step_*")):
        assert process.poll() is None, "the run ended before it could be killed"
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.kill()
    process.wait()
    assert not (tmp_path / "paribus_runs/artifacts/training").exists()
    paribus(tmp_path, *arguments)
    weights = [
        sorted((directory / "paribus_runs/artifacts/training").glob("*/step_*/model.safetensors"))
        for directory in (sweep, tmp_path)
    ]
    assert weights[1]
    again = {(path.parts[-3], path.parts[-2]): path.read_bytes() for path in weights[1]}
    straight = {(path.parts[-3], path.parts[-2]): path.read_bytes() for path in weights[0]}
    assert again == {name: straight[name] for name in again}


@pytest.mark.parametrize(("number", "during"), [(signal.SIGINT, "tokens: start"), (signal.SIGHUP, "corpus: start")])
def test_ctrl_c_or_a_closed_terminal_stops_the_sweep_which_says_how_to_go_on_and_leaves_no_half_artefact(
    tmp_path: Path, number: signal.Signals, during: str
) -> None:
    write_corpus(tmp_path)
    arguments = command(("run", "-m", *OVERRIDES, *SWEEP))
    # A shell that starts the tests in the background has them, and what they start, ignore Ctrl-C; nohup, a hang-up.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    process = subprocess.Popen(arguments, cwd=tmp_path, stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stdout is not None
    for line in process.stdout:
        if during in line:
            break
    os.kill(process.pid, number)
    rest, _ = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "same command again" in rest
    (record,) = (tmp_path / "paribus_runs/runs").glob("*/run.json")
    assert json.loads(record.read_text(encoding="utf-8"))["status"] == "interrupted"
    for directory in (tmp_path / "paribus_runs/artifacts").glob("*/*/"):
        if directory.parent.name not in ("claims", "partial"):
            assert (directory / "record.json").is_file()


def test_a_sweep_whose_table_would_be_refused_is_refused_before_anything_runs(tmp_path: Path) -> None:
    write_corpus(tmp_path)
    arguments = ("-m", *OVERRIDES, "ordering=standard,in_context")
    refused = paribus(tmp_path, "run", *arguments, expect=2).stderr
    assert 'duplicates.kind: "off" in standard; "minhash" in in_context' in refused
    assert "duplicates=off or duplicates=minhash" in refused
    assert made(tmp_path) == {}
    planned = paribus(tmp_path, "plan", *arguments, expect=1).stdout
    last = planned[planned.index("paribus run would refuse this: ") :]
    assert last.partition(": ")[2].strip() == refused.strip().removeprefix("paribus run: ")
    assert "would refuse" not in paribus(tmp_path, "plan", *arguments, "factors=[duplicates]").stdout


def test_one_failing_run_leaves_the_others_alone(tmp_path: Path) -> None:
    write_corpus(tmp_path)
    characters = ("tokenizer.unit=character", "tokenizer.vocab_size=50,700")
    failed = paribus(tmp_path, "run", "-m", *OVERRIDES, *characters, expect=1)
    assert "1 of 2 runs done" in failed.stdout
    assert "tokenizer.vocab_size" in failed.stdout
    status = paribus(tmp_path, "status", "-m", *OVERRIDES, *characters, expect=1)
    assert "configuration" in status.stdout


def test_two_copies_started_at_once_do_the_work_once(tmp_path: Path) -> None:
    write_corpus(tmp_path)
    arguments = command(("run", *OVERRIDES))
    copies = [subprocess.Popen(arguments, cwd=tmp_path, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    printed = "".join(copy.communicate()[0] for copy in copies)
    assert [copy.returncode for copy in copies] == [0, 0]
    lines = [line.split() for line in printed.splitlines()]
    done = Counter(line[0] for line in lines if line[1:2] == ["done"])
    stages = ("corpus", "vocabulary", "tokens", "order", "contexts", "training", "tasks", "prompts", "evaluation")
    assert done == dict.fromkeys(stages, 1)


def test_the_smallest_scale_holds_out_enough_documents_for_its_task_and_its_table(tmp_path: Path) -> None:
    common = ("scale=tiny", "tracking=none", "until=tasks")
    paribus(tmp_path, "run", *common)
    planned = paribus(tmp_path, "plan", "--json", "-m", "tokenizer=bpe,scaffold_bpe", "seed=0,1,2", *common)
    assert json.loads(planned.stdout)["judgement"] == []


def test_the_prompts_of_the_smallest_scale_fit_its_contexts(tmp_path: Path) -> None:
    common = ("scale=tiny", "corpus.limit=1MB", "tracking=none", "until=prompts")
    told = paribus(tmp_path, "run", "-m", "tokenizer=bpe,bytes", *common).stdout
    assert "lose their beginning" not in told
    prompts = sorted((tmp_path / "paribus_runs/artifacts/prompts").glob("*/prompts.json"))
    assert len(prompts) == 2
    for path in prompts:
        task = json.loads(path.read_text(encoding="utf-8"))["tasks"]["continuation"]
        assert task["items"] > 0 and task["long_prompts"] == {"0": 0}


def test_a_run_says_before_it_trains_what_its_table_could_not_judge(tmp_path: Path) -> None:
    write_corpus(tmp_path)
    swept = ("run", "-m", *OVERRIDES, "corpus.heldout=0.05", "tokenizer=bpe,bytes", "until=corpus")
    first, second = (" ".join(paribus(tmp_path, *swept, other).stdout.split()) for other in ("seed=0", "seed=1"))
    few = r"these runs score \d+ held-out documents \(more with corpus\.heldout or a larger corpus, which train"
    assert re.search(rf"here they have 1: seed=0,1,2 run 1 of 2 .* corpus done .* {few}.* run 2 of 2", first)
    assert re.search(rf"{few} all anew\) run 1 of 2", second)
    assert [len(re.findall(few, printed)) for printed in (first, second)] == [1, 1]
