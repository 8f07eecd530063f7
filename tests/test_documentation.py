"""Documentation that is run: every command is composed, every Python block executed, every verb and link exists."""

import gzip
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from paribus.cli import VERBS, main
from paribus.commands import clean, export, rerun
from paribus.commands.tokens_encode import OPTIONS
from paribus.config.arguments import parse, read_options
from paribus.config.explain import describe
from paribus.pipeline.prepare import prepare_runs
from paribus.pipeline.prepared import undeclared
from paribus.pipeline.records import is_reference
from paribus.tokenization import Tokenizer
from paribus.tokenization.encoded_corpus import EncodedCorpusWriter
from paribus.tracking import sync
from support.experiments import ACTIONS, composition_of, overrides_of, words_of

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted(
    [*(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")), *(ROOT / "docs").glob("*.md")]
)
COMPOSED = ("run", "plan", "status", "report")


PYTHON_PAGES = [page for page in PAGES if "```python" in page.read_text(encoding="utf-8")]
SHELLS = ("bash", "console", "sh", "")
IN_COSTS = "costs.md"
"""Its commands have a test that compares what they cost."""


def blocks(page: Path, *languages: str) -> Iterator[str]:
    """Bodies of the fenced blocks in these languages."""
    opened, body = None, list[str]()
    for line in page.read_text(encoding="utf-8").splitlines():
        fence = line.startswith("```")
        if fence and opened is None:
            opened, body = line.removeprefix("```").strip(), []
        elif fence:
            if opened in languages:
                yield "\n".join(body) + "\n"
            opened = None
        else:
            body.append(line)


def commands() -> list[tuple[str, str]]:
    """Every command of a block of shell, written inline or in the Makefile, by the name of its page.

    Those of the heads of experiment files have tests of their own.
    """
    found = of_makefile()
    for page in PAGES:
        for block in blocks(page, *SHELLS):
            joined = block.replace("\\\n", " ")
            found += [(page.name, line.strip()) for line in joined.splitlines() if "paribus " in line]
        if page.name != IN_COSTS:
            inline = re.findall(r"(?<!`)`(paribus [a-z]+ [^`]*)`(?!`)", page.read_text(encoding="utf-8"))
            found += [(page.name, line.replace("\n", " ").replace(" ...", "")) for line in inline]
    return found


def of_makefile() -> list[tuple[str, str]]:
    """Commands that targets run, and those that they name in quotes as the next ones."""
    lines = re.findall(r"\$\(BIN\)/(paribus [a-z]+ .*?)\"?\n", (ROOT / "Makefile").read_text(encoding="utf-8"))
    return [("Makefile", line.replace("\\$$", "$")) for line in lines]


NAMING_VERBS = ("status", "report")
"""Verbs that take a name, or nothing, in place of overrides."""
OTHERS: dict[str, Callable[[list[str]], object]] = {
    "sync": lambda words: read_options([word.strip("[]") for word in words], sync._OPTIONS),
    "rerun": rerun._parse,
    "explain": lambda words: main(["explain", *(word for word in words if not word.isupper())]),
    "export": export.parse,
    "clean": clean.parse,
}
"""What reads the arguments of verbs without a configuration."""


@pytest.mark.parametrize(("page", "line"), commands())
def test_every_documented_command_exists_composes_and_compares_what_is_equal_otherwise(page: str, line: str) -> None:
    for part in line.split("&&"):
        words = words_of(part)
        if not words:
            continue
        assert words[0] in VERBS or words[0].startswith("--"), f"{page}: {line}"
        if words[0] in OTHERS:
            assert OTHERS[words[0]](words[1:]) != 2
            continue
        if words[:2] == ["tokens", "encode"] and "--text" not in words:
            assert read_options(words[3:], OPTIONS) is not None
            continue
        command = parse(overrides_of(words), words[0])
        if words[0] in NAMING_VERBS and (not command.overrides or any(map(is_reference, command.overrides))):
            assert sum(map(is_reference, command.overrides)) <= 1
            more = [word for word in command.overrides if not is_reference(word) and not word.startswith("root=")]
            assert all(word.startswith("experiment.table.") for word in more)
            assert composition_of(*(f"+{word}" for word in more)).jobs
            continue
        if words[0] in COMPOSED and not command.shows:
            composition = composition_of(*overrides_of(words), verb=words[0])
            assert undeclared(prepare_runs(composition, tolerate_missing=True)) is None
        elif words[0] in ("orders", *ACTIONS) and not command.shows:
            assert composition_of(*overrides_of(words), verb=words[0]).jobs


@pytest.fixture
def surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """What the pages speak of without making it: texts, tokenizers, an encoded corpus, files of those names."""
    monkeypatch.chdir(tmp_path)
    texts = ["all else being equal, and nothing else"] * 3
    bpe, scaffold = (
        Tokenizer.train(texts, algorithm=kind, vocab_size=270, special_tokens=["<e>"])  # type: ignore[arg-type]
        for kind in ("bpe", "scaffold_bpe")
    )
    bpe.save("my_tokenizer")
    Path("gold.txt.gz").write_bytes(gzip.compress("我们 在 这里\n".encode()))
    with EncodedCorpusWriter(tmp_path / "tokens", bpe) as writer:
        ids = bpe.encode(texts[0])
        writer.append(ids, np.array([len(ids)]), np.array([len(texts[0])]))
    items = [("boolq", "acc", False, "test/1", "bpe", 1.0)]
    names = ["task", "metric", "left_out", "item", "tokenizer", "value"]
    pd.DataFrame(items, columns=names).to_parquet("items.parquet")
    return {"texts": texts, "tok": bpe, "bpe": bpe, "scaffold": scaffold, "path": tmp_path / "tokens"}


@pytest.mark.parametrize("page", PYTHON_PAGES, ids=lambda page: page.name)
def test_the_python_examples_of_a_page_run(page: Path, surroundings: dict[str, object]) -> None:
    examples = list(blocks(page, "python"))
    assert examples
    for example in examples:
        exec(compile(example, page.name, "exec"), surroundings)


NAMING = [*PAGES, ROOT / "tests" / "data" / "README.md", *sorted((ROOT / "experiments").rglob("*.yaml"))]


def test_every_file_target_and_link_that_is_named_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
    missing = []
    for page in NAMING:
        text = page.read_text(encoding="utf-8")
        files = re.findall(r"(?<![\w./])((?:benchmarks|conf|docker|experiments|src|tests)/[\w/.-]+\.(?:py|yaml))", text)
        missing += [(page.name, file) for file in files if not (ROOT / file).is_file()]
        missing += [(page.name, name) for name in re.findall(r"[`(]make ([a-z-]+)[`)]", text) if name not in targets]
        links = re.findall(r"\]\(([^)#\s]+)", text) if page.suffix == ".md" else []
        missing += [(page.name, link) for link in links if "://" not in link and not (page.parent / link).exists()]
    assert missing == []


def test_the_configuration_reference_is_what_the_code_declares() -> None:
    written = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    assert written == describe(), "run: python -m paribus.config.explain > docs/configuration.md"
