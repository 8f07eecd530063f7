"""Two users of one group in one store, with real user numbers, which takes root."""

import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

GROUP, ANN, BEN = 2000, 3001, 3002
CHECKOUT = Path(__file__).resolve().parents[2]
SETTING = """
set -e
if [ -n "$1" ]; then
  mkdir -p "$2/python" "$2/checkout" && mount --bind "$3" "$2/python" && mount --bind "$4" "$2/checkout"
  mount -t tmpfs -o mode=755 tmpfs "$1" && mkdir -p "$3" "$4"
  mount --bind "$2/python" "$3" && mount --bind "$2/checkout" "$4"
fi
umask "$5"
exec setpriv --reuid "$6" --regid "$6" --groups "$7" "${@:8}"
"""
"""Become a user; a closed home of root with Python, and maybe the checkout, is opened to this process alone."""
PUBLISH = """
import sys
from collections.abc import Iterator
from pathlib import Path
from paribus.store.artifacts import Store
store, key = Store(Path(sys.argv[1])), sys.argv[2] * 64
held = store.claim("corpus", key)
with held:
    output = store.empty_output(held, "corpus", key)
    (output / "weights").touch(mode=0o600)
    (output / "weights").write_text("content")
    store.publish(held, "corpus", key, {"result": {}})
for other in sys.argv[2:]:
    assert (store.require("corpus", other * 64).path / "weights").read_text() == "content"
print("published")
"""


def as_user(user: int, umask: str, directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the script as a user of the group."""
    interpreter = Path(sys.base_prefix)
    closed = next((str(path) for path in interpreter.parents if not stat.S_IMODE(path.stat().st_mode) & 0o001), "")
    places = [closed, str(directory / f"mounts{user}"), str(interpreter), str(CHECKOUT), umask, str(user), str(GROUP)]
    program = ["unshare", "--mount", "bash", "-c", SETTING, "as", *places]
    command = [*program, sys.executable, "-c", PUBLISH, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def root() -> Iterator[Path]:
    """A root that the group may write."""
    if os.geteuid() != 0 or not shutil.which("setpriv") or not shutil.which("unshare"):
        pytest.skip("becoming another user needs root, setpriv and unshare")
    # Not below `tmp_path`: pytest closes what is above that to other users.
    with tempfile.TemporaryDirectory(dir="/tmp") as directory:
        os.chown(directory, 0, GROUP)
        Path(directory).chmod(0o2775)
        yield Path(directory)


def test_users_of_one_group_make_and_read_artefacts_of_one_store(tmp_path: Path, root: Path) -> None:
    for user, arguments in ((ANN, ["a"]), (BEN, ["b", "a"]), (ANN, ["c", "b", "a"])):
        done = as_user(user, "002", tmp_path, str(root), *arguments)
        assert (done.stdout, done.returncode) == ("published\n", 0), done.stderr
