"""The process of a step: `python -m acceptance MODULE FUNCTION GIVEN ANSWER`, the last two files of JSON."""

import json
import sys
from dataclasses import asdict
from importlib import import_module
from pathlib import Path

from acceptance.given import Given

module, function, *names = sys.argv[1:]
given, answer = map(Path, names)
read = Given(**json.loads(given.read_text(encoding="utf-8")))
measured = getattr(import_module(f"acceptance.{module}"), function)(read)
answer.write_text(json.dumps(asdict(measured)), encoding="utf-8")
