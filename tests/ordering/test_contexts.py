"""The stage `contexts`: what it measures, in the slow way too, and what neither workers nor a kill change."""

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paribus.config.groups.ordering import (
    BestFitPacking,
    ConcatenatePacking,
    OneDocumentPacking,
    PackingConfig,
    PairPacking,
)
from paribus.config.schema import RunConfig
from paribus.engine.local import LocalEngine
from paribus.errors import DataError
from paribus.ordering import contexts as stage
from paribus.ordering.contexts import PackedCorpus, open_contexts, pack_corpus
from paribus.ordering.ordered_text import MeasuredContexts, sampled_bytes
from paribus.ordering.packing import AssignedContexts, OrderedDocuments
from paribus.stage import StageContext
from paribus.tokenization import Tokenizer
from paribus.training.train import open_data
from support.stages import context_at, files
from support.training_inputs import TRANSLATOR, config, pair_config, write_inputs, write_pair_inputs

PACKINGS = [ConcatenatePacking(), BestFitPacking(window=4), BestFitPacking(window=None), OneDocumentPacking()]
EOS = "<|endoftext|>"


def bpe() -> Tokenizer:
    """Tokens of one byte and more."""
    return Tokenizer.train(["all else being equal "] * 3, vocab_size=270, pretokenizer="gpt2", special_tokens=(EOS,))


