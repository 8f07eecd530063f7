"""A training whose process PyTorch's agent starts, which handles signals: python started_training.py ROOT."""

import json
import sys
from dataclasses import replace
from pathlib import Path

from paribus.stage import SilentListener
from paribus.training.distributed import Processes
from paribus.training.launch import train_in_processes
from support.training_inputs import TRAINING, config, context

ON_DEVICE = config(training=replace(TRAINING, device="auto", precision="auto"))

if __name__ == "__main__":
    root = Path(sys.argv[1])
    inputs = {stage: root / stage for stage in ("tokens", "order")}
    result = train_in_processes(context(root, "started", inputs, ON_DEVICE, SilentListener()), Processes(1, 1))
    (root / "result.json").write_text(json.dumps(result))
