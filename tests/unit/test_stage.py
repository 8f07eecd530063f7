"""The hub without a network: said soon, and what is in the cache is still had."""

import socket
import time

import datasets
import pytest
from huggingface_hub import constants

from paribus.config.groups.corpus import HuggingFaceCorpus
from paribus.corpus.datasets import HuggingFaceSource
from paribus.errors import DataError, InfrastructureError
from paribus.evaluation.data_files import load_data_set
from paribus.ordering.embedding_files import _fetched
from paribus.stage import PAUSES, cache_alone_without_network


@pytest.fixture(name="looks")
def _looks(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A machine without a network, and how long was waited between looks for an address."""
    waited: list[float] = []

    def unknown(*arguments: object) -> None:
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    for name in ("https_proxy", "http_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    monkeypatch.setattr(time, "sleep", waited.append)
    return waited


def offline() -> tuple[bool, bool]:
    return constants.HF_HUB_OFFLINE, datasets.config.HF_HUB_OFFLINE


def test_without_an_address_the_cache_alone_is_asked(looks: list[float]) -> None:
    with cache_alone_without_network():
        assert offline() == (True, True)
    assert offline() == (False, False)
    assert looks == list(PAUSES)


def test_what_is_not_in_the_cache_is_named_after_looking_for_an_address(looks: list[float]) -> None:
    with pytest.raises(DataError, match="neither reachable nor in the Hugging Face cache"):
        load_data_set("owner/name", "mine", "owner/name-that-is-nowhere", split="train")
    with pytest.raises(InfrastructureError, match="cannot be fetched"):
        HuggingFaceSource(HuggingFaceCorpus(name="owner/name-that-is-nowhere", revision="0" * 40))
    with pytest.raises(DataError, match="cannot be fetched"):
        _fetched("owner/name-that-is-nowhere", "0" * 40)
    assert looks == [*PAUSES] * 3
    assert offline() == (False, False)
