"""Which directory `start` means: that of one checkpoint, ours or of Hugging Face."""

from pathlib import Path

from paribus.config.groups.model import CheckpointStart
from paribus.errors import DataError
from paribus.store.artifacts import Store
from paribus.store.files import RUN_RECORD, read_object
from paribus.training.state.file_names import STEP_NAME, checkpoint_directories

CONFIG = "config.json"


def checkpoint_directory(start: CheckpointStart) -> Path:
    """The directory with `config.json` and weights. DataError naming what is not there and what is."""
    if start.run is not None:
        where = f"start.run={start.run}"
        path = _run(start.run, Path(start.root).expanduser() / "runs", where)
    else:
        where, path = f"start.path={start.path}", Path(start.path or "").expanduser()
    if not path.is_dir():
        raise DataError(f"{where}: no such directory")
    if (path / RUN_RECORD).is_file():
        path = _artefact(path, where)
    steps = checkpoint_directories(path)
    if steps:
        return steps[_chosen(list(steps), start.step, where)]
    if not (path / CONFIG).is_file():
        raise DataError(f"{where}: neither {CONFIG} nor step_* directories in it, so it is no checkpoint")
    return _only(path, start.step, where)


def _run(name: str, runs: Path, where: str) -> Path:
    """The directory of the run of this identifier, or of the only one whose identifier begins so."""
    if (runs / name / RUN_RECORD).is_file():
        return runs / name
    begun = sorted(path.parent for path in runs.glob(f"*/{RUN_RECORD}") if path.parent.name.startswith(name))
    if len(begun) > 1:
        raise DataError(f"{where}: may be any of {', '.join(path.name for path in begun)}; give more of its id")
    if not begun:
        raise DataError(f"{where}: no run of that id below {runs.resolve()}; start.root names the output root")
    return begun[0]


def _artefact(run: Path, where: str) -> Path:
    """The artefact `training` of a recorded run."""
    stages = read_object(run / RUN_RECORD).get("stages")
    if not isinstance(stages, dict) or "training" not in stages:
        raise DataError(f"{where}: the run has trained nothing yet (paribus status shows why)")
    root = run.resolve().parents[1]
    found = Store(root / "artifacts").find("training", str(stages["training"]["key"]))
    if found is None or not found.whole:
        how = "were removed; paribus rerun makes them again" if found else f"are no longer below {root}; run it again"
        raise DataError(f"{where}: its checkpoints {how}")
    return found.path


def _chosen(steps: list[int], step: int | None, where: str) -> int:
    if step is not None and step not in steps:
        listed = ", ".join(map(str, steps))
        raise DataError(f"start.step={step}: no such checkpoint of {where}; there are those of steps {listed}")
    return steps[-1] if step is None else step


def _only(path: Path, step: int | None, where: str) -> Path:
    name = STEP_NAME.fullmatch(path.name)
    if step is not None and (name is None or int(name[1]) != step):
        raise DataError(f"start.step={step}: {where} is a single checkpoint; leave start.step out")
    return path
