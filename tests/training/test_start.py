"""What a training starts from: rows drawn by token, and the weights of a checkpoint (`start=checkpoint`)."""

import dataclasses
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from paribus.checks import compose_command
from paribus.commands.selection import select
from paribus.config.arguments import parse
from paribus.config.groups.model import CheckpointStart, GPTNeoXModel, ScratchStart
from paribus.config.groups.tokenization import BPETokenizer
from paribus.config.groups.training import EqualTextBudget, EqualTokensBudget
from paribus.config.schema import RunConfig
from paribus.errors import ConfigurationError, DataError
from paribus.modeling.decoder import huggingface_tensors
from paribus.modeling.models import save_model
from paribus.pipeline.graph import build_graph
from paribus.pipeline.prepare import prepare_runs
from paribus.pipeline.prepared import run_identity
from paribus.reporting.equality import differing, flatten
from paribus.store.artifacts import file_digests, write_record
from paribus.store.files import FileDigests
from paribus.tokenization import Tokenizer
from paribus.training.initial import initial_model
from paribus.training.start import check_start_state, checkpoint_directory, start_fingerprint
from support.real_data import real_data
from support.training_inputs import MODEL, STEPS, TRAINING, config, execute, write_inputs

TEXTS = ["all else being equal and nothing else"] * 3
END = "<|endoftext|>"
OTHER = ["zzzz yyyy xxxx wwww vvvv zyx"] * 3
SHORT = EqualTokensBudget(tokens=5 * TRAINING.global_batch * MODEL.context_length)
LAST = f"step_{STEPS:08d}"


def train(size: int, texts: list[str] = TEXTS) -> Tokenizer:
    return Tokenizer.train(texts, vocab_size=size, special_tokens=(END,))


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train(268)


