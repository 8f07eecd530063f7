"""What keeps a command from beginning at all: `paribus run` refuses it before anything is made, and a plan says it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from paribus.checks.command import compose_command
from paribus.cli import main
from paribus.config.arguments import parse
from paribus.errors import ConfigurationError
from paribus.pipeline.making.beginning import COMMANDS_OF_SLURM, launcher_problems, problems
from paribus.pipeline.output_root import OutputRoot
from paribus.pipeline.prepare import prepare
from paribus.pipeline.prepared_run import PreparedRun
from support.finished_runs import finish

BASE = ("scale=tiny", "corpus=pydocs_small", "tracking=none")
SLURM = ("-m", "seed=0,1", "hydra/launcher=submitit_slurm")


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Lets these be all that the shell finds."""

    def found(*names: str) -> None:
        directory = tmp_path / "bin"
        directory.mkdir()
        for name in names:
            (directory / name).touch(0o755)
        monkeypatch.setenv("PATH", str(directory))

    return found


def prepared(root: Path | str, *overrides: str) -> list[PreparedRun]:
    return prepare(compose_command(parse([*BASE, f"root={root}", *overrides])), tolerate_missing=True)


def test_a_plan_says_of_a_root_what_run_says_as_it_refuses(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [*BASE, "root=/proc/nope"]
    assert main(["plan", *arguments]) == 1
    planned = "".join(capsys.readouterr().out.splitlines()[-1:])
    assert main(["run", *arguments]) == 2
    (refused,) = capsys.readouterr().err.splitlines()
    assert refused.startswith("paribus run: root: '/proc/nope' cannot hold an output root (")
    assert planned == f"paribus run could not begin: {refused.removeprefix('paribus run: ')}"


@pytest.mark.parametrize(
    ("here", "absent"),
    [((), "srun and sbatch are not here"), (("srun",), "sbatch is not here"), (COMMANDS_OF_SLURM, None)],
)
def test_slurm_takes_jobs_only_where_its_commands_are(
    here: tuple[str, ...], absent: str | None, commands: Callable[..., None], tmp_path: Path
) -> None:
    commands(*here)
    found = [f"{path}: {message}" for path, message in problems(prepared(tmp_path / "root", *SLURM))]
    assert len(found) == (absent is not None)
    assert not absent or (found[0].startswith("hydra/launcher: submitit_slurm submits to SLURM") and absent in found[0])


def test_a_command_without_slurm_is_refused_and_makes_nothing(commands: Callable[..., None], tmp_path: Path) -> None:
    commands()
    composition = compose_command(parse([*BASE, f"root={tmp_path}/root", *SLURM]))
    with pytest.raises(ConfigurationError, match="hydra/launcher: submitit_slurm submits to SLURM"):
        prepare(composition)
    assert not (tmp_path / "root").exists()


def test_what_is_done_needs_neither_a_launcher_nor_room(
    commands: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands()
    (run,) = prepared(tmp_path / "root", *SLURM[2:])
    assert len(list(launcher_problems([run]))) == 1
    finish(run, 0, tmp_path / "made")
    monkeypatch.setattr(OutputRoot, "unwritable", lambda self: "cannot hold an output root")
    assert list(problems([run])) == []
