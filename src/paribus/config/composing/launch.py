"""What Hydra does itself with a command: launch its jobs, and print what it is asked to show."""

import sys
from collections.abc import Callable, Sequence
from typing import Any

import hydra
from hydra._internal.callbacks import Callbacks
from hydra.core.plugins import Plugins
from hydra.types import HydraContext, RunMode
from omegaconf import DictConfig, OmegaConf

from paribus.config.arguments import Command, override_key
from paribus.config.composing.composer import values_of
from paribus.config.composing.plain import Build, plain
from paribus.config.composing.session import initialized
from paribus.config.reference.files import configuration_directory
from paribus.config.schema import RunConfig


def run_with_hydra(
    command: Command, jobs: Sequence[Sequence[str]], build: Build, function: Callable[[RunConfig], None]
) -> None:
    """Call `function(config)` once a job, given as its overrides, with the launcher that the command names.

    `build` makes and checks the configuration where the job runs, as it did for the command.

    A launcher may send `function` to other processes and machines. Whatever goes wrong there is raised, also where
    only one of several jobs was lost.
    """

    def task(cfg: DictConfig) -> None:
        function(build(plain(values_of(cfg))))

    with initialized(command) as hydra_app:
        loader = hydra_app.config_loader
        # Of the first job: settings of the launcher are those of the command, and so of all its jobs.
        config = loader.load_configuration("config", list(jobs[0]), RunMode.MULTIRUN)
        # The launcher adds those of Hydra itself again.
        own = [[text for text in job if not override_key(text).startswith(("hydra.", "hydra/"))] for job in jobs]
        callbacks = Callbacks(config)
        callbacks.on_multirun_start(config=config, config_name="config")
        launcher = Plugins.instance().instantiate_launcher(
            hydra_context=HydraContext(config_loader=loader, callbacks=callbacks), task_function=task, config=config
        )
        most = OmegaConf.select(config, "hydra.sweeper.max_batch_size") or len(jobs)
        for first in range(0, len(jobs), most):
            returned = launcher.launch(own[first : first + most], initial_job_idx=first)
            # Reading a value raises what the job raised; launchers themselves keep silent about that.
            _ = [job.return_value for job in returned]
        callbacks.on_multirun_end(config=config, config_name="config")


def show_with_hydra(command: Command) -> None:
    """Hydra's own --help, --cfg, --info, shell completion: print and return."""
    _with_arguments(command.shown_by_hydra, hydra.main(**_main_options(command))(lambda cfg: None))


def _main_options(command: Command) -> dict[str, Any]:
    return {"config_path": str(configuration_directory()), "config_name": "config", "version_base": "1.3"}


def _with_arguments(arguments: Sequence[str], function: Callable[[], Any]) -> None:
    saved = sys.argv
    sys.argv = ["paribus", *arguments]
    try:
        function()
    finally:
        sys.argv = saved
