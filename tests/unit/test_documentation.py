"""Documentation that is run: every command is composed, every Python block executed, every verb and link exists."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from paribus.cli import VERBS
from paribus.config.arguments import parse
from paribus.config.compose import compose_command
from paribus.config.describe import describe
from paribus.pipeline.equality import undeclared
from paribus.pipeline.prepare import prepare

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
COMPOSED = ("run", "plan", "status", "report", "doctor")


def blocks(page: Path, language: str) -> Iterator[str]:
    yield from re.findall(rf"```{language}\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)


def commands() -> list[tuple[str, str]]:
    found = []
    for page in PAGES:
        for block in blocks(page, "(?:bash|console)"):
            joined = block.replace("\\\n", " ")
            found += [(page.name, line.strip()) for line in joined.splitlines() if "paribus " in line]
    return found


def arguments_of(line: str) -> list[str]:
    words = shlex.split(line.split(" < ", maxsplit=1)[0].split(" | ", maxsplit=1)[0], comments=True)
    while words and not words[0].endswith("paribus"):
        words.pop(0)
    return words[1:]


@pytest.mark.parametrize(("page", "line"), commands())
def test_every_documented_command_exists_composes_and_compares_what_is_equal_otherwise(page: str, line: str) -> None:
    for part in line.split("&&"):
        words = arguments_of(part)
        if not words:
            continue
        assert words[0] in VERBS or words[0].startswith("--"), f"{page}: {line}"
        command = parse(words[1:])
        if words[0] in COMPOSED and not command.shows:
            composition = compose_command(command)
            assert undeclared(prepare(composition, tolerate_missing=True)) is None


@pytest.mark.parametrize("page", ["README.md", "docs/huggingface.md"])
def test_the_python_examples_of_a_page_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    examples, names = list(blocks(ROOT / page, "python")), dict[str, object]()
    assert examples
    for example in examples:
        exec(compile(example, page, "exec"), names)


def test_the_configuration_reference_is_what_the_code_declares() -> None:
    written = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    assert written == describe(), "run: python -m paribus.config.describe > docs/configuration.md"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_relative_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_every_verb_is_in_the_readme() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert [verb for verb in VERBS if f"paribus {verb}" not in text] == []
