"""Whether the Hugging Face hub can be asked at all, before its libraries try for half a minute a file."""

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit
from urllib.request import getproxies

PAUSES = (1.0, 2.0)
"""Seconds between looks for the hub's address where nobody answers: a network that is slow or comes back has them."""


@contextmanager
def cache_alone_without_network() -> Iterator[None]:
    """Within, the libraries take what is in their cache and ask nobody, where the hub's name has no address here.

    They repeat each question five times, 23 s in all, before they look there. A hub that has an address and is slow is
    waited for as they do, and so is one behind a proxy, which looks for the address itself.
    """
    import datasets
    from huggingface_hub import constants

    if _has_address(constants.ENDPOINT):
        yield
        return
    # Both read the variable HF_HUB_OFFLINE when they are imported, and these when something is asked of them.
    before = constants.HF_HUB_OFFLINE, datasets.config.HF_HUB_OFFLINE
    constants.HF_HUB_OFFLINE = datasets.config.HF_HUB_OFFLINE = True
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE, datasets.config.HF_HUB_OFFLINE = before


def _has_address(endpoint: str) -> bool:
    if getproxies().keys() & {"https", "http", "all"}:
        return True
    for pause in (*PAUSES, None):
        try:
            socket.getaddrinfo(urlsplit(endpoint).hostname, None)
        except OSError as error:
            if pause is None or getattr(error, "errno", None) == socket.EAI_NONAME:
                return False
            time.sleep(pause)
        else:
            return True
    return False
