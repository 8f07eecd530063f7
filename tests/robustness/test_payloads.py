"""Files of strangers that would run code where they are trusted: here nothing of them is executed."""

import hashlib
import json
import os
import pickle
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import paribus
from paribus.checks import compose_command
from paribus.config.arguments import parse
from paribus.config.groups.model import CheckpointStart, LlamaModel
from paribus.errors import ConfigurationError, DataError, ParibusError
from paribus.evaluation.evaluate import build_requests, load_task
from paribus.evaluation.items import BenchmarkPrompt, Item, ItemSet, write_task
from paribus.modeling.models import build_model, load_model, save_model
from paribus.ordering.arrays import map_array
from paribus.ordering.embeddings import EmbeddingsWriter
from paribus.store.files import FileDigests, write_json
from paribus.tokenization import Tokenizer
from paribus.tokenization.existing import open_existing
from paribus.training.checkpoint import COMPLETE_RECORD, Checkpoints, step_name
from paribus.training.start import OPTIMIZER, STATE, start_fingerprint


class Payload:
    """An object whose unpickling writes the file `executed` into the working directory."""

    def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
        return os.system, ("touch executed",)


@pytest.fixture(autouse=True)
def nothing_is_executed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)
    yield
    assert not (tmp_path / "executed").exists()
    assert "evil" not in sys.modules


def test_the_payload_would_be_executed_by_pickle(tmp_path: Path) -> None:
    pickle.loads(pickle.dumps(Payload()))
    assert (tmp_path / "executed").exists()
    (tmp_path / "executed").unlink()


def checkpoint(directory: Path) -> Path:
    """A Hugging Face directory with its weights in safetensors."""
    model = build_model(LlamaModel(width=8, layers=1, heads=1, ffn_width=16, context_length=64), 257, seed=0)
    save_model(model, directory)
    Tokenizer.train(["a b c"], algorithm="bpe", vocab_size=257).save(directory / "tokenizer")
    return directory


def test_weights_in_a_pickle_are_not_read(tmp_path: Path) -> None:
    directory = checkpoint(tmp_path / "model")
    (directory / "model.safetensors").unlink()
    torch.save(Payload(), directory / "pytorch_model.bin")
    with pytest.raises(DataError, match=r"no model.safetensors; weights of other formats are not read"):
        start_fingerprint(CheckpointStart(path=str(directory)), FileDigests(tmp_path / "cache"))
    with pytest.raises(DataError, match="safetensors"):
        load_model(directory)


def test_a_pickle_beside_or_under_the_name_of_safetensors_is_not_read(tmp_path: Path) -> None:
    directory = checkpoint(tmp_path / "model")
    torch.save(Payload(), directory / "pytorch_model.bin")
    (directory / "modeling_evil.py").write_text("open('executed', 'w')", encoding="utf-8")
    config = json.loads((directory / "config.json").read_text(encoding="utf-8"))
    write_json(directory / "config.json", config | {"auto_map": {"AutoModelForCausalLM": "modeling_evil.Evil"}})
    assert load_model(directory).architecture.width == 8
    (directory / "model.safetensors").write_bytes(pickle.dumps(Payload()))
    with pytest.raises(DataError, match=r"its weights cannot be read"):
        load_model(directory)


def test_a_tokenizer_that_brings_code_is_read_without_it_or_refused(tmp_path: Path) -> None:
    directory = tmp_path / "tokenizer"
    tokenizer = Tokenizer.train(["some text of some words"] * 9, algorithm="bpe", vocab_size=270)
    tokenizer.to_huggingface().save_pretrained(directory)
    (directory / "evil.py").write_text("open('executed', 'w')", encoding="utf-8")
    for name in ("tokenizer.pkl", "vocab.pkl", "tokenizer.model"):
        (directory / name).write_bytes(pickle.dumps(Payload()))
    described = json.loads((directory / "tokenizer_config.json").read_text(encoding="utf-8"))
    trusting = {"auto_map": {"AutoTokenizer": ["evil.Evil", "evil.Evil"]}, "trust_remote_code": True}
    write_json(directory / "tokenizer_config.json", described | trusting | {"tokenizer_class": "Evil"})
    assert open_existing(directory).encode("some text").tolist() == tokenizer.encode("some text").tolist()
    (directory / "tokenizer.json").write_bytes(pickle.dumps(Payload()))
    with pytest.raises(ParibusError, match=r"tokenizer\.json"):
        open_existing(directory)
    (directory / "tokenizer.json").unlink()
    with pytest.raises(DataError, match="no tokenizer"):
        open_existing(directory)


