"""`tokenizer=existing`: a tokenizer that exists already: located, copied and encoded with."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sentencepiece import SentencePieceProcessor, SentencePieceTrainer

from paribus.checks import check_tokenizer, compose_command
from paribus.config.arguments import parse
from paribus.config.groups.tokenization import ExistingPretokenizer, ExistingTokenizer, ViterbiEncoder
from paribus.config.groups.training import EqualFlopsBudget
from paribus.config.schema import RunConfig
from paribus.errors import ConfigurationError, DataError
from paribus.modeling.parameters import training_flops
from paribus.pipeline.graph import build_graph
from paribus.tokenization import Tokenizer
from paribus.tokenization.build import build_vocabulary
from paribus.tokenization.existing import locate
from support.run_config import run_config
from support.stages import context_at, files

TEXTS = ["all else being equal and nothing else in 1998"] * 3


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.train(TEXTS, vocab_size=270, pretokenizer="gpt4", special_tokens=("<|end|>", "<|pad|>"))


@pytest.fixture(scope="module")
def places(tokenizer: Tokenizer, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Directories and files that all lead to one tokenizer."""
    root = tmp_path_factory.mktemp("places")
    tokenizer.save(root / "saved")
    tokenizer.save(root / "artifacts" / "tokens" / "key" / "tokenizer")
    (root / "runs" / "id").mkdir(parents=True)
    (root / "runs" / "id" / "run.json").write_text(json.dumps({"stages": {"tokens": {"key": "key"}}}))
    tokenizer.to_huggingface().save_pretrained(root / "theirs")
    shutil.copytree(root / "theirs", root / "checkpoints" / "step_00000002")
    shutil.copytree(root / "theirs", root / "pipeline" / "tokenizer")
    tokenizer.save(root / "checkpoints" / "step_00000002" / "tokenizer")
    return {
        "directory": root / "saved",
        "artefact": root / "artifacts" / "tokens" / "key",
        "run": root / "runs" / "id",
        "checkpoint": root / "checkpoints" / "step_00000002",
        "checkpoints": root / "checkpoints",
        "hugging face": root / "theirs",
        "hugging face within": root / "pipeline",
        "tokenizer.json": root / "theirs" / "tokenizer.json",
    }


def configured(path: Path) -> RunConfig:
    return run_config(tokenizer=ExistingTokenizer(path=str(path)), pretokenizer=ExistingPretokenizer())


