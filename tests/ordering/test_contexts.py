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
from paribus.tokenization import Tokenizer
from paribus.training.train import open_data
from support.stages import context_at, files
from support.training_inputs import config, pair_config, write_inputs, write_pair_inputs

PACKINGS = [ConcatenatePacking(), BestFitPacking(window=4), BestFitPacking(window=None), OneDocumentPacking()]


@pytest.fixture
def inputs(tmp_path: Path) -> dict[str, Path]:
    """Documents in tokens of one byte and more."""
    text, special = "all else being equal ", ("<|endoftext|>",)
    tokenizer = Tokenizer.train([text] * 3, vocab_size=270, pretokenizer="gpt2", special_tokens=special)
    return write_inputs(tmp_path, tokenizer=tokenizer)


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five contexts a part."""
    monkeypatch.setattr(stage, "MOST_CONTEXTS_A_PART", 5)


def measure(root: Path, inputs: dict[str, Path], run: RunConfig, workers: int = 1) -> Path:
    """The artefact of the stage."""
    context = context_at(root / "output", root / "work", run, inputs, workers=workers)
    stage.build(context)
    return context.output


def read(root: Path, inputs: dict[str, Path], run: RunConfig) -> MeasuredContexts:
    return open_contexts(run, inputs | {"contexts": root / "output"})[1]


def slow(packed: PackedCorpus) -> dict[str, list[Any]]:
    """What the arrays must be, from the rows that training reads and from documents token by token."""
    contexts, corpus = packed.contexts, packed.corpus
    lengths = [*corpus.tokenizer.token_byte_lengths().tolist(), 0]
    order = packed.order.documents.tolist()
    before = np.concatenate([[0], np.cumsum(corpus.source_bytes[order])]).tolist()
    in_corpus = np.concatenate([[0], np.cumsum(corpus.source_bytes)]).tolist()
    points = sampled_bytes(in_corpus[-1]).tolist()

    def within(position: int, token: int) -> int:
        return sum(lengths[token] for token in corpus.document(order[position])[:token].tolist())

    arrays: dict[str, list[Any]] = {name: [] for name in ("text_bytes", "targets", "places", "ends", "sampled")}
    for index in range(contexts.count):
        targets = contexts.rows([index])[1][0].tolist()
        arrays["text_bytes"].append(sum(lengths[target] for target in targets))
        arrays["targets"].append(sum(target >= 0 for target in targets))
        pieces, predicted = contexts.pieces([index]), contexts.predicted([index])
        first, last = int(pieces.positions[0]), int(pieces.positions[-1])
        arrays["places"].append(before[first] + within(first, int(pieces.starts[0])))
        arrays["ends"].append(before[last] + within(last, int(pieces.starts[-1] + pieces.lengths[-1])))
        for position, start, length in zip(predicted.positions, predicted.starts, predicted.lengths, strict=True):
            begin = in_corpus[order[position]]
            span = range(begin + within(position, start), begin + within(position, start + length))
            arrays["sampled"] += [[number, index] for number, point in enumerate(points) if point in span]
    return arrays


@pytest.mark.parametrize("packing", [*PACKINGS, PairPacking()], ids=str)
def test_what_is_measured_is_what_training_reads(
    inputs: dict[str, Path], tmp_path: Path, packing: PackingConfig, small_parts: None
) -> None:
    run = config(packing=packing)
    if isinstance(packing, PairPacking):
        run, inputs = pair_config(), write_pair_inputs(tmp_path)
    measure(tmp_path / "stage", inputs, run)
    measured, packed = read(tmp_path / "stage", inputs, run), pack_corpus(run, inputs)
    for name, values in slow(packed).items():
        assert getattr(measured, name).tolist() == values, name
    assert measured.ordered_bytes == measured.corpus_bytes == sum(packed.corpus.source_bytes)


def test_neither_workers_nor_parts_change_the_artefact(
    inputs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = files(measure(tmp_path / "one", inputs, config()))
    for workers, contexts in ((1, 1), (2, 7), (2, 100_000)):
        monkeypatch.setattr(stage, "MOST_CONTEXTS_A_PART", contexts)
        assert files(measure(tmp_path / str(contexts), inputs, config(), workers)) == expected


class Interrupted(LocalEngine):
    """An engine that is stopped after a few items."""

    def map(self, function: Callable[[Any], Any], items: Iterable[Any], *, releases_gil: bool = False) -> Iterator[Any]:
        for number, item in enumerate(items):
            if number == 3:
                raise KeyboardInterrupt
            yield function(item)


def test_a_stopped_stage_repeats_no_finished_part(
    inputs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small_parts: None
) -> None:
    expected = files(measure(tmp_path / "undisturbed", inputs, config()))
    context = context_at(tmp_path / "output", tmp_path / "work", config(), inputs)
    with pytest.raises(KeyboardInterrupt):
        stage.build(dataclasses.replace(context, engine=Interrupted()))
    finished = sorted((tmp_path / "work" / "parts").iterdir())
    assert [path.name for path in finished] == [f"{start:012d}-{start + 5:012d}.npz" for start in (0, 5, 10)]
    starts, of = list[int](), stage.Measured.of
    monkeypatch.setattr(stage.Measured, "of", lambda *arguments: starts.append(arguments[-2]) or of(*arguments))
    again = context_at(tmp_path / "again", tmp_path / "work", config(), inputs)
    stage.build(again)
    assert files(again.output) == expected
    assert starts == list(range(15, pack_corpus(config(), inputs).contexts.count, 5))


def test_training_reads_no_token_before_its_first_step(
    inputs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    contexts = measure(tmp_path / "stage", inputs, config())
    monkeypatch.setattr(OrderedDocuments, "read", None)
    monkeypatch.setattr(OrderedDocuments, "summed", None)
    data = open_data(context_at(tmp_path / "training", tmp_path / "work", config(), inputs | {"contexts": contexts}))
    assert data.measured.text_bytes.tolist() == read(tmp_path / "stage", inputs, config()).text_bytes.tolist()
    assert isinstance(data.measured.places, np.memmap)


@pytest.mark.parametrize("packing", PACKINGS[1:], ids=str)
def test_documents_are_assigned_to_contexts_once(
    inputs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packing: PackingConfig
) -> None:
    run = config(packing=packing)
    measure(tmp_path / "stage", inputs, run)
    expected = pack_corpus(run, inputs).contexts
    monkeypatch.setattr(AssignedContexts, "together", None)
    contexts = open_contexts(run, inputs | {"contexts": tmp_path / "stage" / "output"})[0].contexts
    assert isinstance(contexts, AssignedContexts) and isinstance(contexts.all_pieces.positions, np.memmap)
    indices = np.arange(expected.count)
    assert all(map(np.array_equal, contexts.rows(indices), expected.rows(indices)))
    assert contexts.left_out_tokens == expected.left_out_tokens


def test_damaged_files_and_contexts_of_another_packing_are_refused(inputs: dict[str, Path], tmp_path: Path) -> None:
    output = measure(tmp_path / "stage", inputs, config())
    with pytest.raises(DataError, match=r"has \d+ contexts of 16 tokens, but the tokens in their order are \d+ of 16"):
        read(tmp_path / "stage", inputs, config(packing=OneDocumentPacking()))
    (output / "ends.npy").write_bytes((output / "ends.npy").read_bytes()[:40])
    with pytest.raises(DataError, match=r"ends\.npy: no readable array of contexts"):
        read(tmp_path / "stage", inputs, config())
    (output / "contexts.json").write_text('{"contexts": 40}', encoding="utf-8")
    with pytest.raises(DataError, match=r"contexts\.json: has no whole number for left_out_tokens, context_length"):
        read(tmp_path / "stage", inputs, config())
