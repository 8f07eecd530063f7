"""The runs of a command, each judged as a whole."""

import os
from collections.abc import Mapping
from typing import Any

from paribus.checks.combinations import impossible
from paribus.checks.existing_tokenizer import with_natural_encoder
from paribus.checks.task_groups import with_tasks_of_groups
from paribus.config.arguments import Command
from paribus.config.compose import Composition, compose
from paribus.config.groups.execution import URI_VARIABLE
from paribus.config.schema import RunConfig
from paribus.config.validate import Problem, build_run, refuse


def compose_command(command: Command) -> Composition:
    """Compose and check every job of a command; ConfigurationError lists all problems of all jobs at once."""
    return compose(command, checked_run)


def checked_run(data: Mapping[str, Any]) -> RunConfig:
    """A `RunConfig` whose values can work together, from nested plain data; ConfigurationError otherwise."""
    config = build_run(_with_tracker(with_natural_encoder(with_tasks_of_groups(data))))
    if found := [Problem(path, message) for path, message in impossible(config)]:
        raise refuse(found)
    return config


def _with_tracker(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Fill `tracking.uri` from the environment where it is null."""
    tracking, uri = data.get("tracking"), os.environ.get(URI_VARIABLE)
    if not uri or not isinstance(tracking, Mapping) or tracking.get("uri", "") is not None:
        return data
    return {**data, "tracking": {**tracking, "uri": uri}}