@pytest.fixture
def inputs(tmp_path: Path) -> dict[str, Path]:
    return write_inputs(tmp_path, tokenizer=bpe())


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five contexts a part."""
    monkeypatch.setattr(stage, "MOST_CONTEXTS_A_PART", 5)


def made(root: Path, inputs: dict[str, Path], run: RunConfig, workers: int = 1) -> StageContext:
    """The context of the stage, which was run."""
    context = context_at(root / "output", root / "work", run, inputs, workers=workers)
    stage.build(context)
    return context


def opened(run: RunConfig, inputs: dict[str, Path]) -> PackedCorpus:
    return pack_corpus(run, inputs)


def read(root: Path, inputs: dict[str, Path], run: RunConfig) -> MeasuredContexts:
    return open_contexts(run, inputs | {"contexts": root / "output"})[1]


def slow(of: PackedCorpus) -> dict[str, list[Any]]:
    """What the arrays must be, from the rows that training reads and from documents token by token."""
    contexts, corpus = of.contexts, of.corpus
    lengths = [*corpus.tokenizer.token_byte_lengths().tolist(), 0]
    order = of.order.documents.tolist()
    before = np.concatenate([[0], np.cumsum(corpus.source_bytes[order])]).tolist()
    in_corpus = np.concatenate([[0], np.cumsum(corpus.source_bytes)]).tolist()
    points = sampled_bytes(in_corpus[-1]).tolist()

    def within(position: int, token: int) -> int:
        return sum(lengths[token] for token in corpus.document(order[position])[:token].tolist())

    found: dict[str, list[Any]] = {name: [] for name in ("text_bytes", "targets", "places", "ends", "sampled")}
    for index in range(contexts.count):
        targets = contexts.rows([index])[1][0].tolist()
        found["text_bytes"].append(sum(lengths[target] for target in targets))
        found["targets"].append(sum(target >= 0 for target in targets))
        pieces, predicted = contexts.pieces([index]), contexts.predicted([index])
        first, last = int(pieces.positions[0]), int(pieces.positions[-1])
        found["places"].append(before[first] + within(first, int(pieces.starts[0])))
        found["ends"].append(before[last] + within(last, int(pieces.starts[-1] + pieces.lengths[-1])))
        for position, start, length in zip(predicted.positions, predicted.starts, predicted.lengths, strict=True):
            begin = in_corpus[order[position]]
            held = range(begin + within(position, start), begin + within(position, start + length))
            found["sampled"] += [[number, index] for number, point in enumerate(points) if point in held]
    return found


@pytest.mark.parametrize("packing", PACKINGS, ids=str)
def test_what_is_measured_is_what_training_reads(
    inputs: dict[str, Path], tmp_path: Path, packing: PackingConfig, small_parts: None
) -> None:
    run = config(packing=packing)
    made(tmp_path / "stage", inputs, run)
    found, expected = read(tmp_path / "stage", inputs, run), slow(opened(run, inputs))
    for name, values in expected.items():
        assert getattr(found, name).tolist() == values, name
    assert found.ordered_bytes == found.corpus_bytes == sum(opened(run, inputs).corpus.source_bytes)


def test_pairs_are_measured_too(tmp_path: Path, small_parts: None) -> None:
    inputs, run = write_pair_inputs(tmp_path), pair_config()
    made(tmp_path / "stage", inputs, run)
    found, expected = read(tmp_path / "stage", inputs, run), slow(opened(run, inputs))
    for name, values in expected.items():
        assert getattr(found, name).tolist() == values, name
    assert isinstance(run.packing, PairPacking) and run.model == TRANSLATOR


@pytest.mark.parametrize(("workers", "contexts"), [(1, 1), (2, 7), (2, 100_000)])
def test_neither_workers_nor_parts_show_in_the_artefact(
    inputs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int, contexts: int
) -> None:
    expected = files(made(tmp_path / "one", inputs, config()).output)
    monkeypatch.setattr(stage, "MOST_CONTEXTS_A_PART", contexts)
    assert files(made(tmp_path / "other", inputs, config(), workers).output) == expected


class Interrupted(LocalEngine):
    """An engine that is stopped after a few items."""

    def map(self, function: Callable[[Any], Any], items: Iterable[Any], *, releases_gil: bool = False) -> Iterator[Any]:
        for number, item in enumerate(items):
            if number == 3:
                raise KeyboardInterrupt
            yield function(item)


def test_parts_that_are_finished_are_not_measured_again(
    inputs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small_parts: None
) -> None:
    expected = files(made(tmp_path / "undisturbed", inputs, config()).output)
    context = context_at(tmp_path / "stopped" / "output", tmp_path / "stopped" / "work", config(), inputs)
    with pytest.raises(KeyboardInterrupt):
        stage.build(dataclasses.replace(context, engine=Interrupted()))
    kept = sorted((tmp_path / "stopped" / "work" / "parts").iterdir())
    assert [path.name for path in kept] == [f"{start:012d}-{start + 5:012d}.npz" for start in (0, 5, 10)]
    measured: list[int] = []
    measure = stage.Measured.of

    def noted(*arguments: Any) -> Any:
        measured.append(arguments[-2])
        return measure(*arguments)

    monkeypatch.setattr(stage.Measured, "of", noted)
    again = context_at(tmp_path / "stopped" / "again", tmp_path / "stopped" / "work", config(), inputs)
    stage.build(again)
    assert files(again.output) == expected
    assert measured == list(range(15, opened(config(), inputs).contexts.count, 5))


def test_training_reads_no_token_before_its_first_step(
    inputs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    contexts = made(tmp_path / "stage", inputs, config()).output
    monkeypatch.setattr(OrderedDocuments, "read", None)
    monkeypatch.setattr(OrderedDocuments, "summed", None)
    context = context_at(tmp_path / "training", tmp_path / "work", config(), inputs | {"contexts": contexts})
    data = open_data(context)
    assert data.measured.text_bytes.tolist() == read(tmp_path / "stage", inputs, config()).text_bytes.tolist()
    assert isinstance(data.measured.places, np.memmap)


@pytest.mark.parametrize("packing", PACKINGS[1:], ids=str)
def test_documents_are_assigned_to_contexts_once(
    inputs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packing: PackingConfig
) -> None:
    run = config(packing=packing)
    made(tmp_path / "stage", inputs, run)
    expected = opened(run, inputs).contexts
    monkeypatch.setattr(AssignedContexts, "together", None)
    contexts = open_contexts(run, inputs | {"contexts": tmp_path / "stage" / "output"})[0].contexts
    assert isinstance(contexts, AssignedContexts) and isinstance(contexts.all_pieces.positions, np.memmap)
    to_plain = np.arange(expected.count)
    for rows, others in zip(contexts.rows(to_plain), expected.rows(to_plain), strict=True):
        assert rows.tolist() == others.tolist()
    assert contexts.left_out_tokens == expected.left_out_tokens


def cut_short(directory: Path) -> None:
    path = directory / "ends.npy"
    path.write_bytes(path.read_bytes()[:40])


def forget_sizes(directory: Path) -> None:
    (directory / "contexts.json").write_text('{"contexts": 40}', encoding="utf-8")


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (cut_short, r"ends\.npy: no readable array of contexts"),
        (
            forget_sizes,
            r"contexts\.json: has no whole number for left_out_tokens, context_length",
        ),
    ],
)
def test_files_that_disagree_are_named(
    inputs: dict[str, Path], tmp_path: Path, damage: Callable[[Path], None], told: str
) -> None:
    run = config(packing=BestFitPacking(window=4))
    damage(made(tmp_path / "stage", inputs, run).output)
    with pytest.raises(DataError, match=told):
        read(tmp_path / "stage", inputs, run)


def test_contexts_of_another_packing_are_refused(inputs: dict[str, Path], tmp_path: Path) -> None:
    made(tmp_path / "stage", inputs, config())
    with pytest.raises(DataError, match=r"has \d+ contexts of 16 tokens, but the tokens in their order are \d+ of 16"):
        read(tmp_path / "stage", inputs, config(packing=OneDocumentPacking()))
