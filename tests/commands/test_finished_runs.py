"""What becomes of finished runs: a model that leaves its root is the one that was trained."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

import paribus.tokenization.export
from paribus.cli import main
from paribus.commands.export import pad_token
from paribus.tokenization import Tokenizer
from support.command_line import OVERRIDES, paribus, write_corpus
from support.transformers_alone import TransformersAlone

EOS = "<|endoftext|>"
TEXTS = ["The river carries silt.", "An engine burns 12345 fuel", "河流把水 and  stones\n", "🙂 <|endoftext|>"]
SWEEP = ("-m", *OVERRIDES, "tokenizer=bpe,scaffold_bpe", "encoder=merge_rank,longest_first")
ARMS = {"bpe merge_rank": True, "scaffold_bpe longest_first": False}
"""Arm -> whether `tokenizer.json` holds its tokenizer."""


@pytest.fixture(scope="module", name="finished")
def _finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory in which four arms have run."""
    directory = tmp_path_factory.mktemp("finished")
    write_corpus(directory)
    paribus(directory, "run", *SWEEP)
    return directory


@pytest.fixture(name="here")
def _here(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The finished sweep, which models are exported from to this directory."""
    monkeypatch.chdir(tmp_path)
    return finished / "paribus_runs"


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TransformersAlone]:
    """A user who imports transformers and has nothing of paribus imported."""
    with TransformersAlone(tmp_path_factory.mktemp("alone")) as user:
        yield user


def run_of(root: Path, arm: str) -> str:
    """The identifier of the run of an arm."""
    sweep = json.loads(next((root / "sweeps").glob("*/sweep.json")).read_text(encoding="utf-8"))
    return next(run["run_id"] for run in sweep["runs"] if run["label"] == arm)


def training_of(root: Path, arm: str) -> Path:
    record = json.loads((root / "runs" / run_of(root, arm) / "run.json").read_text(encoding="utf-8"))
    return root / "artifacts" / "training" / record["stages"]["training"]["key"]


def trained(root: Path, arm: str) -> Path:
    """The last checkpoint of an arm."""
    return max(training_of(root, arm).glob("step_*"))


def python_blocks(card: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", card.read_text(encoding="utf-8"), flags=re.DOTALL)


@pytest.mark.parametrize("arm", ARMS)
def test_an_exported_model_is_loaded_as_its_card_says_and_has_the_ids_of_paribus(
    here: Path, user: TransformersAlone, arm: str
) -> None:
    assert main(["export", run_of(here, arm), "models/mine", f"root={here}"]) == 0
    blocks = python_blocks(Path("models/mine/README.md"))
    ids_of = "tokenizer(text, split_special_tokens=True)['input_ids']"
    tell = f"found = [{ids_of} for text in {TEXTS!r}] + [model.num_parameters()]"
    code = f"{blocks[0]}\n{tell}\nimport json\nprint(json.dumps(found))"
    done = user.run(code, Path("models"))
    assert done.returncode == 0, done.stderr
    *ids, parameters = json.loads(done.stdout)
    tokenizer = Tokenizer.load(trained(here, arm) / "tokenizer")
    assert ids == [tokenizer.encode(text).tolist() for text in TEXTS]
    assert parameters > 10_000
    weights = "model.safetensors"
    assert (Path("models/mine") / weights).read_bytes() == (trained(here, arm) / weights).read_bytes()
    changed = json.loads((trained(here, arm) / "config.json").read_text(encoding="utf-8")) | {"use_cache": True}
    assert json.loads(Path("models/mine/config.json").read_text(encoding="utf-8")) == changed


@pytest.mark.parametrize("arm", ARMS)
def test_an_exported_model_has_the_defaults_that_users_of_transformers_expect(here: Path, arm: str) -> None:
    assert main(["export", run_of(here, arm), "mine", f"root={here}"]) == 0
    tokenizer = AutoTokenizer.from_pretrained("mine", padding_side="left")
    model = AutoModelForCausalLM.from_pretrained("mine").eval()
    length = model.config.max_position_embeddings
    assert (tokenizer.model_max_length, tokenizer.pad_token, tokenizer.padding_side) == (length, EOS, "left")
    assert len(tokenizer("a b " * length, truncation=True)["input_ids"]) == length
    eos = tokenizer.eos_token_id
    in_the_store = json.loads((trained(here, arm) / "tokenizer_config.json").read_text(encoding="utf-8"))
    assert in_the_store["split_special_tokens"], "a checkpoint is scored with the ids of paribus where it is"
    assert tokenizer(f"a{EOS}")["input_ids"][-1] == eos == model.config.eos_token_id
    batch = tokenizer(["The river carries silt and", "An"], padding=True, return_tensors="pt")
    assert (batch["input_ids"][1] == eos).tolist() == (batch["attention_mask"][1] == 0).tolist()
    assert model.config.use_cache and model.generation_config.use_cache
    assert (model.config.pad_token_id, model.generation_config.pad_token_id) == (None, eos)
    asked = {"max_new_tokens": 8, "do_sample": False, "output_scores": True, "return_dict_in_generate": True}
    cached = model.generate(**batch, **asked)
    slow = model.generate(**batch, **asked, use_cache=False)
    assert cached.past_key_values is not None and slow.past_key_values is None
    assert torch.equal(cached.sequences, slow.sequences)
    for one, other in zip(cached.scores, slow.scores, strict=True):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize(
    ("special", "padding"),
    [
        (["<|endoftext|>"], "<|endoftext|>"),
        (["</s>", "<|user|>", "<pad>"], "<pad>"),
        (["</s>", "[PAD]"], "[PAD]"),
        (["</s>", "<|padding|>"], "<|padding|>"),
        (["</s>", "<padded>"], "</s>"),
    ],
)
def test_padding_is_the_token_that_is_called_so_or_the_one_that_ends_a_document(
    special: list[str], padding: str
) -> None:
    assert pad_token(special) == padding


def test_a_tokenizer_that_auto_tokenizer_cannot_read_is_refused_without_the_line_of_its_card(
    here: Path, user: TransformersAlone
) -> None:
    assert main(["export", run_of(here, "scaffold_bpe longest_first"), "mine", f"root={here}"]) == 0
    assert not Path("mine/tokenizer.json").exists()
    loading, alone = python_blocks(Path("mine/README.md"))
    assert "import paribus.tokenization.export" in loading
    without = "from transformers import AutoTokenizer\nAutoTokenizer.from_pretrained('mine')"
    refused = user.run(without, Path())
    assert refused.returncode == 1 and "_from_pretrained" in refused.stderr, "it is the reading that fails"
    found: dict[str, Tokenizer] = {}
    exec(alone, found)  # type: ignore[arg-type]
    expected = Tokenizer.load(trained(here, "scaffold_bpe longest_first") / "tokenizer")
    assert all(np.array_equal(found["tokenizer"].encode(text), expected.encode(text)) for text in TEXTS)


@pytest.mark.parametrize("arm", ARMS)
def test_no_code_is_exported(here: Path, arm: str) -> None:
    assert main(["export", run_of(here, arm), "mine", f"root={here}"]) == 0
    names = {path.relative_to("mine").as_posix() for path in Path("mine").rglob("*") if path.is_file()}
    assert {Path(name).suffix for name in names} == {".json", ".md", ".safetensors"}
    assert ("tokenizer.json" in names) == ARMS[arm]
    assert not any("auto_map" in Path("mine", name).read_text("utf-8") for name in names if name.endswith(".json"))


def test_the_card_has_the_scores_the_command_and_the_configuration(here: Path) -> None:
    assert main(["export", run_of(here, "bpe merge_rank"), "mine", f"root={here}"]) == 0
    card = Path("mine/README.md").read_text(encoding="utf-8")
    (run,) = re.findall(r"paribus run `([0-9a-f]{16})`", card)
    (evaluation,) = (path for path in (here / "artifacts" / "evaluation").iterdir() if path.name.startswith(run))
    logged = json.loads((evaluation / "record.json").read_text(encoding="utf-8"))["result"]["metrics"]
    assert f"| bits per byte, held-out text | {logged['eval/bits_per_byte']:.6g} |" in card
    assert f"| continuation, 0-shot, accuracy | {logged['eval/continuation/0shot/acc']:.6g} |" in card
    assert "paribus run tokenizer=bpe encoder=merge_rank scale=tiny corpus=files" in card
    assert "vocab_size: 512" in card
    assert "licence" in card
    assert "| tokenizer | Byte-pair encoding: merge the most frequent pair until the vocabulary is full; 512" in card
    scores = card.partition("## Scores")[2].partition("## How it was made")[0]
    assert "_" not in scores and "text/" not in scores


def test_an_earlier_checkpoint_is_exported_by_its_step_and_says_that_it_was_not_scored(here: Path) -> None:
    first = min(trained(here, "bpe merge_rank").parent.glob("step_*"))
    step = int(first.name.removeprefix("step_"))
    assert main(["export", run_of(here, "bpe merge_rank"), "mine", f"step={step}", f"root={here}"]) == 0
    assert Path("mine/model.safetensors").read_bytes() == (first / "model.safetensors").read_bytes()
    assert "This checkpoint was not scored." in Path("mine/README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["last"], "export takes a run and a directory"),
        (["last", "mine", "step=x"], "a step is a whole number"),
        (["last", "mine", "step=7"], "no such checkpoint; there are those of steps"),
        (["nothing", "mine"], "no run or sweep 'nothing'"),
        (["last", "full"], "is there and not empty"),
        (["last", "full/file"], "is there and not empty"),
        (["last", "mine", "stp=1"], "did you mean step=1?"),
    ],
)
def test_what_cannot_be_exported_is_refused_and_leaves_nothing(
    here: Path, arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("full").mkdir()
    Path("full/file").write_text("mine", encoding="utf-8")
    assert main(["export", *arguments, f"root={here}"]) == 2
    assert told in capsys.readouterr().err
    assert sorted(path.as_posix() for path in Path().rglob("*")) == ["full", "full/file"]


def test_a_file_in_the_place_of_a_directory_above_is_named(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("file").write_text("mine", encoding="utf-8")
    assert main(["export", "last", "file/model", f"root={here}"]) == 1
    message = capsys.readouterr().err
    assert "File exists: " in message and "file'" in message and "not empty" not in message


@pytest.mark.parametrize("name", ["sha256", "shutil.copyfileobj"])
def test_a_failure_leaves_nothing_half_written(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    def full(path: Path, *_: Path) -> str:
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(f"paribus.commands.export.{name}", full)
    assert main(["export", "last", "new/mine", f"root={here}"]) == 1
    assert "the disk is full while writing" in capsys.readouterr().err
    assert sorted(path.name for path in Path().iterdir()) == []


def test_who_exports_to_one_directory_later_is_told(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def meanwhile(_: Path) -> None:
        Path("mine").mkdir()
        Path("mine/theirs").write_text("theirs", encoding="utf-8")

    monkeypatch.setattr("paribus.commands.export.complete", meanwhile)
    assert main(["export", "last", "mine", f"root={here}"]) == 2
    assert "mine is there and not empty" in capsys.readouterr().err
    assert sorted(path.as_posix() for path in Path().rglob("*")) == ["mine", "mine/theirs"]


def test_a_damaged_checkpoint_is_not_exported(here: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(here, "copy")
    weights = trained(Path("copy"), "bpe merge_rank") / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"x")
    assert main(["export", run_of(Path("copy"), "bpe merge_rank"), "mine", "root=copy"]) == 1
    assert "model.safetensors differs from its digest" in capsys.readouterr().err
    assert not Path("mine").exists()


@pytest.fixture(name="mine")
def _mine(finished: Path, tmp_path: Path) -> Path:
    """A copy of the finished sweep, to clean."""
    return Path(shutil.copytree(finished, tmp_path / "mine"))


def files_below(directory: Path, *names: str) -> dict[str, bytes]:
    found = (path for name in names for path in (directory / name).rglob("*") if path.is_file())
    return {path.relative_to(directory).as_posix(): path.read_bytes() for path in found}


def weights(directory: Path) -> list[Path]:
    return sorted((directory / "paribus_runs/artifacts/training").glob("*/step_*/model.safetensors"))


def optimizers(directory: Path) -> list[Path]:
    return sorted((directory / "paribus_runs/artifacts/training").glob("*/state/*"))


def records(directory: Path) -> dict[str, int]:
    """When each artefact and run was recorded: what is made again has another time."""
    root = directory / "paribus_runs"
    paths = [*root.glob("artifacts/*/*/record.json"), *root.glob("runs/*/run.json")]
    return {path.relative_to(root).as_posix(): path.stat().st_mtime_ns for path in paths}


def test_cleaning_says_what_can_go_and_removes_nothing_unasked(mine: Path) -> None:
    before = files_below(mine, "paribus_runs")
    shown = paribus(mine, "clean").stdout
    assert "nothing can be removed\n" in shown
    assert all(run_of(mine / "paribus_runs", arm) in shown for arm in ARMS)
    assert "weights and optimizer states (4)" in paribus(mine, "clean", "last").stdout
    after = files_below(mine, "paribus_runs")
    changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    assert {name.split("/")[2] for name in changed} <= {"verified", "claims"}


def test_reports_and_results_outlive_weights_and_optimizer_states(mine: Path) -> None:
    paribus(mine, "report", *SWEEP)
    before, recorded = files_below(mine / "paribus_runs", "reports"), records(mine)
    shown = paribus(mine, "clean", "last", "--yes").stdout
    assert "removed " in shown and "weights and optimizer states (4)" in shown
    assert (weights(mine), optimizers(mine)) == ([], [])
    paribus(mine, "report", *SWEEP)
    assert files_below(mine / "paribus_runs", "reports") == before
    assert paribus(mine, "run", *SWEEP).stdout.startswith("4 of 4 runs done already")
    assert paribus(mine, "status", "last").stdout.count("9 of 9") == 4
    assert "damaged: 0" in paribus(mine, "clean", "--verify").stdout
    assert records(mine) == recorded
    assert "nothing can be removed" in paribus(mine, "clean", "last").stdout
    refused = paribus(mine, "export", "last", "model", expect=1).stderr
    assert "were removed; `paribus rerun" in refused and str(Path("paribus_runs") / "reruns") in refused


def test_a_finished_run_of_another_root_that_resumes_a_training_outlives_cleaning_without_names(mine: Path) -> None:
    first = run_of(mine / "paribus_runs", "bpe merge_rank")
    resumed = (f"start.run={first}", "start.root=paribus_runs", "start.optimizer=resumed")
    words = (
        "tokenizer=bpe",
        "start=checkpoint",
        *resumed,
        "budget.tokens=18000",
        "root=other",
        "training.keep_checkpoints=1",
    )
    paribus(mine, "run", *OVERRIDES, *words)
    assert "removed 0 B" in paribus(mine, "clean", "--yes").stdout
    assert len(optimizers(mine)) > 0
    assert paribus(mine, "run", *OVERRIDES, *words).stdout.startswith("1 of 1 run done already")
    assert "bits per byte" in paribus(mine, "report", *OVERRIDES, *words).stdout


def test_new_scores_take_training_again_where_checkpoints_went_and_only_there(mine: Path) -> None:
    new = (*(text for text in OVERRIDES if "shots" not in text), "evaluation.shots=[0]")
    paribus(mine, "clean", run_of(mine / "paribus_runs", "scaffold_bpe longest_first"), "--yes")
    plan = json.loads(paribus(mine, "plan", "--json", *SWEEP[:1], *new, *SWEEP[-2:]).stdout)
    states = [run["training"]["state"] for run in plan["runs"]]
    assert states == ["cached", "cached", "cached", "missing"]
    kept, pruned = (
        training_of(mine / "paribus_runs", name) for name in ("bpe merge_rank", "scaffold_bpe longest_first")
    )
    before = json.loads((pruned / "record.json").read_text(encoding="utf-8"))["files"]
    done = paribus(mine, "run", "-m", *new, "tokenizer=bpe,scaffold_bpe", "encoder=merge_rank,longest_first").stdout
    assert len(re.findall(r"training +cached", done)) == 3
    assert len(re.findall(r"training +done", done)) == 1
    again = json.loads((pruned / "record.json").read_text(encoding="utf-8"))["files"]
    assert again["metrics.jsonl"]["bytes"] > 0
    same = [name for name in before if name.endswith("model.safetensors")]
    assert [again[name] for name in same] == [before[name] for name in same]
    assert (len(list(pruned.glob("step_*"))), len(list(kept.glob("step_*")))) == (4, 4)


def test_a_checkpoint_that_another_run_starts_from_stays_even_where_its_run_is_named(mine: Path) -> None:
    first = run_of(mine / "paribus_runs", "bpe merge_rank")
    start = ("tokenizer=bpe", "start=checkpoint", f"start.run={first}", "budget.tokens=2000")
    paribus(mine, "run", *OVERRIDES, *start)
    assert "removed 0 B" in paribus(mine, "clean", first, "--yes").stdout
    training = trained_by_id(mine, first)
    assert len(list(training.glob("step_*"))) == 4
    assert paribus(mine, "run", *OVERRIDES, *start).stdout.startswith("1 of 1 run done already")


def trained_by_id(directory: Path, run_id: str) -> Path:
    record = json.loads((directory / "paribus_runs/runs" / run_id / "run.json").read_text(encoding="utf-8"))
    return directory / "paribus_runs/artifacts/training" / record["stages"]["training"]["key"]