def test_settings_that_an_existing_tokenizer_cannot_satisfy_are_refused_before_anything_runs(
    places: dict[str, Path], tokenizer: Tokenizer
) -> None:
    config = configured(places["directory"])
    step = training_flops(config.model, tokenizer.vocab_size, 1024 * config.model.context_length)
    unfit: dict[str, dict[str, Any]] = {
        "encoder.kind": {"encoder": ViterbiEncoder()},
        "model.match": {"model": replace(config.model, match="total", reference_vocab_size=1)},
        "budget.flops": {"budget": EqualFlopsBudget(flops=step // 2)},
    }
    config = replace(config, budget=EqualFlopsBudget(flops=3_000 * step))
    assert check_tokenizer(config) == []
    for path, groups in unfit.items():
        assert [field for field, _ in check_tokenizer(replace(config, **groups))] == [path]


def test_a_path_without_a_tokenizer_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no tokenizer: neither settings.json of ours nor tokenizer.json"):
        locate(tmp_path)
    for name in ("absent.model", "absent/tokenizer.json", "bpe"):
        with pytest.raises(DataError, match=rf"{name}: there is no such file or directory, and so no tokenizer"):
            locate(tmp_path / name)


@pytest.mark.parametrize("name", ["run", "hugging face"])
def test_the_stage_copies_ids_and_pretokenizer(
    name: str, places: dict[str, Path], tokenizer: Tokenizer, tmp_path: Path
) -> None:
    result = build_copy(configured(places[name]), tmp_path)
    copied = Tokenizer.load(tmp_path / "out" / "tokenizer")
    assert result["vocab_size"] == 270
    assert copied.settings.pretokenizer == "gpt4"
    for encoder in ("merge_rank", "longest_first"):
        ids, expected = (tok.with_encoder(encoder).encode(TEXTS[0]) for tok in (copied, tokenizer))
        assert np.array_equal(ids, expected)
    if name == "run":
        assert files(tmp_path / "out" / "tokenizer") == files(places["directory"])


def build_copy(config: RunConfig, root: Path) -> dict[str, Any]:
    return build_vocabulary(context_at(root / "out", root / "work", config, {}))


def test_the_identity_is_that_of_the_files_and_not_of_their_place(places: dict[str, Path], tmp_path: Path) -> None:
    def key(path: Path) -> str:
        return build_graph(configured(path), tmp_path / "cache", targets=["vocabulary"])["vocabulary"].key

    copy = Path(shutil.copytree(places["directory"], tmp_path / "copy"))
    keys = {name: key(path) for name, path in places.items()}
    (ours,) = {keys[name] for name in ("directory", "artefact", "run", "checkpoint", "checkpoints")}
    assert key(copy) == ours != keys["hugging face"] == keys["hugging face within"]
    (copy / "settings.json").write_text((copy / "settings.json").read_text() + "\n")
    assert key(copy) != key(places["directory"])
    assert list(build_graph(configured(copy), tmp_path / "cache", targets=["vocabulary"])) == ["vocabulary"]


def sentencepiece_model(path: Path, kind: str) -> Path:
    options = {"vocab_size": 25, "minloglevel": 2, "hard_vocab_limit": False}
    with path.open("wb") as file:
        SentencePieceTrainer.train(sentence_iterator=iter(TEXTS), model_writer=file, model_type=kind, **options)
    return path


def test_the_natural_encoder_is_that_of_the_algorithm_or_model_in_the_files(
    places: dict[str, Path], tmp_path: Path
) -> None:
    algorithms = {"bpe": "merge_rank", "wordpiece": "left_to_right", "unigram": "viterbi", "words": "whole"}
    for algorithm, encoder in algorithms.items():
        tok = Tokenizer.train(TEXTS, algorithm=algorithm, vocab_size=270)  # type: ignore[arg-type]
        tok.with_encoder("left_to_right").save(tmp_path / algorithm)
        assert natural_encoder(tmp_path / algorithm) == encoder, algorithm
    (tmp_path / "vocab.txt").write_text("[UNK]\n[SEP]\na\n##l\n", encoding="utf-8")
    left_to_right = Tokenizer.train(TEXTS, vocab_size=270).with_encoder("left_to_right")
    left_to_right.to_huggingface().save_pretrained(tmp_path / "huggingface")
    for path, encoder in [
        (tmp_path / "vocab.txt", "left_to_right"),
        (tmp_path / "huggingface" / "tokenizer.json", "left_to_right"),
        (places["tokenizer.json"], "merge_rank"),
        (sentencepiece_model(tmp_path / "unigram.model", "unigram"), "viterbi"),
        (sentencepiece_model(tmp_path / "bpe.model", "bpe"), "merge_rank"),
    ]:
        assert natural_encoder(path) == encoder, path


def natural_encoder(path: Path) -> str:
    command = ["scale=tiny", "tokenizer=existing", "encoder=natural", "tokenizer.lossless=false"]
    (job,) = compose_command(parse([*command, f"tokenizer.path={path}"])).jobs
    return job.config.encoder.kind


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_a_tokenizer_that_loses_text_is_copied_only_on_request(kind: str, tmp_path: Path) -> None:
    source = sentencepiece_model(tmp_path / "spiece.model", kind)
    config = configured(source)
    with pytest.raises(ConfigurationError, match="SentencePiece model normalizes text"):
        build_copy(config, tmp_path / "refused")
    build_copy(replace(config, tokenizer=ExistingTokenizer(path=str(source), lossless=False)), tmp_path)
    copied = Tokenizer.load(tmp_path / "out" / "tokenizer")
    assert copied.encode(TEXTS[0]).tolist() == SentencePieceProcessor(model_file=str(source)).encode(TEXTS[0])
