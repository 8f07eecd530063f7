"""Documentation that is run: every command is composed, every Python block executed, every verb and link exists."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from paribus.cli import VERBS, main
from paribus.config.arguments import parse
from paribus.config.compose import compose_command
from paribus.config.describe import describe
from paribus.errors import ConfigurationError
from paribus.pipeline.equality import undeclared
from paribus.pipeline.prepare import prepare

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
COMPOSED = ("run", "plan", "status", "report", "doctor")
ORDER_ACTIONS = {"statistics": 0, "where": 1, "near": 1}
"""Actions of `paribus order` and how many words, the document, stand before the overrides."""


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


def overrides_of(words: list[str]) -> list[str]:
    """What Hydra is given of a command."""
    if words[0] != "order":
        return words[1:]
    return words[2 + ORDER_ACTIONS[words[1]] :]


@pytest.mark.parametrize(("page", "line"), commands())
def test_every_documented_command_exists_composes_and_compares_what_is_equal_otherwise(page: str, line: str) -> None:
    for part in line.split("&&"):
        words = arguments_of(part)
        if not words:
            continue
        assert words[0] in VERBS or words[0].startswith("--"), f"{page}: {line}"
        command = parse(overrides_of(words))
        if words[0] in COMPOSED and not command.shows:
            composition = compose_command(command)
            assert undeclared(prepare(composition, tolerate_missing=True)) is None
        elif words[0] == "order" and not command.shows:
            assert compose_command(command).jobs


@pytest.mark.parametrize("line", ["order statistics typo=1", "order where DOCUMENT typo=1", "order near '#7' typo=1"])
def test_a_mistake_in_a_documented_command_about_orders_is_found(line: str) -> None:
    with pytest.raises(ConfigurationError, match="typo"):
        test_every_documented_command_exists_composes_and_compares_what_is_equal_otherwise("a page", f"paribus {line}")


def test_no_page_says_that_statistics_of_orders_train_nothing() -> None:
    """A vocabulary is trained for them."""
    said = [line for _, line in commands() if "order statistics" in line and "#" in line]
    assert said
    assert [line for line in said if "no model is trained" not in line] == []


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


@pytest.mark.parametrize("flag", ["--help", "-h"])
@pytest.mark.parametrize("verb", ["order", "tokenize", "sync", "rerun"])
def test_verbs_without_a_configuration_print_their_own_help(
    verb: str, flag: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([verb, flag]) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith(f"usage: paribus {verb} ")
    assert captured.err == ""
