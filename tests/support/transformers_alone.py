"""Code as users of transformers run it: in processes that have imported transformers and nothing of paribus.

They are forked from one that has the imports done, which take most of reading a small model.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

SERVER = """
import json, os, sys, traceback
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaForCausalLM, PreTrainedTokenizerFast
for line in sys.stdin:
    asked = json.loads(line)
    assert not any(name.partition(".")[0] == "paribus" for name in sys.modules)
    if (child := os.fork()) == 0:
        code = 1
        try:
            for place, path in ((1, asked["output"]), (2, asked["errors"])):
                os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), place)
            os.chdir(asked["directory"])
            exec(compile(asked["code"], "user.py", "exec"), {"__name__": "__main__"})
            sys.stdout.flush()
            code = 0
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
        finally:
            os._exit(code)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
os._exit(0)
"""


class TransformersAlone:
    """A context manager; `directory` takes what is printed, and the code that transformers copies to import it."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._process = subprocess.Popen(
            [sys.executable, "-c", SERVER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {"HF_MODULES_CACHE": str(directory / "modules"), "HF_HUB_OFFLINE": "1"},
            cwd=directory,
            text=True,
        )

    def run(self, code: str, cwd: Path) -> subprocess.CompletedProcess[str]:
        """As `subprocess.run` of `python -c CODE` in a directory."""
        output, errors = self._directory / "output", self._directory / "errors"
        asked = {"code": code, "directory": str(cwd.absolute()), "output": str(output), "errors": str(errors)}
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        status = int(self._process.stdout.readline())
        printed, told = (path.read_text(encoding="utf-8") for path in (output, errors))
        return subprocess.CompletedProcess(["python", "-c", code], status, printed, told)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.__exit__(kind, error, trace)
