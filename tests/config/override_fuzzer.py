"""Override after override, made from the schema and from what is nasty, composed in one process that may write nothing.

`python override_fuzzer.py COUNT SEED` prints one JSON object: how many overrides there were, how many commands were
composed or refused, and `wrong`, the commands of which something else came: another exception, a configuration that no
record can keep, a problem without a path, a file opened for writing, a process, a socket.
"""

import dataclasses
import json
import random
import re
import sys
from collections.abc import Iterator
from typing import Any

from paribus.checks import compose_command
from paribus.config.arguments import configuration_directory, parse
from paribus.config.identity import canonical, to_plain
from paribus.config.schema import RunConfig, dataclasses_of
from paribus.errors import ConfigurationError

TOGETHER = 20
"""Overrides of one command, each of which is judged by itself: composing costs most of a second."""
PROBLEM = re.compile(r"  .+: .+", re.DOTALL)
WRITING = (
    "os.system",
    "os.exec",
    "os.posix_spawn",
    "os.fork",
    "subprocess.Popen",
    "socket.connect",
    "pickle.find_class",
)
CHANGING = ("os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink", "os.truncate", "os.chmod")

NASTY = (
    "", " ", "null", "true", "1", "-1", "0", "1e400", "-1e400", "1e400B", "'1e400'", "nan", "inf",
    "-inf", ".inf", "[inf]", "[1,nan]", "{a:inf}", "9" * 400, "9" * 5000, "0x10", "1_000", "1B", "388GiB",
    "1e-5", "[]", "[1,2]", "[[]]", "{}", "{a:1}", "{a:{b:[1]}}", "[1", "{a:", "'", '"', "\\", "'a", "a'b", "'a,b'",
    "a,b", ",", "${seed}", "${root}", "${nothing}", "${", "${}", "${a.b", "${oc.env:HOME}", "${oc.env:NOPE,x}",
    "${now:%Y}", "${hydra:runtime.cwd}", "${oc.create:{a:1}}", "${oc.decode:'[1]'}", "${oc.select:seed}",
    "${oc.dict.keys:model}", "${${root}}", "???", "os.system", "$(touch x)", "`touch x`", "a;b", "a&&b", "|x", ">x",
    "../x", "/", "~", "~nobody/x", ".", "..", "-rf", "--help", "con", "nul", "😀", "河", "e\u0301", "\u202eabc",
    "\x00", "a\x00b", "a\nb", "_target_", "\t", "\udcff", "x" * 300, "x" * 5000, "!!python/object:os.system",
    "!function x", "*", "&a", "%s", "{0}", "a=b", "choice(1,2)", "glob(*)", "interval(0,1)", "sort(2,1)",
    "shuffle(1,2)", "tag(a,1)", "str(1)", "int(x)", "range(1,3)", "json_str(1)", "extend_list(1)", "'\x00'",
    "'../x'", "'a;b'", "'😀'", "'a\nb'", "'$(touch x)'", "' '", "'-rf'",
)  # fmt: skip
OTHER_KEYS = (
    "", "=", ".", "..", "a", "model.", ".model", "model..width", "model.width.x", "_target_", "model._target_",
    "defaults", "hydra", "hydra.launcher", "hydra/launcher", "hydra.launcher._target_",
    "hydra.callbacks.x._target_", "hydra.run.dir", "hydra.sweeper", "hydra.sweeper.params", "hydra.mode",
    "hydra.job.name", "hydra.searchpath", "hydra.output_subdir", "hydra.job_logging.handlers.x.class",
    "hydra.verbose", "model@x", "model@_global_", "@", "experiment", "sweep", "😀", "a b", "a-b", "1", "null",
    "${root}", "__class__", "model.__init__", "$(touch x)", "../x", "x" * 300, "a\x00b", "-m",
)  # fmt: skip
PREFIXES = ("", "", "", "", "+", "++", "~", "~+", "-", "--", " ")


def main(count: int, seed: int) -> None:
    chosen = random.Random(seed)
    keys = [*paths(RunConfig, ""), *groups(), *OTHER_KEYS]
    compose_command(parse(["scale=tiny"]))
    watched = watch()
    counts = {"overrides": 0, "composed": 0, "refused": 0, "problems": 0}
    wrong: list[str] = []
    while counts["overrides"] < count:
        overrides = [override(chosen, keys) for _ in range(chosen.choice((1, TOGETHER, 2 * TOGETHER)))]
        watched.append(True)
        problems = 0
        try:
            problems = attempt([text for text in overrides if not text.startswith("-")], chosen.random() < 0.3)
        except (Exception, SystemExit) as error:
            wrong.append(f"{type(error).__name__}: {str(error)[:500]}\n{overrides!a}")
        watched.clear()
        counts["overrides"] += len(overrides)
        counts["problems"] += problems
        counts["refused" if problems else "composed"] += 1
    sys.stdout.write(json.dumps({**counts, "wrong": wrong}) + "\n")


def attempt(overrides: list[str], multirun: bool) -> int:
    """Problems that were found in a command, each of which begins with a path."""
    try:
        composition = compose_command(parse(["scale=tiny", *overrides, *(["-m"] if multirun else [])]))
        assert all(canonical(to_plain(job.config)) for job in composition.jobs)
    except ConfigurationError as error:
        problems = [str(problem) for problem in error.problems]
        assert problems and all(PROBLEM.fullmatch(f"  {line}") for line in problems), (overrides, str(error))
        return len(problems)
    return 0


def override(chosen: random.Random, keys: list[str]) -> str:
    """An override: mostly a key that there is, with a value of its kind or one that is nasty; sometimes noise."""
    if chosen.random() < 0.03:
        return "".join(chosen.choice("=+~@{}[](),.:'\"\\$%é😀\x00\n ab01") for _ in range(chosen.randrange(1, 30)))
    key, value = chosen.choice(keys), chosen.choice(NASTY)
    if chosen.random() < 0.1:
        value = f"{value}{chosen.choice(NASTY)}"
    return f"{chosen.choice(PREFIXES)}{key}{chosen.choice(('=', '=', '=', '=', '', '==', ' = '))}{value}"


def paths(cls: type[Any], prefix: str) -> Iterator[str]:
    """Every path of the schema, of every choice."""
    from typing import get_type_hints

    hints = get_type_hints(cls)
    for field in dataclasses.fields(cls):
        yield f"{prefix}{field.name}"
        for choice in dataclasses_of(hints[field.name]):
            yield from paths(choice, f"{prefix}{field.name}.")


def groups() -> list[str]:
    return sorted(path.name for path in configuration_directory().iterdir() if path.is_dir())


def watch() -> list[bool]:
    """From now on, while the list is not empty, whatever would write or run something ends the process."""
    watched: list[bool] = []

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if not watched:
            return
        opened = event == "open" and isinstance(arguments[2], int) and arguments[2] & 0b11
        if opened or event.startswith((*WRITING, *CHANGING)):
            watched.clear()
            raise SystemExit(f"{event} {arguments!a}")

    sys.addaudithook(hook)
    return watched


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
