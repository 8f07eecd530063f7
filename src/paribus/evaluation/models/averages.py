"""Models whose weights are the mean of those of several checkpoints. Imports torch: import this module late."""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from paribus.errors import DataError
from paribus.modeling.weight_files import WEIGHTS
from paribus.store.atomic import publish_directory
from paribus.training.processes.host import Host


def averaged(checkpoints: Mapping[int, Path], number: int, directory: Path, host: Host) -> dict[int, Path]:
    """Of checkpoints by step, ascending, those from the `number`-th on, each with the mean weights of as many up to it.

    One alone is the checkpoint itself. Others are written below `directory` by the main process of `host`, for which
    all wait, and found there again. DataError where the checkpoints are not of one model.
    """
    steps, paths = list(checkpoints), list(checkpoints.values())
    if number == 1:
        return dict(checkpoints)
    found = {step: directory / paths[place].name for place, step in enumerate(steps) if place >= number - 1}
    if host.main:
        for place, target in enumerate(found.values()):
            if not target.is_dir():
                _write(paths[place : place + number], target)
    host.wait()
    return found


def mean_weights(directories: Sequence[Path]) -> dict[str, torch.Tensor]:
    """The mean of each tensor over Hugging Face directories, summed in float64 and given in float32, by its name.

    Vaswani et al. 2017, section 6.1: "a single model obtained by averaging the last 5 checkpoints". Of one family all
    have the same names and shapes, and DataError names the two that do not.
    """
    with ExitStack() as files:
        opened = [_opened(files, path / WEIGHTS) for path in directories]
        for (first, one), (second, other) in pairwise(zip(directories, opened, strict=True)):
            if dict(_shapes(one)) != dict(_shapes(other)):
                raise DataError(f"{first} and {second} are no checkpoints of one model: shapes of weights differ")
        return {name: _mean([file.get_tensor(name) for file in opened]) for name, _ in _shapes(opened[0])}


def _mean(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    total = tensors[0].double()
    for tensor in tensors[1:]:
        total += tensor
    return (total / len(tensors)).float()


def _write(sources: Sequence[Path], target: Path) -> None:
    """The last of the checkpoints with the mean weights, whole or not at all."""
    partial = target.with_name(f"{target.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    shutil.copytree(sources[-1], partial, ignore=shutil.ignore_patterns(WEIGHTS))
    save_file(mean_weights(sources), partial / WEIGHTS, {"format": "pt"})
    publish_directory(partial, target)


def _opened(files: ExitStack, path: Path) -> Any:
    try:
        return files.enter_context(safe_open(path, "pt"))
    except (SafetensorError, OSError) as error:
        raise DataError(f"{path}: cannot be read ({error})") from error


def _shapes(file: Any) -> Iterator[tuple[str, list[int]]]:
    return ((name, file.get_slice(name).get_shape()) for name in file.keys())  # noqa: SIM118 (no mapping)
