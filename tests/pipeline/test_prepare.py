"""What keeps a command from beginning: no root, no scheduler, no device. Refused before anything is made."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from paribus.checks import compose_command
from paribus.config.arguments import parse
from paribus.config.groups.evaluation import EvaluationConfig, ScrollsFinetuning
from paribus.config.groups.execution import LocalEngineConfig, SweepConfig
from paribus.config.groups.ordering import MiniLMEmbedder, NearestOrdering, NeighboursConfig
from paribus.config.groups.tokenization import PredictiveEntropyPretokenizer
from paribus.config.groups.training import TrainingConfig
from paribus.config.schema import RunConfig
from paribus.engine.gpus import Gpu
from paribus.errors import ConfigurationError
from paribus.pipeline import devices
from paribus.pipeline.devices import Devices
from paribus.pipeline.graph import build_graph
from paribus.pipeline.prepare import describe_sweep, prepare_runs
from paribus.pipeline.records import read_run_record
from paribus.pipeline.root import OutputRoot, run_id
from paribus.pipeline.run import JobFunction
from paribus.store.provenance import loaded_code
from support.nvidia_smi import list_gpus
from support.plans import TRAINING, planned_run, store_record
from support.run_config import run_config


def found(root: Path, seen: int, **groups: object) -> dict[str, str]:
    """Problems by path where each library sees so many devices."""
    config = run_config(root=str(root), **({"training": TRAINING} | groups))
    nodes = build_graph(config, root / "cache", tolerate_missing=True)
    return dict(Devices(lambda: seen).check(config, nodes))


SHARED: dict[str, object] = {"processes": 0, "parallel": "fsdp", "global_batch": 12}


def training(**fields: object) -> dict[str, TrainingConfig]:
    return {"training": replace(TRAINING, **fields)}  # type: ignore[arg-type]


def encoded(embedder: MiniLMEmbedder) -> dict[str, object]:
    """A run that needs the embeddings of an encoder."""
    return {"ordering": NearestOrdering(), "embedder": embedder}


ABSENT: tuple[tuple[dict[str, object], int, str], ...] = (
    (training(device="cuda"), 0, "training.device"),
    ({"evaluation": EvaluationConfig(device="cuda:2")}, 2, "evaluation.device"),
    (
        {"ordering": NearestOrdering(), "neighbours": NeighboursConfig(device="gpu", index="flat")},
        0,
        "neighbours.device",
    ),
    (training(device="cuda", processes=4), 2, "training.processes"),
    (training(device="cuda", processes=0), 3, "training.global_batch"),
    (training(**SHARED, device="cuda", shard_processes=2), 3, "training.shard_processes"),
    (training(**SHARED, shard_processes=2), 0, "training.shard_processes"),
    (training(nodes=0), 0, "training.nodes"),
    ({"evaluation": EvaluationConfig(device="cuda:1", processes=2)}, 2, "evaluation.processes"),
    (encoded(MiniLMEmbedder(precision="tf32", device="cpu")), 2, "embedder.precision"),
    ({"pretokenizer": PredictiveEntropyPretokenizer(model=".", device="cuda:1")}, 1, "pretokenizer.device"),
    (training(device="cuda") | {"finetuning": ScrollsFinetuning(tasks=(), processes=3)}, 2, "finetuning.processes"),
)
"""Groups of a run, devices that each library sees, and the field that is refused."""
PRESENT: tuple[tuple[dict[str, object], int], ...] = (
    (training(device="cuda:1"), 2),
    (training(**SHARED, device="cuda", shard_processes=3), 6),
    (training(device="cuda", processes=4), 4),
    ({"evaluation": EvaluationConfig(device="cuda", processes=2)}, 2),
    ({"evaluation": EvaluationConfig(device="cpu", processes=9)}, 2),
    ({"embedder": MiniLMEmbedder(precision="tf32")}, 0),
    (encoded(MiniLMEmbedder(precision="tf32", device="cuda")), 1),
    ({"neighbours": NeighboursConfig(device="gpu")}, 0),
)


def test_absent_devices_are_refused_by_their_path_and_others_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SLURM_JOB_NODELIST", "SLURM_JOB_NUM_NODES"):
        monkeypatch.delenv(name, raising=False)
    for groups, seen, path in ABSENT:
        assert list(found(tmp_path, seen, **groups)) == [path], groups
    for groups, seen in PRESENT:
        assert found(tmp_path, seen, **groups) == {}, groups


THREE = [Gpu(str(number), f"GPU-{number}") for number in range(3)]


def test_auto_counts_the_gpus_of_pytorch_where_the_driver_lists_some(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    list_gpus(THREE, tmp_path, monkeypatch)
    paths = {4: ["training.processes"], 0: ["training.global_batch"], 3: ["training.global_batch"], 1: []}
    for processes, expected in paths.items():
        assert list(found(tmp_path, 3, **training(device="auto", processes=processes))) == expected, processes


@pytest.mark.parametrize("device", ["auto", "cpu"])
def test_auto_is_no_cpu_where_the_driver_has_gpus(device: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A PyTorch built for CPUs, or for a newer driver: refused before the first stage, with both versions."""
    list_gpus(THREE, tmp_path, monkeypatch)
    monkeypatch.setattr(devices, "pytorch_build", lambda: ("2.11.0+cpu", None))
    problems = found(tmp_path, 0, **training(device=device), evaluation=EvaluationConfig(device=device))
    assert list(problems) == ([] if device == "cpu" else ["training.device", "evaluation.device"])
    for message in problems.values():
        assert "whose driver (580.65.06) lists 3 GPUs: PyTorch 2.11.0+cpu is built without CUDA" in message


