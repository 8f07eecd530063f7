"""Building, saving and loading of a model as a Hugging Face directory. Imports torch: import this module late.

A model is a `Decoder`, or for encoder_decoder the Marian class of transformers. A directory has `config.json` and
float32 weights in safetensors.
"""

import json
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from paribus.config.groups.model import DecoderModel, EncoderDecoderModel, ModelConfig
from paribus.errors import ConfigurationError, DataError
from paribus.modeling.architecture import (
    CONFIG,
    KINDS,
    WEIGHTS,
    Architecture,
    architecture_of,
    config_json,
    read_architecture,
    weight_files,
)
from paribus.modeling.decoder import Decoder, Place, huggingface_tensors, places
from paribus.modeling.initialization import InitialWeights, initialize
from paribus.modeling.parameters import require_shape, resolve_model
from paribus.store.files import read_object, write_json

MODEL_TYPES = (*KINDS, "marian")
"""Values of `model_type` in the `config.json` of a checkpoint that can be loaded."""


def build_model(
    model: ModelConfig, vocab_size: int, seed: int, *, eos_id: int | None = None, tokens: Sequence[bytes] | None = None
) -> Any:
    """A model with `vocab_size` tokens in float32 on the CPU, its weights set by `initialize`.

    `tokens` are their distinct names by id, by which their rows are drawn; where nothing is to be compared, none.
    The global random state is neither read nor changed. An encoder-decoder needs `eos_id`. Raises ConfigurationError
    for a shape that cannot be.
    """
    if isinstance(model, EncoderDecoderModel):
        from paribus.modeling import marian

        require_shape(model)
        resolved = resolve_model(model, vocab_size)
        built = marian.build(resolved, vocab_size, eos_id)
        trained = {name: weight for name, weight in built.named_parameters() if weight.requires_grad}
        initialize(trained, resolved, seed, marian.VOCABULARY, tokens)
        return built
    decoder, weights = build_empty(model, vocab_size, seed, eos_id=eos_id, tokens=tokens)
    decoder.to_empty(device="cpu")
    with torch.no_grad():
        for name, parameter in decoder.named_parameters():
            parameter.copy_(weights.rows(name, 0, len(parameter)))
    return decoder


def build_empty(
    model: DecoderModel, vocab_size: int, seed: int, *, eos_id: int | None, tokens: Sequence[bytes] | None
) -> tuple[Decoder, InitialWeights]:
    """The decoder of `build_model`, its parameters on `meta`, and their weights, which are drawn on request."""
    require_shape(model)
    resolved = resolve_model(model, vocab_size)
    decoder = empty_decoder(architecture_of(resolved, vocab_size, eos_id))
    return decoder, InitialWeights(decoder, resolved, seed, tokens)


def empty_decoder(architecture: Architecture) -> Decoder:
    """A decoder whose parameters are on `meta`."""
    with torch.device("meta"):
        return Decoder(architecture)


def save_model(model: Any, directory: Path, weights: dict[str, torch.Tensor] | None = None) -> None:
    """Write `config.json` and `model.safetensors` (float32) of an unwrapped model into `directory`.

    `weights`, if given, are written in place of the model's own, by the names of its parameters.
    """
    if not isinstance(model, Decoder):
        from paribus.modeling import marian

        marian.save(model, directory, weights)
        return
    parameters = weights or {name: tensor.detach() for name, tensor in model.named_parameters()}
    stored = huggingface_tensors(model.architecture, parameters)
    tensors = {name: tensor.to("cpu", torch.float32).contiguous() for name, tensor in stored.items()}
    directory.mkdir(parents=True, exist_ok=True)
    save_shape(model, directory)
    save_file(tensors, directory / WEIGHTS, metadata={"format": "pt"})


def save_shape(decoder: Decoder, directory: Path) -> None:
    """Write the `config.json` of a decoder into `directory`."""
    write_json(directory / CONFIG, config_json(decoder.architecture))


def load_model(directory: Path) -> Any:
    """The model saved in `directory`, in float32 on the CPU; only safetensors files are read, and no code.

    Raises DataError for a directory whose files cannot be read, ConfigurationError for a family unknown here.
    """
    path = directory / CONFIG
    try:
        family = json.loads(path.read_text(encoding="utf-8"))["model_type"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"{path} does not say which model this is: {error!r}") from error
    if family not in MODEL_TYPES:
        raise ConfigurationError(f"{path}: model_type {family!r} is unknown here; known: {', '.join(MODEL_TYPES)}")
    if family in KINDS:
        return load_decoder(directory)
    from paribus.modeling import marian

    return marian.load(directory)


def is_encoder_decoder(model: Any) -> bool:
    """True if a model reads a source before it predicts a target."""
    return not isinstance(model, Decoder)


def vocabulary_size(model: Any) -> int:
    """Tokens that an unwrapped model knows."""
    return model.architecture.vocab_size if isinstance(model, Decoder) else int(model.config.vocab_size)


def stacked_layers(model: Any) -> list[torch.nn.Module]:
    """All layers of an unwrapped model, first to last; of an encoder-decoder the encoder's, then the decoder's."""
    if isinstance(model, Decoder):
        return list(model.layers)
    return [*model.model.encoder.layers, *model.model.decoder.layers]


def recompute_activations(model: Any) -> None:
    """Let the layers of an unwrapped model keep their input only, and compute the rest again in the backward pass."""
    if isinstance(model, Decoder):
        model.activation_checkpointing = True
    else:
        model.gradient_checkpointing_enable()


def load_decoder(directory: Path) -> Decoder:
    """The decoder in `directory`, in float32 on the CPU; files may be sharded and of any floating type.

    Raises DataError for files that are missing, broken, without a tensor, or with one of another shape.
    """
    try:
        architecture = read_architecture(read_object(directory / CONFIG))
    except KeyError as error:
        raise DataError(f"{directory / CONFIG} does not say {error}") from error
    decoder = Decoder(architecture)
    parameters = dict(decoder.named_parameters())
    with ExitStack() as files, torch.no_grad():
        stored = _open_weights(files, directory)
        required = list(places(architecture))
        if missing := [place.stored for place in required if not stored.keys() & {place.stored, place.name}]:
            raise DataError(f"{directory}: {len(missing)} weights are not in its files, such as {missing[0]}")
        for place in required:
            _read_tensor(stored, place, parameters[place.parameter][place.rows], directory)
    return decoder


def _open_weights(files: ExitStack, directory: Path) -> dict[str, Any]:
    """Open the safetensors files; return the file of each tensor by its name."""
    try:
        opened = [files.enter_context(safe_open(path, "pt")) for path in weight_files(directory)]
        return {name: file for file in opened for name in file.keys()}  # noqa: SIM118 (no mapping)
    except (SafetensorError, OSError) as error:
        raise DataError(f"{directory}: its weights cannot be read ({error}); copy the checkpoint again") from error


def _read_tensor(stored: dict[str, Any], place: Place, into: torch.Tensor, directory: Path) -> None:
    name = place.stored if place.stored in stored else place.name
    tensor = stored[name].get_tensor(name)
    if tensor.shape != into.shape:
        sizes = " and ".join(str(tuple(shape)) for shape in (tensor.shape, into.shape))
        raise DataError(f"{directory}: the shape of {name} differs in weights and {CONFIG}: {sizes}")
    into.copy_(tensor)
