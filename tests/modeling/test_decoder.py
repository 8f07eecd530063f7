"""Decoders against the classes of transformers."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn.functional import cross_entropy
from transformers import GPTNeoXConfig, GPTNeoXForCausalLM, LlamaConfig, LlamaForCausalLM

from paribus.config.groups.model import DecoderModel
from paribus.errors import DataError
from paribus.modeling.decoder import Decoder, Documents, KVCache, attend, huggingface_tensors
from paribus.modeling.models import build_model, load_model
from paribus.training.losses import DocumentEnd, SummedLoss, document_attention, document_bounds
from support.models import GPT_NEOX, LLAMA
from support.transformers_models import in_transformers

MODELS: dict[str, DecoderModel] = {
    "llama": LLAMA,
    "llama_tied": dataclasses.replace(LLAMA, tied_embeddings=True, rope_theta=500.0),
    "gpt_neox": GPT_NEOX,
    "gpt_neox_sequential": dataclasses.replace(GPT_NEOX, parallel_residual=False, rotary_fraction=0.5),
    "gpt_neox_tied": dataclasses.replace(GPT_NEOX, tied_embeddings=True, rotary_fraction=1.0),
}
each = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS.keys())


def built(model: DecoderModel) -> Decoder:
    """With weights so large that every part of the model shows, and no norm or bias at its beginning."""
    decoder: Decoder = build_model(dataclasses.replace(model, initializer_range=0.2), 64, 0, eos_id=3)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in decoder.parameters():
            if parameter.ndim == 1:
                parameter.add_(0.1 * torch.randn(parameter.shape, generator=generator))
    return decoder


def drawn(rows: int = 3, length: int = 16) -> torch.Tensor:
    return torch.randint(0, 64, (rows, length), generator=torch.Generator().manual_seed(0))


@each
def test_logits_and_gradients_are_those_of_transformers(model: DecoderModel) -> None:
    ours, ids = built(model), drawn()
    theirs = in_transformers(ours)
    logits, expected_logits = ours.logits(ids), theirs(ids).logits
    torch.testing.assert_close(logits, expected_logits, rtol=0, atol=1e-5)
    assert expected_logits.std() > 0.5
    for each_logits in (logits, expected_logits):
        cross_entropy(each_logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten()).backward()
    gradients = {name: parameter.grad for name, parameter in ours.named_parameters()}
    named = huggingface_tensors(ours.architecture, gradients)  # type: ignore[arg-type]
    expected = {name: parameter.grad for name, parameter in theirs.named_parameters()}
    expected = {name if name in named else "embed_out.weight": gradient for name, gradient in expected.items()}
    assert named.keys() == expected.keys()
    for name, gradient in named.items():
        torch.testing.assert_close(gradient, expected[name], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("shard", ["1TB", "4KB"], ids=["whole", "sharded"])
@pytest.mark.parametrize(("family", "config"), [(LlamaForCausalLM, LlamaConfig), (GPTNeoXForCausalLM, GPTNeoXConfig)])
def test_files_of_transformers_are_loaded_with_its_logits(
    family: Any, config: Any, shard: str, dtype: torch.dtype, tmp_path: Path
) -> None:
    shape = {"vocab_size": 40, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2}
    torch.manual_seed(0)
    theirs = family(config(**shape, num_attention_heads=2, initializer_range=0.3)).eval().to(dtype)
    theirs.save_pretrained(tmp_path, max_shard_size=shard)
    assert (len(list(tmp_path.glob("*.safetensors"))) > 1) == (shard == "4KB")
    again, ids = family.from_pretrained(tmp_path, dtype=torch.float32), torch.arange(10)[None]
    with torch.no_grad():
        torch.testing.assert_close(load_model(tmp_path).logits(ids), again(ids).logits, rtol=0, atol=1e-5)


def test_files_that_do_not_fit_their_configuration_are_refused(tmp_path: Path) -> None:
    in_transformers(built(LLAMA)).save_pretrained(tmp_path)
    config = (tmp_path / "config.json").read_text()
    (tmp_path / "config.json").write_text(config.replace('"intermediate_size": 48', '"intermediate_size": 40'))
    with pytest.raises(DataError, match=r"shape of .*gate_proj.weight differs in weights and config.json: \(48, 32\) "):
        load_model(tmp_path)
    (tmp_path / "config.json").write_text(config.replace('"hidden_size"', '"hidden"'))
    with pytest.raises(DataError, match=r"config.json does not say 'hidden_size'"):
        load_model(tmp_path)


@each
def test_recomputed_activations_and_compiled_layers_give_the_same_gradients(model: DecoderModel) -> None:
    torch._dynamo.reset()
    decoder, ids = built(model).train(), drawn()

    def gradients() -> tuple[torch.Tensor, ...]:
        return torch.autograd.grad(SummedLoss(decoder)(ids, ids), list(decoder.parameters()))

    plain = gradients()
    decoder.activation_checkpointing = True
    assert all(torch.equal(*pair) for pair in zip(plain, gradients(), strict=True))
    decoder.activation_checkpointing = False
    for layer in decoder.layers:
        layer.compile(backend="aot_eager", fullgraph=True)
    for ours, expected in zip(gradients(), plain, strict=True):
        torch.testing.assert_close(ours, expected, rtol=1e-4, atol=1e-4)


@each
@torch.no_grad()
def test_tokens_read_one_by_one_with_a_cache_are_those_read_at_once(model: DecoderModel) -> None:
    decoder, ids = built(model), drawn()
    whole = decoder(ids)
    cache = KVCache(decoder.architecture, 3, 16, decoder.device, torch.float32)
    square = torch.ones(16, 16, dtype=torch.bool).tril()
    first = decoder(ids[:, :5], mask=square[:5, :5], cache=cache)
    torch.testing.assert_close(first, whole[:, :5], rtol=0, atol=1e-5)
    cache.keep(torch.tensor([0, 2]))
    for place in range(5, 16):
        token, position = ids[[0, 2], place : place + 1], torch.tensor([[place]])
        hidden = decoder(token, position, square[place : place + 1, : place + 1], cache)
        torch.testing.assert_close(hidden[:, 0], whole[[0, 2], place], rtol=0, atol=1e-5)


def varlen_by_hand(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *bounds: Any, **options: Any) -> torch.Tensor:
    """What `varlen_attn` gives on a GPU, which has no kernel for a CPU."""
    starts, _, *longest = bounds
    assert options == {"window_size": (-1, 0)} and set(longest) == {16}
    assert starts.dtype == torch.int32 and int(starts[-1]) == len(q) and (starts.diff() > 0).all()
    parts = []
    for begin, end in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        assert end - begin <= 16
        parts.append(attend(q[None, begin:end], k[None, begin:end], v[None, begin:end], None)[0])
    return torch.cat(parts)


@each
def test_bounds_of_documents_equal_their_mask(model: DecoderModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paribus.modeling.decoder.varlen_attn", varlen_by_hand)
    decoder, ids = built(model), drawn(4)
    ids[ids < 9] = 3
    ids[1, -1] = ids[2, 0] = ids[2, 1] = 3
    for end in (DocumentEnd(3), DocumentEnd(3, begins=True)):
        bounds = document_bounds(ids, end)
        assert isinstance(bounds, Documents) and len(bounds.bounds) > 8
        torch.testing.assert_close(
            decoder(ids, mask=bounds), decoder(ids, mask=document_attention(ids, end)), rtol=0, atol=1e-5
        )


class OnGPU(torch.Tensor):
    """Of a CPU, and says otherwise."""

    device = torch.device("cuda")


def test_only_a_gpu_in_bfloat16_with_heads_that_flash_attention_takes_is_given_bounds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("paribus.training.losses.document_bounds", lambda *_: "bounds")
    monkeypatch.setattr("paribus.training.losses.document_attention", lambda *_: "mask")
    for gpu, computes_in, heads, expected in (
        (True, torch.bfloat16, 2, "bounds"),
        (True, torch.bfloat16, 8, "mask"),
        (True, torch.float32, 2, "mask"),
        (False, torch.bfloat16, 2, "mask"),
    ):
        decoder = built(dataclasses.replace(LLAMA, heads=heads))
        decoder.computes_in = computes_in
        ids = drawn().as_subclass(OnGPU) if gpu else drawn()
        assert SummedLoss(decoder, DocumentEnd(3))._mask(ids) == expected, (gpu, computes_in, heads)


@each
def test_states_are_bfloat16_and_weights_stay_float32(model: DecoderModel) -> None:
    decoder, ids = built(model), drawn()
    decoder.computes_in = torch.bfloat16
    assert decoder(ids).dtype == torch.bfloat16
    kinds = []
    for layer in decoder.layers:
        layer.register_forward_hook(lambda _, given, out: kinds.append((given[0].dtype, out.dtype)))
    SummedLoss(decoder)(ids, ids).backward()
    assert kinds == [(torch.bfloat16, torch.bfloat16)] * 2
    assert {parameter.grad.dtype for parameter in decoder.parameters() if parameter.grad is not None} == {torch.float32}
    exact = built(model)
    SummedLoss(exact)(ids, ids).backward()
    for name, parameter in decoder.named_parameters():
        expected = exact.get_parameter(name).grad
        assert parameter.grad is not None and expected is not None
        assert (parameter.grad - expected).norm() < 0.05 * expected.norm(), name
