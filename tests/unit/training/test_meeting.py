"""How the agents of several nodes meet, each here a process of its own on this machine."""

import json
import os
import socket
from pathlib import Path

from torch.distributed import PrefixStore, TCPStore
from torch.distributed.elastic.rendezvous import RendezvousParameters
from torch.distributed.elastic.rendezvous.registry import get_rendezvous_handler

from paribus.training.launch import meeting_alone
from support.forked import Forked

AGENT = """
import sys
from pathlib import Path
from paribus.training.launch import run_node

run_node(Path(sys.argv[1]), int(sys.argv[2]), "member_of_a_node")
"""
MEMBER = """
import os, sys
from pathlib import Path

def main():
    (Path(sys.argv[1]) / f"rank_{os.environ['RANK']}").write_text(Path(sys.argv[2]).name)
"""


def test_the_main_process_is_on_the_first_node_whichever_agent_is_there_first(tmp_path: Path) -> None:
    """Its reports are read there while it writes; a network file system may show them to other nodes much later."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        endpoint = f"127.0.0.1:{free.getsockname()[1]}"
    job = {
        "id": "a",
        "endpoint": endpoint,
        "nodes": 2,
        "processes_a_node": 1,
        "config": {"training": {"device": "cpu", "deterministic": False}},
    }
    (tmp_path / "job.json").write_text(json.dumps(job))
    (tmp_path / "agent.py").write_text(AGENT)
    (tmp_path / "member_of_a_node.py").write_text(MEMBER)
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    # By their numbers, which PyTorch may take to tell nodes of one name apart, node 1 is first.
    agents = [Forked([str(tmp_path / "agent.py"), str(tmp_path), str(node)], env=environment) for node in (1, 0)]
    for agent in agents:
        _, errors = agent.communicate(timeout=120)
        assert agent.wait() == 0, errors
    found = {path.name: path.read_text() for path in tmp_path.glob("rank_*")}
    assert found == {"rank_0": "requests_0", "rank_1": "requests_1"}


def test_agents_that_are_alone_have_a_store_each_at_a_port_that_is_free() -> None:
    how = meeting_alone()
    parameters = RendezvousParameters(how["rdzv_backend"], how["rdzv_endpoint"], "a", 1, 1)
    handlers = [get_rendezvous_handler(parameters) for _ in range(2)]
    assert all(handler.use_agent_store for handler in handlers)
    found = [handler.next_rendezvous() for handler in handlers]
    assert [(one.rank, one.world_size) for one in found] == [(0, 1)] * 2
    where = [one.bootstrap_store_info for one in found]
    assert where[0] is not None and where[1] is not None and where[0].master_port != where[1].master_port
    found[0].store.set("who", "the first")
    member = TCPStore(where[0].master_addr, where[0].master_port, is_master=False)
    assert PrefixStore("a", member).get("who") == b"the first"
    assert not found[1].store.check(["who"])
    # Asked again, as after processes have failed, it is the same place.
    again = handlers[0].next_rendezvous().bootstrap_store_info
    assert again is not None and again.master_port == where[0].master_port
