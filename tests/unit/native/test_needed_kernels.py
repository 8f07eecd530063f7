"""Nothing is compiled that a command or a stage does not need, and all that it needs before it begins."""

import os
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

from paribus.config.groups.ordering import OrderingConfig
from paribus.engine.local import LocalEngine
from paribus.native import announce, cache, loader
from paribus.native.registry import ENCODING, SHINGLES, TABLES, TRAVERSAL
from paribus.ordering.orders import build as order_stage
from paribus.tokenization import Tokenizer
from paribus.tokenization.learn.train import training_kernels
from support import forked
from support.command_line import OVERRIDES, command, write_corpus
from support.corpora import write_corpus as write_corpus_artefact
from support.engines import Made
from support.orders import ORDERINGS, formula_vectors, stage_context, topics, write_embeddings, write_lists

TEXTS = ["the cat sat on the mat, the dog on the log", "näive 東京 1998"] * 8


class Watched:
    """Names of the kernels that were announced and of those that were loaded."""

    def __init__(self) -> None:
        self.announced, self.loaded = set[str](), set[str]()

    def forget(self) -> None:
        """Watch from here on."""
        self.announced.clear()
        self.loaded.clear()
        loader.kernel.cache_clear()


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Watched:
    found = Watched()

    def path(name: str) -> Path:
        found.loaded.add(name)
        return cache.kernel_path(name)

    def ensure(names: Iterable[str], progress: loader.Progress | None = None) -> int:
        found.announced.update(names)
        return 0

    monkeypatch.setattr(loader, "kernel_path", path)
    monkeypatch.setattr(announce, "ensure_compiled", ensure)
    found.forget()
    return found


class WatchedStages(Made):
    """Stages, each of which must have announced what it loads."""

    watched: Watched

    def make(self, name: str, *arguments: object, **groups: object) -> None:
        self.watched.forget()
        super().make(name, *arguments, **groups)  # type: ignore[arg-type]
        assert self.watched.loaded <= self.watched.announced, name


def test_a_stage_announces_every_kernel_that_it_loads(watched: Watched, tmp_path: Path) -> None:
    stages = WatchedStages(tmp_path, LocalEngine(1))
    stages.watched = watched
    stages.everything()
    assert watched.announced == {"sum_spans", *TABLES}


@pytest.mark.parametrize("ordering", ORDERINGS, ids=[ordering.kind for ordering in ORDERINGS])
def test_an_order_announces_every_kernel_that_it_loads(
    watched: Watched, tmp_path: Path, ordering: OrderingConfig
) -> None:
    vectors = formula_vectors(60)
    neighbours = write_lists(tmp_path / "neighbours", vectors, 10)
    inputs = {
        "corpus": write_corpus_artefact(tmp_path / "corpus", topics(60)),
        "embeddings": write_embeddings(tmp_path / "embeddings", vectors),
        "neighbours": neighbours,
        "lexical_neighbours": neighbours,
    }
    order_stage.build(stage_context(tmp_path, "order", ordering, **inputs))
    assert watched.loaded <= watched.announced
    if ordering.kind == "in_context":
        assert watched.loaded == set(TRAVERSAL)
    if ordering.kind in {"standard", "sequential", "cluster"}:
        assert watched.announced == set()


@pytest.mark.parametrize("unit", ["byte", "character"])
@pytest.mark.parametrize("algorithm", ["bpe", "scaffold_bpe", "wordpiece", "unigram", "words", "bytes"])
def test_training_loads_what_its_algorithm_needs(watched: Watched, algorithm: str, unit: str) -> None:
    size = None if algorithm == "bytes" else 300
    Tokenizer.train(TEXTS, algorithm=algorithm, vocab_size=size, unit=unit, threads=2)  # type: ignore[arg-type]
    assert watched.loaded <= set(training_kernels(algorithm))  # type: ignore[arg-type]
    assert {"count_texts", "list_words"} < watched.loaded


def test_what_only_other_algorithms_need_is_not_asked_for() -> None:
    assert {"encode_documents", "train_wordpiece", "link_pairs"}.isdisjoint(training_kernels("bpe"))
    assert {"train_bpe", "count_pairs"}.isdisjoint(training_kernels("unigram"))
    assert {"train_bpe", "count_texts", "walk"}.isdisjoint(ENCODING)


@pytest.mark.parametrize("encoder", ["merge_rank", "longest_first", "left_to_right", "fewest", "dropout"])
def test_encoding_loads_what_encoding_needs(watched: Watched, encoder: str) -> None:
    tokenizer = Tokenizer.train(TEXTS, vocab_size=300)
    watched.forget()
    encoding = tokenizer.with_encoder(encoder)  # type: ignore[arg-type]
    encoding.encode_batch(TEXTS, threads=2)
    # So many different words that the memo grows.
    encoding.encode(" ".join(map(str, range(100_000, 110_000))))
    assert watched.loaded <= set(ENCODING)
    assert {"encode_documents", "find_texts"} < watched.loaded


def compiled(directory: Path) -> set[str]:
    """Names of the kernels in a cache."""
    return {path.name.rpartition("-")[0] for path in (directory / "kernels").iterdir()}


@pytest.fixture
def fresh(tmp_path: Path) -> dict[str, str]:
    """The environment of a machine that has compiled nothing."""
    (tmp_path / "cache").mkdir(mode=0o700)
    return os.environ | {"PARIBUS_CACHE": str(tmp_path / "cache")}


@pytest.mark.stress
def test_the_first_paribus_tokenize_compiles_what_encodes_and_nothing_else(
    fresh: dict[str, str], tmp_path: Path
) -> None:
    tokenizer = Tokenizer.train(TEXTS, vocab_size=300)
    tokenizer.save(tmp_path / "bpe")
    arguments = [*command(["tokenize"]), f"tokenizer={tmp_path / 'bpe'}"]
    done = subprocess.run(arguments, input="the cat", capture_output=True, text=True, env=fresh, check=False)
    assert (done.returncode, done.stdout.split()) == (0, [str(token) for token in tokenizer.encode("the cat")])
    assert "compiling kernels (once)" in done.stderr
    assert compiled(tmp_path / "cache") == set(ENCODING)
    again = subprocess.run(arguments, input="the cat", capture_output=True, text=True, env=fresh, check=False)
    assert (again.stdout, again.stderr) == (done.stdout, "")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("until", "needed"),
    [
        ("corpus", set(SHINGLES)),
        pytest.param("vocabulary", set(SHINGLES) | set(training_kernels("bpe")), marks=pytest.mark.stress),
    ],
)
def test_the_first_run_compiles_what_its_stages_so_far_need(
    fresh: dict[str, str], tmp_path: Path, until: str, needed: set[str]
) -> None:
    write_corpus(tmp_path)
    done = forked.run(["-m", "paribus", "run", *OVERRIDES, f"until={until}"], cwd=tmp_path, env=fresh)
    assert done.returncode == 0, done.stderr
    assert compiled(tmp_path / "cache") == needed
