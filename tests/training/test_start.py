"""Continual pre-training: the stage `training` with `start=checkpoint`."""

import dataclasses
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from rich.console import Console
from safetensors.torch import load_file, save_file

from paribus.checks import compose_command
from paribus.commands.selection import select
from paribus.config.arguments import parse
from paribus.config.groups.execution import TrackingConfig
from paribus.config.groups.model import CheckpointStart, GPTNeoXModel, ScratchStart
from paribus.config.groups.tokenization import BPETokenizer
from paribus.config.groups.training import EqualTokensBudget
from paribus.config.schema import RunConfig
from paribus.errors import ConfigurationError, DataError
from paribus.modeling.decoder import huggingface_tensors
from paribus.modeling.models import load_model, save_model
from paribus.pipeline import run as running
from paribus.pipeline.display import Display
from paribus.pipeline.graph import build_graph
from paribus.pipeline.prepare import prepare_runs
from paribus.pipeline.prepared import run_identity
from paribus.pipeline.records import moved_config
from paribus.reporting.equality import differing, flatten
from paribus.store.artifacts import file_digests, write_record
from paribus.store.files import FileDigests
from paribus.store.provenance import loaded_code
from paribus.tokenization import Tokenizer
from paribus.training.initial import initial_model
from paribus.training.start import check_start_state, checkpoint_directory, start_fingerprint
from support.plans import planned_run
from support.training_inputs import MODEL, STEPS, TRAINING, config, execute, write_inputs

TEXTS = ["all else being equal and nothing else"] * 3
OTHER = ["zzzz yyyy xxxx wwww vvvv zyx"] * 3
SHORT = EqualTokensBudget(tokens=5 * TRAINING.global_batch * MODEL.context_length)
LAST = f"step_{STEPS:08d}"


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.train(TEXTS, vocab_size=268, special_tokens=("<|endoftext|>",))


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


@pytest.mark.parametrize("encoder", ["merge_rank", "longest_first"])
def test_training_goes_on_where_the_checkpoint_stopped(
    encoder: Any, trained: Path, tokenizer: Tokenizer, tmp_path: Path
) -> None:
    inputs = write_inputs(tmp_path, tokenizer=tokenizer.with_encoder(encoder))
    execute(tmp_path, "run", inputs, continued(trained))
    before, after = losses(trained), losses(tmp_path / "run" / "output")
    assert after[0] < before[-1] + 0.3 < before[0] - 0.7
    assert after[-1] < after[0]


def test_the_model_begins_with_exactly_the_weights_of_the_checkpoint(trained: Path, tokenizer: Tokenizer) -> None:
    model = initial_model(continued(trained, {"context_length": 8}), tokenizer)
    stored = load_model(trained / LAST).state_dict()
    assert all(torch.equal(tensor, stored[name]) for name, tensor in model.state_dict().items())
    assert model.architecture.context_length == 8
    assert model.architecture.eos_id == tokenizer.eos_id


def test_a_checkpoint_is_found_as_directory_artefact_run_and_run_id(trained: Path, tmp_path: Path) -> None:
    root, key = tmp_path / "root", "0" * 64
    artefact = Path(shutil.copytree(trained, root / "artifacts" / "training" / key))
    write_record(artefact, {"stage": "training", "key": key, "files": file_digests(artefact)})
    (root / "runs" / "abc").mkdir(parents=True)
    (root / "runs" / "abc" / "run.json").write_text(json.dumps({"stages": {"training": {"key": key}}}))
    last = artefact / LAST
    starts = [
        CheckpointStart(path=str(last)),
        CheckpointStart(path=str(artefact)),
        CheckpointStart(path=str(root / "runs" / "abc")),
        CheckpointStart(run="abc", root=str(root)),
        CheckpointStart(run="a", root=str(root)),
    ]
    assert [checkpoint_directory(start) for start in starts] == [last] * 5
    earlier = CheckpointStart(run="abc", root=str(root), step=11)
    assert checkpoint_directory(earlier) == artefact / "step_00000011"
    with pytest.raises(DataError, match=r"start.step=13: .* there are those of steps 11, 14"):
        checkpoint_directory(dataclasses.replace(earlier, step=13))
    with pytest.raises(DataError, match=r"start.run=abd: no run of that id below .*runs"):
        checkpoint_directory(dataclasses.replace(earlier, run="abd"))
    (root / "runs" / "abcd").mkdir()
    (root / "runs" / "abcd" / "run.json").write_text("{}", encoding="utf-8")
    with pytest.raises(DataError, match=r"start.run=ab: may be any of abc, abcd; give more of its id"):
        checkpoint_directory(dataclasses.replace(earlier, run="ab"))
    assert checkpoint_directory(earlier) == artefact / "step_00000011", "a whole identifier is meant"
    with pytest.raises(DataError, match=r"start.step=11: .* is a single checkpoint"):
        checkpoint_directory(dataclasses.replace(starts[0], step=11))


