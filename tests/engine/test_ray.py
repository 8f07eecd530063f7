"""Every engine: the same bytes of every stage that maps over shards, and the same map whatever happens to workers."""

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest

from paribus.config.groups.execution import LocalEngineConfig, RayEngineConfig
from paribus.engine import Engine
from paribus.engine.local import check_engine, open_engine
from paribus.errors import DataError, InfrastructureError
from support.engine_functions import Task, die_at_five, die_once_at_five, refuse_five, slow_square, square
from support.engines import ArtefactsByEngine

TESTS = Path(__file__).resolve().parents[1]
ARTEFACTS = (
    "corpus",
    "corpus.pydocs",
    "vocabulary",
    "tokens",
    "vocabulary.spans",
    "tokens.spans",
    "embeddings",
    "neighbours",
    "duplicates",
    "lexical_neighbours",
    "order",
    "contexts",
)
on_ray = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs ray")


@pytest.fixture(scope="module")
def ray_engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(TESTS), prepend=":")
        with open_engine(RayEngineConfig(workers=2, retries=1), tmp_path_factory.mktemp("shared")) as engine:
            yield engine


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> ArtefactsByEngine:
    with open_engine(LocalEngineConfig(workers=1), tmp_path_factory.mktemp("shared")) as engine:
        return ArtefactsByEngine(tmp_path_factory.mktemp("one"), engine).make_all()


def tasks(directory: Path, count: int = 12) -> list[Task]:
    return [Task(directory, number) for number in range(count)]


def assert_same(made: ArtefactsByEngine, expected: ArtefactsByEngine) -> None:
    for name in ARTEFACTS:
        assert made.files(name) == expected.files(name), name
        assert made.results[name] == expected.results[name], name


@pytest.mark.slow
def test_two_local_workers_make_the_bytes_of_one(undisturbed: ArtefactsByEngine, tmp_path: Path) -> None:
    with open_engine(LocalEngineConfig(workers=2), tmp_path) as engine:
        assert_same(ArtefactsByEngine(tmp_path / "two", engine).make_all(), undisturbed)


@on_ray
@pytest.mark.slow
def test_workers_of_ray_make_the_bytes_of_one_local_worker(
    undisturbed: ArtefactsByEngine, tmp_path: Path, ray_engine: Engine
) -> None:
    made = ArtefactsByEngine(tmp_path / "ray", ray_engine).make_all()
    assert_same(made, undisturbed)
    assert list((made.root / "vocabulary.work" / "counts").iterdir())
    assert list((made.root / "corpus.work" / "extracts").iterdir()) == []


@on_ray
@pytest.mark.slow
@pytest.mark.parametrize("releases_gil", [False, True])
def test_ray_gives_results_in_order_and_takes_few_items_ahead(
    tmp_path: Path, ray_engine: Engine, releases_gil: bool
) -> None:
    taken = 0

    def items() -> Iterator[Task]:
        nonlocal taken
        for task in tasks(tmp_path, 60):
            taken += 1
            yield task

    results = ray_engine.map(square, items(), releases_gil=releases_gil)
    assert next(results) == 0
    assert taken <= 2 * ray_engine.workers
    assert list(results) == [number**2 for number in range(1, 60)]
    assert ray_engine.workers == 2


@on_ray
@pytest.mark.slow
def test_an_exception_comes_back_as_it_was_and_is_not_tried_again(tmp_path: Path, ray_engine: Engine) -> None:
    some = tasks(tmp_path, 100)
    results = ray_engine.map(refuse_five, some)
    assert [next(results) for _ in range(5)] == [0, 1, 4, 9, 16]
    with pytest.raises(DataError, match=r"^five is not allowed$") as caught:
        next(results)
    assert type(caught.value) is DataError
    assert some[5].executions() == 1
    assert sum(task.executions() for task in some) < 20


@on_ray
@pytest.mark.slow
def test_a_killed_worker_costs_its_own_shard_only(tmp_path: Path, ray_engine: Engine) -> None:
    some = tasks(tmp_path)
    assert list(ray_engine.map(die_once_at_five, some)) == [number**2 for number in range(12)]
    assert [task.executions() for task in some] == [1, 1, 1, 1, 1, 2, 1, 1, 1, 1, 1, 1]


@on_ray
@pytest.mark.slow
def test_a_shard_that_kills_every_worker_ends_the_map_and_is_named(tmp_path: Path, ray_engine: Engine) -> None:
    some = tasks(tmp_path)
    with pytest.raises(InfrastructureError, match=r"(?s)engine.retries=1: 2 workers died .*number=5"):
        list(ray_engine.map(die_at_five, some))
    assert some[5].executions() == 2


@on_ray
@pytest.mark.slow
def test_workers_end_with_a_map_that_nobody_reads_on(tmp_path: Path, ray_engine: Engine) -> None:
    some = tasks(tmp_path, 50)
    results = ray_engine.map(slow_square, some)
    assert next(results) == 0
    results.close()  # type: ignore[attr-defined]
    begun = sum(task.executions() for task in some)
    assert begun <= 4
    # The cores are free for the next map at once, which would otherwise wait for those.
    assert list(ray_engine.map(square, some[:3])) == [0, 1, 4]
    assert sum(task.executions() for task in some[3:]) <= 1


def test_ray_that_is_not_installed_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert check_engine(LocalEngineConfig()) == []
    ((path, message),) = check_engine(RayEngineConfig())
    assert path == "engine.kind"
    assert "pip install 'paribus[ray]'" in message