BY_BUS = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}


@pytest.mark.parametrize(("seen", "visible"), [(3, {"CUDA_VISIBLE_DEVICES": "0,1"} | BY_BUS), (0, {})])
def test_a_stage_takes_gpus_only_where_pytorch_sees_them(
    seen: int, visible: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(devices, "visible_gpus", lambda: THREE)
    monkeypatch.setattr(devices, "visible_devices", lambda: seen)
    engine = LocalEngineConfig(gpu_locks=str(tmp_path / "locks"))
    config = run_config(root=str(tmp_path), engine=engine, **training(device="auto", processes=2))
    with devices.reserve_gpus("training", config, print) as environment:
        assert environment == visible
    assert (tmp_path / "locks").exists() == bool(visible)


def test_a_finished_stage_needs_no_device(tmp_path: Path) -> None:
    run = planned_run(tmp_path, training=replace(TRAINING, device="cuda"))
    assert len(list(Devices(lambda: 0).check(run.job.config, run.nodes))) == 1
    store_record(run, "training", {})
    assert list(Devices(lambda: 0).check(run.job.config, run.nodes)) == []


ON_CUDA = ("scale=tiny", "corpus=pydocs_small", "tracking=none", "training.device=cuda")


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> Callable[[], Devices]:
    """A machine without GPUs, also where it has some."""
    absent: Callable[[], Devices] = lambda: Devices(lambda: 0)  # noqa: E731
    for module in ("paribus.pipeline.prepare.Devices", "paribus.pipeline.devices.Devices"):
        monkeypatch.setattr(module, absent)
    return absent


def test_a_sweep_here_is_refused_and_makes_nothing(tmp_path: Path, bare: Callable[[], Devices]) -> None:
    composed = compose_command(parse(["-m", *ON_CUDA, f"root={tmp_path}/root", "hydra/launcher=joblib"]))
    with pytest.raises(ConfigurationError, match=r"training\.device: cuda is asked for"):
        prepare_runs(composed)
    assert not (tmp_path / "root/artifacts").exists()


@pytest.mark.parametrize("launcher", ["submitit_slurm", "ray"])
@pytest.mark.parametrize("multirun", [["-m"], []])
def test_jobs_that_run_elsewhere_are_not_judged_by_this_machine(
    multirun: list[str], launcher: str, tmp_path: Path, bare: Callable[[], Devices], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A single job too: its launcher takes that as it takes those of a sweep, and its record says so."""
    monkeypatch.setattr("paribus.pipeline.prepare.COMMANDS_OF_SLURM", ())
    composed = compose_command(parse([*multirun, *ON_CUDA, f"root={tmp_path}/root", f"hydra/launcher={launcher}"]))
    (run,) = prepare_runs(composed)
    assert describe_sweep(composed, [run]).launcher == launcher


def test_a_job_refuses_first_where_its_machine_lacks_the_device(tmp_path: Path, bare: Callable[[], Devices]) -> None:
    composed = compose_command(parse([*ON_CUDA, f"root={tmp_path}/root"]))
    sweep = SweepConfig(id="0" * 16, name="s", invocation="i", jobs=1, launcher="submitit_slurm")
    config: RunConfig = replace(composed.jobs[0].config, sweep=sweep)
    JobFunction(loaded_code())(config)
    layout = OutputRoot.of(config)
    record = read_run_record(layout.run(run_id(build_graph(config, layout.cache))))
    assert record is not None
    assert record["failure"]["class"] == "configuration"
    assert record["failure"]["message"].startswith("training.device: cuda is asked for")
    assert not any((layout.path / "artifacts").glob("*/*/record.json"))
