"""Names of the files of a training's state; nothing heavy is imported, as what is judged before a run uses them."""

import re

OPTIMIZER, STATE = "optimizer.safetensors", "state.json"
STATE_DIRECTORY = "state"
"""In an artefact `training`: the optimizer after the last step, with the step and the fingerprint."""
STEP_NAME = re.compile(r"step_(\d{8,})")