TEMPLATE = "{{ self.__init__.__globals__.__builtins__.open('executed', 'w') }}"


def test_a_task_that_names_code_is_refused_and_text_is_never_a_template(tmp_path: Path) -> None:
    (tmp_path / "evil.py").write_text("open('executed', 'w')", encoding="utf-8")
    for content in ("doc_to_text: !function evil.run", "task: !!python/object/apply:os.system ['touch executed']"):
        (tmp_path / "bad.yaml").write_text(content, encoding="utf-8")
        with pytest.raises(DataError, match=r"bad\.yaml: no task"):
            load_task(tmp_path, "bad", 0)
    items = [Item(f"{number}", f"{TEMPLATE} {number}", (TEMPLATE, " right"), 1) for number in range(3)]
    write_task(tmp_path, "text", ItemSet(items[:2], items[2:], "here"), BenchmarkPrompt("here"))
    requests = build_requests([load_task(tmp_path, "text", 1)], 0)
    assert len(requests) == 4 and all(request.args[0].count(TEMPLATE) >= 2 for request in requests)


def test_groups_and_overrides_that_name_code_are_refused(tmp_path: Path) -> None:
    contents = (
        "_target_: os.system\ncommand: touch executed",
        "kind: llama\nwidth: !!python/object/apply:os.system ['touch executed']",
        "kind: llama\nwidth: ${oc.env:HOME}",
    )
    overrides = (
        "+hydra.callbacks.evil._target_=os.system",
        "hydra.launcher._target_=os.system",
        "hydra.sweeper._target_=os.system",
        "++hydra.job_logging.handlers.evil.class=evil.Handler",
        "++hydra.hydra_logging.formatters.evil={'()':os.system}",
        "+model._target_=os.system",
    )
    commands = [["scale=tiny", override] for override in overrides]
    for number, content in enumerate(contents):
        group = tmp_path / f"groups{number}" / "model"
        group.mkdir(parents=True)
        (group / "evil.yaml").write_text(content, encoding="utf-8")
        commands.append(["--config-dir", str(group.parent), "model=evil"])
    for words in commands:
        with pytest.raises(ConfigurationError):
            compose_command(parse(words))


def test_a_pickle_in_a_working_directory_is_not_read(tmp_path: Path) -> None:
    np.save(tmp_path / "order.npy", np.array([Payload()], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match=r"allow_pickle|Python objects"):
        map_array(tmp_path / "order.npy")
    (tmp_path / "out").mkdir()
    writer = EmbeddingsWriter(tmp_path / "out")
    with pytest.raises(ValueError, match=r"allow_pickle|Python objects"):
        writer.add([tmp_path / "order.npy"])


def test_every_array_is_read_without_pickles() -> None:
    source = Path(paribus.__file__).parent
    calls = [line for path in source.rglob("*.py") for line in path.read_text("utf-8").splitlines() if ".load(" in line]
    arrays = [line for line in calls if re.search(r"\b(np|numpy)\.load\(", line)]
    assert len(arrays) > 5 and all("allow_pickle=False" in line for line in arrays)
    assert not [line for line in calls if re.search(r"\b(torch|joblib|pickle|dill|yaml)\.load\(", line)]


def test_a_pickled_state_of_the_optimizer_is_not_read_even_where_its_digest_is_right(tmp_path: Path) -> None:
    path = tmp_path / step_name(3)
    path.mkdir()
    torch.save(Payload(), path / OPTIMIZER)
    write_json(path / STATE, {"step": 3, "fingerprint": {}})
    digests = {name: hashlib.sha256((path / name).read_bytes()).hexdigest() for name in (OPTIMIZER, STATE)}
    write_json(path / COMPLETE_RECORD, {"digests": digests, "spent": {"seconds": 1.0, "device_seconds": 1.0}})
    newest = Checkpoints(tmp_path, frozenset({2}), {}).newest(10)
    assert newest is not None
    with pytest.raises(Exception, match=r"(?i)header|safetensor"):
        newest.optimizer()
