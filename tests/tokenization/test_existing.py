"""`tokenizer=existing`: a tokenizer that is there already, found, copied and encoded with."""

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
from paribus.pipeline.prepare import prepare_runs
from paribus.planning.plan import make_plan
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


def test_what_a_run_wants_of_it_and_it_is_not_is_found_before_anything_runs(
    places: dict[str, Path], tokenizer: Tokenizer
) -> None:
    fitting = configured(places["directory"])
    model = replace(fitting.model, match="total", reference_vocab_size=1)
    step = training_flops(fitting.model, tokenizer.vocab_size, 1024 * fitting.model.context_length)
    wanting: dict[str, dict[str, Any]] = {
        "encoder.kind": {"encoder": ViterbiEncoder()},
        "model.match": {"model": model},
        "budget.flops": {"budget": EqualFlopsBudget(flops=step // 2)},
    }
    fitting = replace(fitting, budget=EqualFlopsBudget(flops=3_000 * step))
    assert check_tokenizer(fitting) == []
    for path, groups in wanting.items():
        found = check_tokenizer(replace(fitting, **groups))
        assert [field for field, _ in found] == [path], found


def test_a_directory_without_tokenizer_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no tokenizer: neither settings.json of ours nor tokenizer.json"):
        locate(tmp_path)


@pytest.mark.parametrize("name", ["absent.model", "absent/tokenizer.json", "bpe"])
def test_a_path_that_leads_nowhere_is_told_from_one_without_tokenizer(name: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=rf"{name}: there is no such file or directory, and so no tokenizer"):
        locate(tmp_path / name)


@pytest.mark.parametrize("name", ["run", "hugging face"])
def test_the_stage_copies_ids_and_pretokenizer(
    name: str, places: dict[str, Path], tokenizer: Tokenizer, tmp_path: Path
) -> None:
    context = context_at(tmp_path / "out", tmp_path / "work", configured(places[name]), {})
    result = build_vocabulary(context)
    copied = Tokenizer.load(tmp_path / "out" / "tokenizer")
    assert result["vocab_size"] == 270
    assert copied.settings.pretokenizer == "gpt4"
    for encoder in ("merge_rank", "longest_first"):
        ours, theirs = (found.with_encoder(encoder).encode(TEXTS[0]) for found in (copied, tokenizer))
        assert np.array_equal(ours, theirs)
    if name == "run":
        assert files(tmp_path / "out" / "tokenizer") == files(places["directory"])


def test_a_tokenizer_that_loses_text_is_refused_unless_said(tmp_path: Path) -> None:
    Tokenizer.train(TEXTS, vocab_size=540, pretokenizer="stripped").save(tmp_path / "lossy")
    config = configured(tmp_path / "lossy")
    with pytest.raises(ConfigurationError, match="stripped loses whitespace"):
        build_vocabulary(context_at(tmp_path / "out", tmp_path / "work", config, {}))


def test_its_files_are_the_identity_and_not_where_they_are(places: dict[str, Path], tmp_path: Path) -> None:
    def key(path: Path) -> str:
        return build_graph(configured(path), tmp_path / "cache", targets=["vocabulary"])["vocabulary"].key

    copy = Path(shutil.copytree(places["directory"], tmp_path / "copy"))
    assert key(copy) == key(places["directory"]) == key(places["run"]) != key(places["hugging face"])
    (copy / "settings.json").write_text((copy / "settings.json").read_text() + "\n")
    assert key(copy) != key(places["directory"])
    assert list(build_graph(configured(copy), tmp_path / "cache", targets=["vocabulary"])) == ["vocabulary"]


def test_a_plan_knows_its_size_and_it_brings_its_own_pretokenizer(places: dict[str, Path], tmp_path: Path) -> None:
    base = ["scale=tiny", "corpus=pydocs_small", f"root={tmp_path}", "tokenizer=existing"]
    command = [*base, f"tokenizer.path={places['hugging face']}", "encoder=longest_first"]
    (run,) = make_plan(prepare_runs(compose_command(parse(command)))).runs
    assert run.parameters == 270 * 32 + 2 * (4 * 32**2 + 3 * 32 * 64 + 2 * 32) + 32
    absent = [*base, f"tokenizer.path={tmp_path / 'absent'}"]
    plan = make_plan(prepare_runs(compose_command(parse(absent)), tolerate_missing=True))
    assert ["no tokenizer" in problem for problem in plan.problems] == [True]
    with pytest.raises(ConfigurationError, match=r"pretokenizer.kind: gpt4 beside tokenizer=existing"):
        compose_command(parse([*command, "pretokenizer=gpt4"]))
    with pytest.raises(ConfigurationError, match=r"pretokenizer.kind: existing goes with tokenizer=existing only"):
        compose_command(parse(["scale=tiny", "pretokenizer=existing"]))


def sentencepiece_model(path: Path, kind: str) -> Path:
    with path.open("wb") as file:
        SentencePieceTrainer.train(
            sentence_iterator=iter(TEXTS),
            model_writer=file,
            vocab_size=25,
            model_type=kind,
            minloglevel=2,
            hard_vocab_limit=False,
        )
    return path


@pytest.mark.parametrize(
    ("kind", "encoder"),
    [("bpe", "merge_rank"), ("wordpiece", "left_to_right"), ("unigram", "viterbi"), ("words", "whole")],
)
def test_the_natural_encoder_of_a_tokenizer_of_ours_is_that_of_its_algorithm(
    kind: Any, encoder: str, tmp_path: Path
) -> None:
    Tokenizer.train(TEXTS, algorithm=kind, vocab_size=270).with_encoder("left_to_right").save(tmp_path)
    assert natural_encoder(tmp_path) == encoder


def test_the_natural_encoder_of_others_is_that_of_the_model_in_their_files(
    places: dict[str, Path], tmp_path: Path
) -> None:
    vocabulary = tmp_path / "vocab.txt"
    vocabulary.write_text("[UNK]\n[SEP]\na\n##l\n", encoding="utf-8")
    saved = Tokenizer.train(TEXTS, vocab_size=270).with_encoder("left_to_right").to_huggingface()
    saved.save_pretrained(tmp_path / "wordpiece")
    found = {
        "vocab.txt": vocabulary,
        "WordPiece": tmp_path / "wordpiece" / "tokenizer.json",
        "BPE": places["tokenizer.json"],
        "unigram": sentencepiece_model(tmp_path / "unigram.model", "unigram"),
        "bpe": sentencepiece_model(tmp_path / "bpe.model", "bpe"),
    }
    assert {name: natural_encoder(path) for name, path in found.items()} == {
        "vocab.txt": "left_to_right", "WordPiece": "left_to_right", "BPE": "merge_rank", "unigram": "viterbi",
        "bpe": "merge_rank",
    }  # fmt: skip


def natural_encoder(path: Path) -> str:
    command = ["scale=tiny", "tokenizer=existing", "encoder=natural", "tokenizer.lossless=false"]
    (job,) = compose_command(parse([*command, f"tokenizer.path={path}"])).jobs
    return job.config.encoder.kind


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_a_model_of_sentencepiece_is_copied_where_its_normalization_is_wanted(kind: str, tmp_path: Path) -> None:
    source = sentencepiece_model(tmp_path / "spiece.model", kind)
    config = configured(source)
    with pytest.raises(ConfigurationError, match="SentencePiece model normalizes text"):
        build_vocabulary(context_at(tmp_path / "out", tmp_path / "work", config, {}))
    wanted = replace(config, tokenizer=ExistingTokenizer(path=str(source), lossless=False))
    build_vocabulary(context_at(tmp_path / "copy", tmp_path / "copying", wanted, {}))
    copied = Tokenizer.load(tmp_path / "copy" / "tokenizer")
    assert copied.encode(TEXTS[0]).tolist() == SentencePieceProcessor(model_file=str(source)).encode(TEXTS[0])
