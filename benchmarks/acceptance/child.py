"""The process of a step: `python -m acceptance.child MODULE GIVEN ANSWER`, the last two files of JSON."""

import json
import sys
from dataclasses import asdict
from importlib import import_module
from pathlib import Path

from acceptance.given import Given

if __name__ == "__main__":
    module, given, answer = sys.argv[1], Given.read(Path(sys.argv[2])), Path(sys.argv[3])
    measured = import_module(f"acceptance.measures.{module}").measure(given)
    answer.write_text(json.dumps(asdict(measured)), encoding="utf-8")
