"""Which processes are gone, as far as that can be known from here."""

import subprocess
import sys
from pathlib import Path

from paribus.store.claims import is_gone, is_of_another_boot, machine, this_process

EARLIER = {**this_process(), "machine": "another-boot pid:[4026531836]"}
OTHER_NAMESPACE = {**this_process(), "machine": f"{machine().split()[0]} pid:[1]"}


def test_a_process_is_there_until_it_ends_and_its_number_in_other_hands_is_not_it() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    ours = this_process()
    theirs = {**ours, "pid": child.pid, "started": float(_started(child.pid))}
    assert not is_gone(ours)
    assert not is_gone(theirs)
    assert is_gone({**ours, "started": 1.0})
    child.communicate(b"\n")
    assert is_gone(theirs)


def _started(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[19]


def test_nothing_is_known_of_a_process_in_another_container_or_on_another_host() -> None:
    assert not is_gone({**this_process(), "machine": "another boot pid:[1]", "pid": 2**22 + 1})
    assert not is_gone({})


def test_a_process_is_of_another_boot_only_where_that_is_known() -> None:
    assert is_of_another_boot(EARLIER)
    assert not any(map(is_of_another_boot, (this_process(), OTHER_NAMESPACE, {**EARLIER, "host": "elsewhere"}, {})))