def test_what_is_in_the_files_is_the_identity_and_not_where_they_are(trained: Path, copy: Path, tmp_path: Path) -> None:
    def key(start: Any) -> str:
        return build_graph(config(start=start), tmp_path / "cache")["training"].key

    there, moved = CheckpointStart(path=str(trained)), CheckpointStart(path=str(copy))
    assert key(there) == key(moved) != key(ScratchStart())
    assert key(dataclasses.replace(there, step=11)) != key(there) != key(dataclasses.replace(there, vocabulary="added"))
    (copy / "generation_config.json").write_text("{}")
    assert key(there) == key(moved)
    edit(copy, rms_norm_eps=1e-5)
    assert key(there) != key(moved)


def test_every_disagreement_with_the_model_is_named_with_both_values(trained: Path, tokenizer: Tokenizer) -> None:
    other = {"width": 32, "layers": 3, "heads": 4, "ffn_width": 25, "tied_embeddings": True, "rope_theta": 5e5}
    run = continued(trained, other | {"context_length": 17})
    found = dict(check_start_state(run))
    assert set(found) == {f"model.{name}" for name in (*other, "context_length")}
    assert found["model.width"].startswith("32, but 16 in ")
    assert found["model.context_length"].startswith("17 is longer than the 16 of ")
    with pytest.raises(ConfigurationError, match=r"model.width: 32, but 16 .*model.layers: 3, but 2 "):
        initial_model(run, tokenizer)


@pytest.mark.parametrize("plan", [False, True])
def test_a_command_is_refused_before_anything_runs(plan: bool, trained: Path, tmp_path: Path) -> None:
    command = ["scale=tiny", "corpus=pydocs_small", f"root={tmp_path}", "start=checkpoint", f"start.path={trained}"]
    with pytest.raises(ConfigurationError) as refused:
        prepare_runs(compose_command(parse(command)), tolerate_missing=plan)
    lines = [problem.path for problem in refused.value.problems]
    told = ["width", "ffn_width", "tied_embeddings", "context_length"]
    assert lines == [f"model.{name}" for name in told]
    assert not (tmp_path / "runs").exists()


def test_starts_that_differ_are_a_difference_unless_declared(trained: Path, copy: Path, tmp_path: Path) -> None:
    edit(copy, rms_norm_eps=1e-5)
    runs = []
    for path in (trained, copy):
        run = continued(path)
        runs.append((path.name, flatten(run_identity(run, build_graph(run, tmp_path / "cache")))))
    assert [difference.path for difference in differing(runs, ())] == ["fingerprints.start.config.json"]
    assert differing(runs, ("start.path",)) == differing(runs, ("start",)) == []


def test_a_longer_context_is_a_choice(trained: Path, tokenizer: Tokenizer) -> None:
    run = continued(trained, {"context_length": 32}, longer_context=True)
    assert check_start_state(run) == []
    assert initial_model(run, tokenizer).architecture.context_length == 32


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"model_type": "gpt2"}, "model_type 'gpt2'; one of llama, gpt_neox"),
        ({"model_type": "gpt_neox"}, "llama, but gpt_neox in"),
        ({"attention_bias": True}, "attention_bias=True; only False"),
        ({"rope_parameters": {"rope_theta": 1e4, "rope_type": "yarn"}}, "rope_type='yarn'; only 'default'"),
    ],
)
def test_a_model_that_the_group_cannot_describe_is_refused(copy: Path, values: Any, message: str) -> None:
    edit(copy, **values)
    assert [message in problem for _, problem in check_start_state(continued(copy))] == [True]


def test_what_the_group_does_not_say_stays_the_checkpoint_s(copy: Path, tokenizer: Tokenizer) -> None:
    edit(copy, rms_norm_eps=1e-5)
    assert initial_model(continued(copy), tokenizer).architecture.norm_epsilon == 1e-5


