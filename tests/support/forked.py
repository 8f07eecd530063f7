"""Work in forks of the test's process."""

import os
import sys
from collections.abc import Callable


def in_fork(action: Callable[[], object]) -> int:
    """Run `action` in a fork of this process; its wait status."""
    child = os.fork()
    if child == 0:
        try:
            action()
        except BaseException as error:
            sys.__stderr__.write(f"{type(error).__name__}: {error}\n")  # type: ignore[union-attr]
            os._exit(3)
        os._exit(0)
    return os.waitpid(child, 0)[1]