@pytest.fixture(scope="module")
def inputs(tokenizer: Tokenizer, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return write_inputs(tmp_path_factory.mktemp("inputs"), tokenizer=tokenizer)


@pytest.fixture(scope="module")
def trained(inputs: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A `training` artefact."""
    root = tmp_path_factory.mktemp("trained")
    execute(root, "run", inputs)
    return root / "run" / "output"


@pytest.fixture
def copy(trained: Path, tmp_path: Path) -> Path:
    """Its last checkpoint, to change."""
    return Path(shutil.copytree(trained / LAST, tmp_path / "copy"))


def continued(path: Path, model: dict[str, Any] | None = None, **fields: Any) -> RunConfig:
    start, vocabulary = CheckpointStart(path=str(path), **fields), BPETokenizer(vocab_size=268)
    return config(SHORT, start=start, tokenizer=vocabulary, model=dataclasses.replace(MODEL, **(model or {})))


def losses(output: Path) -> list[float]:
    return [json.loads(line)["train/loss"] for line in (output / "metrics.jsonl").read_text().splitlines()]


def edit(directory: Path, **values: Any) -> None:
    path = directory / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def test_training_goes_on_where_the_checkpoint_stopped(trained: Path, tokenizer: Tokenizer, tmp_path: Path) -> None:
    """Also with another encoder, whose tokens are the same."""
    inputs = write_inputs(tmp_path, tokenizer=tokenizer.with_encoder("longest_first"))
    execute(tmp_path, "run", inputs, continued(trained))
    before, after = losses(trained), losses(tmp_path / "run" / "output")
    assert after[0] < before[-1] + 0.3 < before[0] - 0.7
    assert after[-1] < after[0]


def write_run(root: Path, name: str, record: dict[str, Any]) -> Path:
    (root / "runs" / name).mkdir(parents=True)
    (root / "runs" / name / "run.json").write_text(json.dumps(record))
    return root / "runs" / name


def test_checkpoint_is_found_as_directory_artefact_run_and_run_id(trained: Path, tmp_path: Path) -> None:
    root, key = tmp_path / "root", "0" * 64
    artefact = Path(shutil.copytree(trained, root / "artifacts" / "training" / key))
    write_record(artefact, {"stage": "training", "key": key, "files": file_digests(artefact)})
    run = write_run(root, "abc", {"stages": {"training": {"key": key}}})

    def directory(name: str, step: int | None = None) -> Path:
        return checkpoint_directory(CheckpointStart(run=name, root=str(root), step=step))

    for path in (artefact / LAST, artefact, run):
        assert checkpoint_directory(CheckpointStart(path=str(path))) == artefact / LAST
    assert directory("abc") == directory("a") == artefact / LAST
    assert directory("abc", 11) == artefact / "step_00000011"
    write_run(root, "abcd", {})
    assert directory("abc", 11) == artefact / "step_00000011", "a whole identifier is meant"
    for name, step, message in (
        ("abc", 13, r"start.step=13: .* there are those of steps 11, 14"),
        ("abe", None, r"start.run=abe: no run of that id below .*runs"),
        ("ab", None, r"start.run=ab: may be any of abc, abcd; give more of its id"),
        ("abcd", None, "has trained nothing yet"),
    ):
        with pytest.raises(DataError, match=message):
            directory(name, step)
    with pytest.raises(DataError, match=r"start.step=11: .* is a single checkpoint"):
        checkpoint_directory(CheckpointStart(path=str(artefact / LAST), step=11))


def test_identity_of_a_start_is_the_content_of_its_files(trained: Path, copy: Path, tmp_path: Path) -> None:
    def key(start: Any) -> str:
        return build_graph(config(start=start), tmp_path / "cache")["training"].key

    start, moved = CheckpointStart(path=str(trained)), CheckpointStart(path=str(copy))
    assert key(start) == key(moved) != key(ScratchStart())
    changed = [dataclasses.replace(start, step=11), dataclasses.replace(start, vocabulary="added")]
    assert key(start) not in map(key, changed)
    (copy / "generation_config.json").write_text("{}")
    assert key(start) == key(moved)
    edit(copy, rms_norm_eps=1e-5)
    assert key(start) != key(moved)
    runs = []
    for path in (trained, copy):
        run = continued(path)
        runs.append((path.name, flatten(run_identity(run, build_graph(run, tmp_path / "cache")))))
    assert [difference.path for difference in differing(runs, ())] == ["fingerprints.start.config.json"]
    assert differing(runs, ("start.path",)) == differing(runs, ("start",)) == []


def test_every_disagreement_with_the_model_is_named_with_both_values(
    trained: Path, copy: Path, tokenizer: Tokenizer
) -> None:
    other = {"width": 32, "layers": 3, "heads": 4, "ffn_width": 25, "tied_embeddings": True, "rope_theta": 5e5}
    run = continued(trained, other | {"context_length": 17})
    problems = dict(check_start_state(run))
    assert set(problems) == {f"model.{name}" for name in (*other, "context_length")}
    assert problems["model.width"].startswith("32, but 16 in ")
    assert problems["model.context_length"].startswith("17 is longer than the 16 of ")
    with pytest.raises(ConfigurationError, match=r"model.width: 32, but 16 .*model.layers: 3, but 2 "):
        initial_model(run, tokenizer)
    edit(copy, model_type="gpt_neox", attention_bias=True, hidden_act="gelu", rope_parameters=None)
    edit(copy, rotary_pct=0.5, rotary_emb_base=500, rope_theta=10_000.0, use_parallel_residual=False)
    sizes = {name: getattr(MODEL, name) for name in ("width", "layers", "heads", "ffn_width", "context_length")}
    problems = dict(check_start_state(dataclasses.replace(continued(copy), model=GPTNeoXModel(**sizes))))
    assert {name: message.split(" in ")[0] for name, message in problems.items()} == {
        "model.rope_theta": "10000.0, but 500.0",
        "model.rotary_fraction": "0.25, but 0.5",
        "model.parallel_residual": "True, but False",
    }


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"model_type": "gpt2"}, "model_type 'gpt2'; one of llama, gpt_neox"),
        ({"model_type": "gpt_neox"}, "llama, but gpt_neox in"),
        ({"attention_bias": True}, "attention_bias=True; only False"),
        ({"rope_parameters": {"rope_theta": 1e4, "rope_type": "yarn"}}, "rope_type='yarn'; only 'default'"),
    ],
)
def test_model_that_the_group_cannot_describe_is_refused(copy: Path, values: Any, message: str) -> None:
    edit(copy, **values)
    assert [message in problem for _, problem in check_start_state(continued(copy))] == [True]


def test_command_whose_model_or_tokens_differ_is_refused_before_anything_runs(
    trained: Path, tokenizer: Tokenizer, tmp_path: Path
) -> None:
    train(268, OTHER).save(tmp_path / "other")
    tokenizer.with_encoder("longest_first").save(tmp_path / "same")
    command = ["scale=tiny", "corpus=pydocs_small", f"root={tmp_path / 'root'}", "evaluation=heldout"]
    command += ["start=checkpoint", f"start.path={trained}", "encoder=merge_rank", "tokenizer=existing"]
    sizes = [f"model.{name}={getattr(MODEL, name)}" for name in ("width", "layers", "heads", "ffn_width")]
    sizes += [f"model.context_length={MODEL.context_length}", "model.tied_embeddings=false"]
    other, same = ([*command, f"tokenizer.path={tmp_path / name}"] for name in ("other", "same"))
    for plan in (False, True):
        with pytest.raises(ConfigurationError) as refused:
            prepare_runs(compose_command(parse(same)), tolerate_missing=plan)
        differing_fields = ("width", "ffn_width", "tied_embeddings", "context_length")
        assert [problem.path for problem in refused.value.problems] == [f"model.{name}" for name in differing_fields]
        prepare_runs(compose_command(parse([*same, *sizes])), tolerate_missing=plan)
        with pytest.raises(ConfigurationError, match=r"start.vocabulary: same, but the vocabularies differ: 268 token"):
            prepare_runs(compose_command(parse([*other, *sizes])), tolerate_missing=plan)
        stopping = compose_command(parse([*other, *sizes, "until=vocabulary"]))
        assert len(prepare_runs(stopping, tolerate_missing=plan)) == 1
    assert len(select(parse([*other, *sizes]), print).runs) == 1  # status and report
    assert not (tmp_path / "root" / "runs").exists()


def test_other_tokens_are_refused_with_what_differs(trained: Path, tokenizer: Tokenizer) -> None:
    other = train(268, OTHER)
    ours, theirs = (tokens.vocabulary.by_id[256].bytes for tokens in (other, tokenizer))
    for tokens, message in (
        (other, f"268 tokens here, 268 in .* id 256: {ours!r} here, {theirs!r} there"),
        (train(270), "270 tokens here, 268 in .*vocabulary=added"),
        (train(266), "266 tokens here, 268 in .*checkpoint's vocabulary"),
    ):
        with pytest.raises(ConfigurationError, match=message):
            initial_model(continued(trained), tokens)


def test_hugging_face_directory_is_a_checkpoint_and_loses_the_rows_that_pad_it(
    copy: Path, tokenizer: Tokenizer
) -> None:
    shutil.rmtree(copy / "tokenizer")
    stored = load_file(copy / "model.safetensors")
    for name in ("model.embed_tokens.weight", "lm_head.weight"):
        stored[name] = torch.cat([stored[name], torch.ones(4, MODEL.width)])
    save_file(stored, copy / "model.safetensors", {"format": "pt"})
    edit(copy, vocab_size=272)
    identity = start_fingerprint(continued(copy).start, FileDigests(copy))
    assert list(identity) == ["config.json", "model.safetensors", "tokenizer"]
    assert set(identity["tokenizer"]) == {"tokenizer.json", "tokenizer_config.json"}
    model = initial_model(continued(copy), tokenizer)
    assert torch.equal(model.embedding.weight, stored["model.embed_tokens.weight"][:268])
    assert torch.equal(model.output.weight, stored["lm_head.weight"][:268])
    assert model.architecture.vocab_size == 268


def test_weights_in_shards_are_read_and_a_lost_shard_is_named(copy: Path, trained: Path, tokenizer: Tokenizer) -> None:
    stored = load_file(copy / "model.safetensors")
    (copy / "model.safetensors").unlink()
    shards = {name: f"model-0000{1 + place % 2}-of-00002.safetensors" for place, name in enumerate(stored)}
    for shard in set(shards.values()):
        save_file({name: stored[name] for name in stored if shards[name] == shard}, copy / shard, {"format": "pt"})
    (copy / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": shards}))
    model = initial_model(continued(copy), tokenizer)
    tensors = huggingface_tensors(model.architecture, dict(model.named_parameters()))
    assert tensors.keys() == stored.keys()
    assert all(torch.equal(tensor, stored[name]) for name, tensor in tensors.items())
    (copy / "model-00002-of-00002.safetensors").unlink()
    with pytest.raises(DataError, match=r"names files that are not there: model-00002-of-00002"):
        start_fingerprint(continued(copy).start, FileDigests(copy))


@pytest.mark.parametrize("tied", [False, True])
def test_added_token_begins_as_the_mean_of_its_pieces(tied: bool, tmp_path: Path) -> None:
    smaller = train(262)
    larger = Tokenizer.train(TEXTS, vocab_size=270, special_tokens=("<|pad|>", END))
    scratch = config(model=dataclasses.replace(MODEL, tied_embeddings=tied))
    model = initial_model(scratch, smaller)
    save_model(model, tmp_path)
    smaller.save(tmp_path / "tokenizer")
    run = continued(tmp_path, {"tied_embeddings": tied}, vocabulary="added")
    extended = initial_model(run, larger)
    for before, after in (
        (model.embedding.weight, extended.embedding.weight),
        (model.output_weight, extended.output_weight),
    ):
        assert after.shape == (270, MODEL.width)
        for entry in larger.vocabulary.by_id:
            if entry.kind == "special":
                own = smaller.special_tokens.get(entry.bytes.decode())
                rows = np.arange(262) if own is None else np.array([own])
            else:
                rows = smaller.encode_bytes(entry.bytes)
            expected = before[torch.from_numpy(rows).long()].mean(dim=0)
            assert torch.allclose(after[entry.id], expected, atol=1e-7), entry
    assert (extended.embedding.weight is extended.output_weight) == tied
    assert torch.equal(extended.layers[1].gate_up.weight, model.layers[1].gate_up.weight)
    assert extended.architecture.eos_id == larger.eos_id


# Rows that the models of two tokenizers begin with: equal for the same token, wherever its id is.


def rows(size: int, algorithm: str = "bpe", special: tuple[str, ...] = (END,), seed: int = 0) -> dict[bytes, Any]:
    """Row of the embedding by what its id decodes to, which special tokens have too."""
    texts = real_data().english_texts(200)
    tokens = Tokenizer.train(texts, algorithm=algorithm, vocab_size=size, special_tokens=special)  # type: ignore[arg-type]
    weight = initial_model(config(seed=seed), tokens).embedding.weight.detach()
    by_token = {tokens.decode_bytes([number]): weight[number] for number in range(tokens.vocab_size)}
    assert len(by_token) == tokens.vocab_size
    return by_token


def test_tokens_that_vocabularies_share_begin_alike_and_no_others() -> None:
    bpe, scaffold = rows(1500), rows(1500, "scaffold_bpe")
    shared = bpe.keys() & scaffold.keys()
    assert 1000 < len(shared) < 1500 and END.encode() in shared
    assert all(torch.equal(bpe[token], scaffold[token]) for token in shared)
    larger = rows(1600, special=("<pad>", END))
    assert bpe.keys() < larger.keys()
    assert all(torch.equal(bpe[token], larger[token]) for token in bpe)
    drawn = torch.stack([*bpe.values(), *rows(1500, seed=1).values()])
    assert len(torch.unique(drawn, dim=0)) == 2 * len(bpe)


def test_a_warm_up_that_a_budget_in_text_does_not_reach_is_refused(tmp_path: Path) -> None:
    slow = replace(TRAINING, warmup_steps=400, schedule="inverse_sqrt")
    run = config(budget=EqualTextBudget(text=800), training=slow)
    with pytest.raises(ConfigurationError, match=r"training\.warmup_steps: 400, but budget\.text ends after \d+"):
        execute(tmp_path, "run", write_inputs(tmp_path), run)
