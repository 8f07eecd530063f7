"""Stages name functions that are there; the hub without a network is given up soon, and its cache is read."""

import socket
import time
from functools import partial
from importlib.util import find_spec
from pkgutil import resolve_name

import datasets
import pytest
from huggingface_hub import constants

from paribus.config.groups.corpus import HuggingFaceCorpus
from paribus.config.groups.ordering import TransformersEmbedder
from paribus.corpus.datasets import HuggingFaceSource
from paribus.errors import DataError, InfrastructureError
from paribus.evaluation.data_files import load_data_set
from paribus.ordering.embedding_files import embedder_directory
from paribus.pipeline.graph import STAGES
from paribus.stage import PAUSES, Stage, cache_alone_without_network


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


def test_data_sets_absent_from_the_cache_are_named_without_a_network(looks: list[float]) -> None:
    with pytest.raises(DataError, match="neither reachable nor in the Hugging Face cache"):
        load_data_set("owner/name", "mine", "owner/name-that-is-nowhere", split="train")
    with pytest.raises(InfrastructureError, match="cannot be fetched"):
        HuggingFaceSource(HuggingFaceCorpus(name="owner/name-that-is-nowhere", revision="0" * 40))
    with pytest.raises(DataError, match="cannot be fetched"):
        embedder_directory(TransformersEmbedder(path="owner/name-that-is-nowhere", revision="0" * 40))
    assert looks == [*PAUSES] * 3
    assert offline() == (False, False)


@pytest.mark.parametrize("stage", STAGES.values(), ids=lambda stage: stage.name)
def test_the_functions_and_imports_of_every_stage_exist(stage: Stage) -> None:
    functions = [stage.build, *([stage.outside.fingerprint] if stage.outside else [])]
    for function in functions:
        if isinstance(function, partial):
            assert callable(resolve_name(function.args[0]))
    assert all(find_spec(module) for module in stage.imports)
