"""A process that makes what is missing of many artefacts, as a runner does, and dies or freezes where it is told to.

`python round_worker.py ROOT ROUNDS LEASE`. Of every ten rounds the first maker of one artefact in rounds 2 and 7 kills
itself in the middle, and in round 4 stops until it is woken, when others have long taken over.
"""

import os
import signal
import sys
import time
from pathlib import Path

from paribus.config.identity import digest
from paribus.store.artifacts import Store
from paribus.store.claims import Claim, ClaimLostError

STAGES = ("corpus", "vocabulary", "tokens")
KILLED, FROZEN = (2, 7), (4,)


def key_of(number: int, stage: str) -> str:
    return digest([number, stage])


def main() -> None:
    root, rounds, lease = Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    for number in range(rounds):
        for stage in STAGES:
            ensure(Store(root, lease), stage, number)


def ensure(store: Store, stage: str, number: int) -> None:
    key = key_of(number, stage)
    while store.find(stage, key) is None:
        held = store.claim(stage, key)
        if held is None:
            time.sleep(0.01)
            continue
        with held:
            if store.find(stage, key) is None:
                make(store, held, stage, number)


def make(store: Store, held: Claim, stage: str, number: int) -> None:
    key = key_of(number, stage)
    note(store, f"making {stage} {number}")
    output = store.empty_output(held, stage, key)
    (output / "first").write_text(held.token, encoding="utf-8")
    if stage == "vocabulary" and number % 10 in KILLED and first(store, f"killed-{number}"):
        note(store, f"killed {stage} {number}")
        os.kill(os.getpid(), signal.SIGKILL)
    (output / "second").write_text(held.token, encoding="utf-8")
    if stage == "tokens" and number % 10 in FROZEN and first(store, f"frozen-{number}"):
        note(store, f"frozen {stage} {number} {os.getpid()}")
        os.kill(os.getpid(), signal.SIGSTOP)
    try:
        store.publish(held, stage, key, {"result": held.token})
        note(store, f"published {stage} {number}")
    except ClaimLostError:
        note(store, f"refused {stage} {number}")


def first(store: Store, name: str) -> bool:
    """Whether no process was here before."""
    try:
        (store.root.parent / name).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def note(store: Store, line: str) -> None:
    """One write, which no other process's can cut."""
    log = os.open(store.root.parent / "log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(log, f"{line}\n".encode())
    os.close(log)


if __name__ == "__main__":
    main()
