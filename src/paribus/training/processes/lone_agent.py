"""Where the agent of a single node meets nobody: its processes find each other at a port that is free."""

from typing import Any

from torch.distributed import PrefixStore, TCPStore  # type: ignore[attr-defined]
from torch.distributed.elastic.rendezvous import (
    RendezvousHandler,
    RendezvousInfo,
    RendezvousParameters,
    RendezvousStoreInfo,
    rendezvous_handler_registry,
)

from paribus.training.fit.device import COLLECTIVE

BACKEND = "paribus_alone"
HOST = "127.0.0.1"


class LoneAgent(RendezvousHandler):
    """As a backend of PyTorch; its own for one node asks Python who called it, which takes it up to seconds."""

    def __init__(self, run_id: str) -> None:
        self._run_id = run_id
        self._store: TCPStore | None = None

    def get_backend(self) -> str:
        """Its name in PyTorch's registry."""
        return BACKEND

    @property
    def use_agent_store(self) -> bool:
        """Processes meet in the store of the agent, and none opens one of its own."""
        return True

    def next_rendezvous(self) -> RendezvousInfo:
        """The store, at a port that the system chose, with this agent as the first of one."""
        if self._store is None:
            self._store = TCPStore(HOST, 0, world_size=1, is_master=True, timeout=COLLECTIVE)
        where = RendezvousStoreInfo(HOST, self._store.port)
        return RendezvousInfo(PrefixStore(self._run_id, self._store), rank=0, world_size=1, bootstrap_store_info=where)

    def is_closed(self) -> bool:
        """Never: nobody else could close it."""
        return False

    def set_closed(self) -> None:
        """Nothing."""

    def num_nodes_waiting(self) -> int:
        """None ever."""
        return 0

    def get_run_id(self) -> str:
        """Of the job."""
        return self._run_id

    def shutdown(self) -> bool:
        """True: nothing is open but the store, which goes with this."""
        return True


def alone() -> dict[str, Any]:
    """What PyTorch's agent is told of how it meets others, where there are none."""
    rendezvous_handler_registry.register(BACKEND, _made)
    return {"rdzv_backend": BACKEND, "rdzv_endpoint": HOST}


def _made(given: RendezvousParameters) -> LoneAgent:
    return LoneAgent(given.run_id)
