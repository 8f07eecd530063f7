"""Where an encoder is, what a sentence-transformers directory asks for, and what of it enters the key."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paribus.errors import ConfigurationError, DataError
from paribus.ordering.embedding_files import embedder_directory, fingerprint, read_layout
from paribus.ordering.embedding_model import EmbeddingModel
from paribus.store.files import FileDigests
from support.embeddings import encoder_config, write_encoder

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def encoder(tmp_path: Path) -> Path:
    return write_encoder(tmp_path / "encoder")


def sentence_transformers(
    path: Path, encoder: Path, pooling: dict[str, Any], *others: str, subfolder: str = ""
) -> Path:
    """A directory as sentence-transformers writes it, around the files of `encoder`."""
    shutil.copytree(encoder, path / subfolder)
    names = [("Transformer", subfolder), ("Pooling", "1_Pooling"), *((name, f"2_{name}") for name in others)]
    modules = [
        {"idx": number, "name": str(number), "path": folder, "type": f"sentence_transformers.models.{name}"}
        for number, (name, folder) in enumerate(names)
    ]
    (path / "modules.json").write_text(json.dumps(modules))
    (path / "1_Pooling").mkdir()
    (path / "1_Pooling" / "config.json").write_text(json.dumps({"word_embedding_dimension": 8} | pooling))
    return path


@pytest.mark.parametrize("subfolder", ["", "0_Transformer"])
def test_auto_pools_as_the_directory_says(tmp_path: Path, encoder: Path, subfolder: str) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False}, "mean"),
        ({"pooling_mode_mean_tokens": False, "pooling_mode_cls_token": True}, "cls"),
        ({"pooling_mode": "cls"}, "cls"),
    ]
    for number, (pooling, expected) in enumerate(cases):
        path = sentence_transformers(tmp_path / str(number), encoder, pooling, "Normalize", subfolder=subfolder)
        plain, model = EmbeddingModel(encoder, encoder_config(encoder, pooling=expected)), embedding_model(path)
        assert model.layout.directory == path / subfolder and model.facts()["pooling"] == expected
        assert np.array_equal(model.embed(["red sea", "sky"]), plain.embed(["red sea", "sky"]))


def embedding_model(path: Path) -> EmbeddingModel:
    return EmbeddingModel(path, encoder_config(path))


def test_other_pooling_modules_and_prompts_are_refused_by_name(tmp_path: Path, encoder: Path) -> None:
    for name, pooling in {
        "pooling_mode_max_tokens": {"pooling_mode_max_tokens": True},
        "lasttoken": {"pooling_mode": "lasttoken"},
        "None": {},
    }.items():
        path = sentence_transformers(tmp_path / name, encoder, pooling)
        message = rf"1_Pooling/config\.json asks for {name}; .*`embedder\.pooling`"
        with pytest.raises(ConfigurationError, match=message):
            read_layout(path, "auto")
    path = sentence_transformers(tmp_path / "modules", encoder, {"pooling_mode": "mean"}, "Dense", "Normalize")
    message = r"`embedder\.path` = .*modules\.json lists Transformer, Pooling, Dense"
    with pytest.raises(ConfigurationError, match=message):
        read_layout(path, "mean")
    path = sentence_transformers(tmp_path / "prompt", encoder, {"pooling_mode": "mean"})
    (path / "config_sentence_transformers.json").write_text(json.dumps({"default_prompt_name": "query"}))
    with pytest.raises(ConfigurationError, match="'query' before every text"):
        read_layout(path, "auto")


def test_a_hub_name_needs_its_commit_and_is_read_there(
    tmp_path: Path, encoder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hub's own cache, as an earlier download left it, without a network."""
    for revision, message in ((None, "is required for a hub name, to rerun a table"), ("main", "main is no commit")):
        config = encoder_config("facebook/contriever", revision=revision)
        for call in (lambda: embedder_directory(config), lambda: fingerprint(config, FileDigests(tmp_path))):  # noqa: B023
            with pytest.raises(ConfigurationError, match=rf"embedder\.revision: {message}"):
                call()
    snapshot = tmp_path / "hub" / "models--some--encoder" / "snapshots" / COMMIT
    shutil.copytree(encoder, snapshot)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    assert embedder_directory(encoder_config("some/encoder", revision=COMMIT)) == snapshot
    with pytest.raises(DataError, match=r"`embedder\.path` = some/other cannot be fetched at `embedder\.revision`"):
        embedder_directory(encoder_config("some/other", revision=COMMIT))


def test_the_fingerprint_follows_the_files_and_not_their_place(encoder: Path, tmp_path: Path) -> None:
    digests = FileDigests(tmp_path / "digests")
    before = fingerprint(encoder_config(encoder), digests)
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= set(before)
    moved = encoder.rename(tmp_path / "moved")
    (moved / "README.md").write_text("read by nobody")
    assert fingerprint(encoder_config(moved), digests) == before
    (moved / "tokenizer_config.json").write_text("{}")
    after = fingerprint(encoder_config(moved), digests)
    assert [name for name in after if after[name] != before[name]] == ["tokenizer_config.json"]
