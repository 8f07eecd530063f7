"""How many devices PyTorch sees, asked in a process of its own: whoever asks does not load it and holds no device."""

import json
import subprocess
import sys
from functools import cache

from paribus.errors import InfrastructureError


@cache
def visible_devices() -> int:
    """CUDA devices that PyTorch may use here, asked once by a process.

    Raises InfrastructureError where it cannot be asked.
    """
    code = "from paribus.modeling.device import usable_gpus; print(usable_gpus())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        raise InfrastructureError(f"PyTorch does not say which devices it sees: {last}")
    return int(done.stdout)


@cache
def pytorch_build() -> tuple[str, str | None]:
    """The version of PyTorch, and the CUDA that it is built for or None, asked once by a process."""
    code = "import json, torch; print(json.dumps([torch.__version__, torch.version.cuda]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    version, cuda = json.loads(done.stdout)
    return str(version), cuda
