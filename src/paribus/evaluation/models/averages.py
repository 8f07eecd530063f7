"""Models whose weights are the mean of those of several checkpoints. Imports torch: import this module late."""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import torch

from paribus.errors import DataError
from paribus.modeling.architecture import WEIGHTS
from paribus.store.files import publish_directory
from paribus.training.distributed import Host
from paribus.training.sharded import Part, StoredTensors, write_whole


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


@dataclass(frozen=True)
class MeanTensors:
    """The mean of each tensor over files, summed in float64 and given in float32; one is in memory at a time.

    Vaswani et al. 2017, section 6.1: "a single model obtained by averaging the last 5 checkpoints".
    """

    files: Sequence[StoredTensors]

    @classmethod
    def of(cls, directories: Sequence[Path]) -> "MeanTensors":
        """Those of Hugging Face directories of one family; DataError names two whose shapes of weights differ."""
        files = [StoredTensors.of([path / WEIGHTS]) for path in directories]
        for (first, one), (second, other) in pairwise(zip(directories, files, strict=True)):
            if one.shapes != other.shapes:
                raise DataError(f"{first} and {second} are no checkpoints of one model: shapes of weights differ")
        return cls(files)

    @property
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """Of whole tensors."""
        return self.files[0].shapes

    def rows(self, name: str, start: int, stop: int) -> torch.Tensor:
        """Rows `start` to `stop` of the mean of a tensor."""
        return _mean([file.rows(name, start, stop) for file in self.files])

    def whole(self, name: str) -> torch.Tensor:
        """The mean of a tensor."""
        return _mean([file.whole(name) for file in self.files])


def _mean(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    total = tensors[0].double()
    for tensor in tensors[1:]:
        total += tensor
    return (total / len(tensors)).float()


def _write(sources: Sequence[Path], target: Path) -> None:
    """The last of the checkpoints with the mean weights, whole or not at all."""
    partial, means = target.with_name(f"{target.name}.partial"), MeanTensors.of(sources)
    shutil.rmtree(partial, ignore_errors=True)
    shutil.copytree(sources[-1], partial, ignore=shutil.ignore_patterns(WEIGHTS))
    write_whole(partial / WEIGHTS, means, {name: Part(name, None) for name in means.shapes}, {"format": "pt"})
    publish_directory(partial, target)
