"""Whatever is typed after a verb is a configuration or an error that says where, and never does anything."""

import dataclasses
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

from paribus.checks import compose_command
from paribus.config.arguments import parse
from paribus.config.identity import to_plain
from paribus.config.schema import RunConfig, dataclasses_of
from paribus.config.validate import build_run
from paribus.errors import ConfigurationError


@pytest.mark.parametrize(("count", "seed"), [(100, 1), pytest.param(10_000, 2, marks=pytest.mark.slow)])
@pytest.mark.timeout(7200)
def test_fuzzed_overrides_compose_or_are_refused_and_touch_nothing(tmp_path: Path, count: int, seed: int) -> None:
    script = Path(__file__).with_name("override_fuzzer.py")
    command = [sys.executable, str(script), str(count), str(seed)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-5000:]
    counts = json.loads(done.stdout)
    assert counts.pop("wrong") == []
    assert counts["overrides"] >= count and counts["problems"] > count / 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_no_number_of_any_choice_of_a_group_is_infinite(value: float) -> None:
    composed = to_plain(compose_command(parse(["scale=tiny"])).jobs[0].config)
    checked = 0
    for group, hint in get_type_hints(RunConfig).items():
        for choice in dataclasses_of(hint):
            kinds = get_args(get_type_hints(choice).get("kind"))
            named = {"kind": kinds[0]} if kinds else {}
            for field in float_fields(choice):
                with pytest.raises(ConfigurationError, match=rf"{group}\.{field}: should be a finite number, not "):
                    build_run(composed | {group: named | {field: value}})
                checked += 1
    assert checked > 40


def float_fields(cls: type[Any]) -> list[str]:
    hints = get_type_hints(cls)
    return [
        field.name for field in dataclasses.fields(cls) if float in (hints[field.name], *get_args(hints[field.name]))
    ]
