"""The image for GPUs, as far as a machine without one shows it: it is built, with PyTorch's build for CUDA."""

from pathlib import Path

import pytest
from docker_engine import HERE, Engine, build

pytestmark = [pytest.mark.docker_cuda, pytest.mark.timeout(3600)]


def test_the_image_for_gpus_is_built(engine: Engine, bases: None, checkout: Path) -> None:
    engine.docker("build", "--quiet", "--tag=paribus-tests/plain", HERE / "plain")
    buildkit = "1" if engine.has("buildx") else "0"
    words = ("docker", "build", "--tag=paribus:cuda", "--build-arg=DEVICE=cuda")
    build(engine, checkout, *words, python="paribus-tests/plain", DOCKER_BUILDKIT=buildkit)
    version = ("--entrypoint=python", "paribus:cuda", "-c", "import torch; print(torch.version.cuda)")
    assert float(engine.docker("run", "--rm", *version)) >= 13
    size = int(engine.docker("image", "inspect", "--format={{.Size}}", "paribus:cuda"))
    print(f"image {size / 1e9:.2f} GB")  # noqa: T201
    assert size < 9e9