def test_other_tokens_at_the_same_ids_are_refused(trained: Path, tokenizer: Tokenizer) -> None:
    other = Tokenizer.train(OTHER, vocab_size=268, special_tokens=("<|endoftext|>",))
    ours, theirs = (found.vocabulary.by_id[256].bytes for found in (other, tokenizer))
    message = f"268 tokens here, 268 in .* id 256: {ours!r} here, {theirs!r} there"
    with pytest.raises(ConfigurationError, match=message):
        initial_model(continued(trained), other)


@pytest.mark.parametrize(("texts", "size"), [(OTHER, 268), (TEXTS, 266), (TEXTS, 270)])
def test_other_tokens_are_refused_before_a_corpus_is_encoded_with_them(
    texts: list[str], size: int, trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    def execute(job: dict[str, Any], *others: Any, **options: Any) -> dict[str, Any]:
        made.append(job["stage"])
        (Path(job["output"]) / "data").write_text("", encoding="utf-8")
        if job["stage"] == "vocabulary":
            made_here = Tokenizer.train(texts, vocab_size=size, special_tokens=("<|endoftext|>",))
            made_here.save(Path(job["output"]) / "tokenizer")
        return {"documents": 1}

    monkeypatch.setattr(running, "execute", execute)
    run = planned_run(tmp_path, start=CheckpointStart(path=str(trained)), tracking=TrackingConfig(kind="none"))
    failure = running.perform(run.job.config, Display(Console(quiet=True)), loaded_code())
    assert failure is not None and failure.failure_class == "configuration"
    assert f"start.vocabulary: same, but the vocabularies differ: {size} tokens here, 268 in " in failure.message
    assert made[-1] == "vocabulary" and "tokens" not in made
    # No stage failed, so there is no log of one to show.
    (events,) = tmp_path.glob("runs/*/events.jsonl")
    assert '"logs"' not in events.read_text(encoding="utf-8")


@pytest.mark.parametrize("plan", [False, True])
def test_other_tokens_that_are_there_are_refused_before_anything_runs(
    plan: bool, trained: Path, tokenizer: Tokenizer, tmp_path: Path
) -> None:
    Tokenizer.train(OTHER, vocab_size=268, special_tokens=("<|endoftext|>",)).save(tmp_path / "other")
    tokenizer.with_encoder("longest_first").save(tmp_path / "same")
    shape = [f"model.{name}={getattr(MODEL, name)}" for name in ("width", "layers", "heads", "ffn_width")]
    shape += [f"model.context_length={MODEL.context_length}", "model.tied_embeddings=false", "evaluation=heldout"]
    command = ["scale=tiny", "corpus=pydocs_small", f"root={tmp_path / 'root'}", *shape, "tokenizer=existing"]
    command += ["start=checkpoint", f"start.path={trained}", "encoder=merge_rank"]
    prepare_runs(compose_command(parse([*command, f"tokenizer.path={tmp_path / 'same'}"])), tolerate_missing=plan)
    with pytest.raises(ConfigurationError, match=r"start.vocabulary: same, but the vocabularies differ: 268 tokens"):
        prepare_runs(compose_command(parse([*command, f"tokenizer.path={tmp_path / 'other'}"])), tolerate_missing=plan)
    assert len(select(parse([*command, f"tokenizer.path={tmp_path / 'other'}"]), print).runs) == 1  # status and report
    stopping = [*command, f"tokenizer.path={tmp_path / 'other'}", "until=vocabulary"]
    assert len(prepare_runs(compose_command(parse(stopping)), tolerate_missing=plan)) == 1


@pytest.mark.parametrize(("size", "hint"), [(270, "vocabulary=added"), (266, "checkpoint's vocabulary")])
def test_a_vocabulary_of_another_size_is_refused_with_both_sizes(trained: Path, size: int, hint: str) -> None:
    other = Tokenizer.train(TEXTS, vocab_size=size, special_tokens=("<|endoftext|>",))
    with pytest.raises(ConfigurationError, match=rf"{size} tokens here, 268 in .*{hint}"):
        initial_model(continued(trained), other)


def test_a_hugging_face_directory_is_a_checkpoint_and_loses_the_rows_that_pad_it(
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


def test_weights_that_are_missing_or_no_safetensors_are_refused(copy: Path, tokenizer: Tokenizer) -> None:
    weights = copy / "model.safetensors"
    stored, run = load_file(weights), continued(copy)
    save_file({name: stored[name] for name in stored if "layers.1.mlp" not in name}, weights, {"format": "pt"})
    with pytest.raises(DataError, match=r"3 weights are not in its files, such as model.layers.1.mlp"):
        initial_model(run, tokenizer)
    weights.rename(copy / "pytorch_model.bin")
    with pytest.raises(DataError, match=r"no model.safetensors; weights of other formats are not read"):
        start_fingerprint(run.start, FileDigests(copy))


def test_weights_in_shards_are_read_and_a_lost_shard_is_named(copy: Path, trained: Path, tokenizer: Tokenizer) -> None:
    stored = load_file(copy / "model.safetensors")
    (copy / "model.safetensors").unlink()
    shards = {name: f"model-0000{1 + place % 2}-of-00002.safetensors" for place, name in enumerate(stored)}
    for shard in set(shards.values()):
        save_file({name: stored[name] for name in stored if shards[name] == shard}, copy / shard, {"format": "pt"})
    (copy / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": shards}))
    model = initial_model(continued(copy), tokenizer)
    found = huggingface_tensors(model.architecture, dict(model.named_parameters()))
    assert found.keys() == stored.keys()
    assert all(torch.equal(tensor, stored[name]) for name, tensor in found.items())
    (copy / "model-00002-of-00002.safetensors").unlink()
    with pytest.raises(DataError, match=r"names files that are not there: model-00002-of-00002"):
        start_fingerprint(continued(copy).start, FileDigests(copy))


@pytest.mark.parametrize("tied", [False, True])
def test_an_added_token_begins_as_the_mean_of_its_pieces(tied: bool, tmp_path: Path) -> None:
    smaller = Tokenizer.train(TEXTS, vocab_size=262, special_tokens=("<|endoftext|>",))
    larger = Tokenizer.train(TEXTS, vocab_size=270, special_tokens=("<|pad|>", "<|endoftext|>"))
    scratch = config(model=dataclasses.replace(MODEL, tied_embeddings=tied))
    model = initial_model(scratch, smaller)
    save_model(model, tmp_path)
    smaller.save(tmp_path / "tokenizer")
    run = continued(tmp_path, {"tied_embeddings": tied}, vocabulary="added")
    made = initial_model(run, larger)
    for before, after in (
        (model.embedding.weight, made.embedding.weight),
        (model.output_weight, made.output_weight),
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
    assert (made.embedding.weight is made.output_weight) == tied
    assert torch.equal(made.layers[1].gate_up.weight, model.layers[1].gate_up.weight)
    assert made.architecture.eos_id == larger.eos_id


def test_an_added_vocabulary_trains_and_lacks_no_token_of_the_checkpoint(
    trained: Path, tokenizer: Tokenizer, tmp_path: Path
) -> None:
    larger = Tokenizer.train(TEXTS, vocab_size=272, special_tokens=("<|endoftext|>",))
    execute(tmp_path, "run", write_inputs(tmp_path, tokenizer=larger), continued(trained, vocabulary="added"))
    after = losses(tmp_path / "run" / "output")
    assert after[-1] < after[0] < losses(trained)[0]
    smaller = Tokenizer.train(TEXTS, vocab_size=266, special_tokens=("<|endoftext|>",))
    gone = tokenizer.vocabulary.by_id[265].bytes
    with pytest.raises(ConfigurationError, match=rf"2 tokens of .* such as {gone!r} \(266 tokens here, 268 there\)"):
        initial_model(continued(trained, vocabulary="added"), smaller)


def test_a_run_made_again_elsewhere_starts_from_the_run_of_its_own_root() -> None:
    def roots(start: str) -> tuple[str, str]:
        given = {"root": "here", "start": {"kind": "checkpoint", "run": "abc", "root": start}}
        moved = moved_config(given, Path("/there"))
        return moved["root"], moved["start"]["root"]

    assert roots("here") == ("/there", "/there")
    assert roots("other") == ("/there", "other")


def test_rotations_and_residuals_of_a_gpt_neox_must_agree_too(copy: Path) -> None:
    shape = {"model_type": "gpt_neox", "attention_bias": True, "hidden_act": "gelu", "rope_parameters": None}
    edit(copy, **shape, rotary_pct=0.5, rotary_emb_base=500, rope_theta=10_000.0, use_parallel_residual=False)
    run = continued(copy)
    model = GPTNeoXModel(
        width=MODEL.width, layers=MODEL.layers, heads=MODEL.heads, ffn_width=MODEL.ffn_width, context_length=16
    )
    found = dict(check_start_state(dataclasses.replace(run, model=model)))
    assert {name: message.split(" in ")[0] for name, message in found.items()} == {
        "model.rope_theta": "10000.0, but 500.0",
        "model.rotary_fraction": "0.25, but 0.5",
        "model.parallel_residual": "True, but False",
    }
