"""How many devices a library sees, asked in a process of its own: whoever asks loads no library and holds no device."""

import json
import subprocess
import sys
from functools import cache
from typing import Literal

from paribus.errors import InfrastructureError

Library = Literal["torch", "faiss"]


@cache
def visible_devices(library: Library) -> int:
    """CUDA devices that PyTorch, or GPUs that faiss, may use here, asked once by a process.

    Raises InfrastructureError where it cannot be asked.
    """
    command = [sys.executable, "-m", "paribus.pipeline.making.visible_devices", library]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        raise InfrastructureError(f"{library} does not say which devices it sees: {last}")
    return int(done.stdout)


def _count(library: str) -> int:
    if library == "torch":
        from paribus.modeling.device import usable_gpus

        return usable_gpus()
    import faiss

    return int(getattr(faiss, "get_num_gpus", lambda: 0)())


@cache
def pytorch_build() -> tuple[str, str | None]:
    """The version of PyTorch, and the CUDA that it is built for or None, asked once by a process."""
    code = "import json, torch; print(json.dumps([torch.__version__, torch.version.cuda]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    version, cuda = json.loads(done.stdout)
    return str(version), cuda


if __name__ == "__main__":
    sys.stdout.write(str(_count(sys.argv[1])))
