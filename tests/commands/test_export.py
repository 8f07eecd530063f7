"""`paribus export`: a model that leaves its root is the one that was trained, with a card in words of the field."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

import paribus.tokenization.export  # noqa: F401, lets AutoTokenizer read what tokenizer.json does not hold
from paribus.cli import main
from paribus.commands.export import Origin, model_card, pad_token
from paribus.tokenization import Tokenizer
from support.command_line import run_of, trained

EOS = "<|endoftext|>"
TEXTS = ["The river carries silt.", "An engine burns 12345 fuel", "河流把水 and  stones\n", "🙂 <|endoftext|>"]
BPE, SCAFFOLD = "bpe standard", "scaffold_lbpe standard"
ARMS = {BPE: True, SCAFFOLD: False}
"""Run -> whether `tokenizer.json` holds its tokenizer."""


@pytest.fixture(name="here")
def _here(sweep: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The root of the finished sweep, from which models are exported to this directory."""
    monkeypatch.chdir(tmp_path)
    return sweep / "paribus_runs"


def run_alone(code: str, directory: Path) -> subprocess.CompletedProcess[str]:
    """As a user of transformers, who has nothing of paribus imported."""
    environment = os.environ | {"HF_MODULES_CACHE": str(directory.absolute() / "modules"), "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, check=False)


def python_blocks(card: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", card.read_text(encoding="utf-8"), flags=re.DOTALL)


@pytest.mark.parametrize("arm", ARMS)
def test_an_exported_model_is_loaded_as_its_card_says_and_has_the_ids_of_paribus(here: Path, arm: str) -> None:
    assert main(["export", run_of(here, arm), "models/mine", f"root={here}"]) == 0
    blocks = python_blocks(Path("models/mine/README.md"))
    ids_of = "tokenizer(text, split_special_tokens=True)['input_ids']"
    tell = f"found = [{ids_of} for text in {TEXTS!r}] + [model.num_parameters()]"
    code = f"{blocks[0]}\n{tell}\nimport json\nprint(json.dumps(found))"
    done = run_alone(code, Path("models"))
    assert done.returncode == 0, done.stderr
    *ids, parameters = json.loads(done.stdout)
    tokenizer = Tokenizer.load(trained(here, arm) / "tokenizer")
    assert ids == [tokenizer.encode(text).tolist() for text in TEXTS]
    assert parameters > 10_000
    weights = "model.safetensors"
    assert (Path("models/mine") / weights).read_bytes() == (trained(here, arm) / weights).read_bytes()
    changed = json.loads((trained(here, arm) / "config.json").read_text(encoding="utf-8")) | {"use_cache": True}
    assert json.loads(Path("models/mine/config.json").read_text(encoding="utf-8")) == changed
    names = {path.relative_to("models/mine").as_posix() for path in Path("models/mine").rglob("*") if path.is_file()}
    assert {Path(name).suffix for name in names} == {".json", ".md", ".safetensors"}, "no code is exported"
    assert ("tokenizer.json" in names) == ARMS[arm]
    texts = [Path("models/mine", name).read_text("utf-8") for name in names if name.endswith(".json")]
    assert not any("auto_map" in text for text in texts)


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


def test_padding_is_the_token_that_is_called_so_or_the_one_that_ends_a_document() -> None:
    tokens = {
        ("<|endoftext|>",): "<|endoftext|>",
        ("</s>", "<|user|>", "<pad>"): "<pad>",
        ("</s>", "[PAD]"): "[PAD]",
        ("</s>", "<|padding|>"): "<|padding|>",
        ("</s>", "<padded>"): "</s>",
    }
    assert {special: pad_token(list(special)) for special in tokens} == tokens


def test_a_tokenizer_that_auto_tokenizer_cannot_read_is_refused_without_the_line_of_its_card(here: Path) -> None:
    assert main(["export", run_of(here, SCAFFOLD), "mine", f"root={here}"]) == 0
    assert not Path("mine/tokenizer.json").exists()
    loading, alone = python_blocks(Path("mine/README.md"))
    assert "import paribus.tokenization.export" in loading
    without = "from transformers import AutoTokenizer\nAutoTokenizer.from_pretrained('mine')"
    refused = run_alone(without, Path())
    assert refused.returncode == 1 and "_from_pretrained" in refused.stderr, "it is the reading that fails"
    found: dict[str, Tokenizer] = {}
    exec(alone, found)  # type: ignore[arg-type]
    expected = Tokenizer.load(trained(here, SCAFFOLD) / "tokenizer")
    assert all(np.array_equal(found["tokenizer"].encode(text), expected.encode(text)) for text in TEXTS)


def test_the_card_has_the_scores_the_command_and_the_configuration(here: Path) -> None:
    assert main(["export", run_of(here, BPE), "mine", f"root={here}"]) == 0
    card = Path("mine/README.md").read_text(encoding="utf-8")
    (run,) = re.findall(r"paribus run `([0-9a-f]{16})`", card)
    (evaluation,) = (path for path in (here / "artifacts" / "evaluation").iterdir() if path.name.startswith(run))
    logged = json.loads((evaluation / "record.json").read_text(encoding="utf-8"))["result"]["metrics"]
    assert f"| bits per byte, held-out text | {logged['eval/bits_per_byte']:.6g} |" in card
    assert f"| continuation, 0-shot, accuracy | {logged['eval/continuation/0shot/acc']:.6g} |" in card
    assert "paribus run arm=bpe ordering=standard scale=tiny corpus=files" in card
    assert "vocab_size: 512" in card
    assert "licence" in card
    assert "| tokenizer | Byte-pair encoding: merge the most frequent pair until the vocabulary is full; 512" in card
    scores = card.partition("## Scores")[2].partition("## How it was made")[0]
    assert "_" not in scores and "text/" not in scores


def test_an_earlier_checkpoint_is_exported_by_its_step_and_says_that_it_was_not_scored(here: Path) -> None:
    first = min(trained(here, BPE).parent.glob("step_*"))
    step = int(first.name.removeprefix("step_"))
    assert main(["export", run_of(here, BPE), "mine", f"step={step}", f"root={here}"]) == 0
    assert Path("mine/model.safetensors").read_bytes() == (first / "model.safetensors").read_bytes()
    assert "This checkpoint was not scored." in Path("mine/README.md").read_text(encoding="utf-8")


def test_an_export_that_cannot_be_made_is_refused_and_leaves_nothing(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("full").mkdir()
    Path("full/file").write_text("mine", encoding="utf-8")
    refusals = {
        ("last",): "export takes a run and a directory",
        ("last", "mine", "step=x"): "a step is a whole number",
        ("last", "mine", "step=7"): "no such checkpoint; there are those of steps",
        ("nothing", "mine"): "no run or sweep 'nothing'",
        ("last", "full"): "is there and not empty",
        ("last", "mine", "stp=1"): "did you mean step=1?",
    }
    for words, message in refusals.items():
        assert main(["export", *words, f"root={here}"]) == 2
        assert message in capsys.readouterr().err, words
    assert main(["export", "last", "full/file/model", f"root={here}"]) == 1
    assert "full/file'" in capsys.readouterr().err
    assert sorted(path.as_posix() for path in Path().rglob("*")) == ["full", "full/file"]


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


def test_the_later_of_two_exports_to_one_directory_is_refused(
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
    weights = trained(Path("copy"), BPE) / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"x")
    assert main(["export", run_of(Path("copy"), BPE), "mine", "root=copy"]) == 1
    assert "model.safetensors differs from its digest" in capsys.readouterr().err
    assert not Path("mine").exists()


@pytest.mark.parametrize("step", [10, 20])
def test_a_model_is_said_to_have_read_all_text_at_the_end_alone(step: int, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"architectures": ["LlamaForCausalLM"]}), encoding="utf-8")
    result = {"steps": 20, "parameters": 3_000_000, "tokens": 2_000_000, "text_bytes": 6_000_000}
    made = {"git": None, "paribus": "1", "python": "3", "packages": {}}
    record = {"name": "a", "identity": {"corpus": {"kind": "pydocs"}}}
    card = model_card(Origin("0", record, step, None, {"result": result, "provenance": made}, {}), tmp_path, "m")
    head, _, table = card.partition("## Model")
    assert f"after step {step} of 20" in head and "2.0M tokens" in head
    assert ("had read a part of that text" in head) == (step < 20)
    assert ("of it read in all steps" in table) == (step < 20)
