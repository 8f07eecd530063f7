"""A `Decoder` as a Hugging Face directory: `config.json` and float32 weights in safetensors."""

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from paribus.errors import DataError
from paribus.modeling.decoder.architecture import config_json, read_architecture
from paribus.modeling.decoder.decoder import Decoder
from paribus.modeling.decoder.names import Place, huggingface_tensors, places
from paribus.modeling.weight_files import CONFIG, WEIGHTS, weight_files
from paribus.store.files import read_object, write_json


def save_decoder(decoder: Decoder, directory: Path, weights: dict[str, torch.Tensor] | None = None) -> None:
    """Write `decoder` into `directory`; `weights`, by parameter, are written in place of its own."""
    parameters = weights or {name: tensor.detach() for name, tensor in decoder.named_parameters()}
    found = huggingface_tensors(decoder.architecture, parameters)
    tensors = {name: tensor.to("cpu", torch.float32).contiguous() for name, tensor in found.items()}
    directory.mkdir(parents=True, exist_ok=True)
    write_json(directory / CONFIG, config_json(decoder.architecture))
    save_file(tensors, directory / WEIGHTS, metadata={"format": "pt"})


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
        stored = _opened(files, directory)
        sought = list(places(architecture))
        if missing := [place.stored for place in sought if not stored.keys() & {place.stored, place.name}]:
            raise DataError(f"{directory}: {len(missing)} weights are not in its files, such as {missing[0]}")
        for place in sought:
            _read(stored, place, parameters[place.parameter][place.rows], directory)
    return decoder


def _opened(files: ExitStack, directory: Path) -> dict[str, Any]:
    """The open file of each tensor by its name."""
    try:
        opened = [files.enter_context(safe_open(path, "pt")) for path in weight_files(directory)]
        return {name: file for file in opened for name in file.keys()}  # noqa: SIM118 (no mapping)
    except (SafetensorError, OSError) as error:
        raise DataError(f"{directory}: its weights cannot be read ({error}); copy the checkpoint again") from error


def _read(stored: dict[str, Any], place: Place, into: torch.Tensor, directory: Path) -> None:
    name = place.stored if place.stored in stored else place.name
    tensor = stored[name].get_tensor(name)
    if tensor.shape != into.shape:
        sizes = " and ".join(str(tuple(shape)) for shape in (tensor.shape, into.shape))
        raise DataError(f"{directory}: the shape of {name} differs in weights and {CONFIG}: {sizes}")
    into.copy_(tensor)
