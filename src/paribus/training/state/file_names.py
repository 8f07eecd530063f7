"""Names of the files of a training's state; nothing heavy is imported, as what is judged before a run uses them."""

import re
from pathlib import Path

OPTIMIZER, STATE = "optimizer.safetensors", "state.json"
STATE_DIRECTORY = "state"
"""In an artefact `training`: the optimizer after the last step, with the step and the fingerprint."""
STEP_NAME = re.compile(r"step_(\d{8,})")


def checkpoint_directories(directory: Path) -> dict[int, Path]:
    """Checkpoints in a directory by step, ascending."""
    named = ((STEP_NAME.fullmatch(path.name), path) for path in directory.iterdir())
    return dict(sorted((int(name[1]), path) for name, path in named if name))
