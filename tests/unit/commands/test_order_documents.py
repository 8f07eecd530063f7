"""What `paribus order where` says of one document, on small artefacts."""

import re
from pathlib import Path

import numpy as np
import pytest

from paribus.commands.order_documents import SHOWN_PLACES, SHOWN_READINGS, find_document, where
from paribus.config.groups.budget import BudgetConfig, EqualTextBudget
from paribus.corpus.artifact import CorpusWriter
from paribus.errors import ConfigurationError
from paribus.ordering.contexts.text import OrderedText
from paribus.ordering.orders.artifact import Order, write_order
from paribus.ordering.packing.documents import OrderedDocuments
from paribus.ordering.packing.pack import pack
from paribus.ordering.traversal.traversal import traverse
from paribus.tokenization.encoded_corpus import EncodedCorpus
from paribus.training.data.batches import Batches
from support.corpora import write_corpus
from support.packings import measured
from support.training_inputs import BUDGET, MODEL, STEPS, TRAINING, config, measure_contexts, write_inputs

DOCUMENTS = 40
REPEATED = 3


@pytest.fixture
def inputs(tmp_path: Path) -> dict[str, Path]:
    """Artefacts of forty documents; the order reads document 3 before each of the others, as `nn` may."""
    made = write_inputs(tmp_path)
    corpus = write_corpus(tmp_path / "corpus", [f"text of document {number}" for number in range(DOCUMENTS)])
    order = tmp_path / "repeating"
    order.mkdir()
    others = np.array([number for number in range(DOCUMENTS) if number != REPEATED])
    documents = np.stack([np.full(len(others), REPEATED), others], axis=1).reshape(-1)
    write_order(order, documents, groups=np.arange(0, len(documents) + 1, 2), kept=DOCUMENTS, removed=0)
    found = {**made, "corpus": corpus, "order": order}
    return {**found, "contexts": measure_contexts(tmp_path / "contexts", found, config())}


def test_a_list_of_places_says_how_many_it_leaves_out(inputs: dict[str, Path]) -> None:
    told = where(REPEATED, config(), inputs)
    shown = ", ".join(str(2 * number) for number in range(SHOWN_PLACES))
    assert f"place in the order (from 0): {shown} and {DOCUMENTS - 1 - SHOWN_PLACES} more of 78\n" in told
    assert "place in the order (from 0): 1 of 78\n" in where(0, config(), inputs)


def test_readings_are_those_of_contexts_and_are_told_from_the_contexts(inputs: dict[str, Path]) -> None:
    told = where(REPEATED, config(), inputs)
    encoded = EncodedCorpus(inputs["tokens"])
    eos = encoded.tokenizer.eos_id
    contexts = pack(config().packing, encoded.ids, encoded.offsets, Order(inputs["order"]), eos, MODEL.context_length)
    text = OrderedText(contexts.documents, encoded.source_bytes, encoded.tokenizer.token_byte_lengths())
    batches = Batches(
        contexts, TRAINING.global_batch, traverse(config().packing, measured(contexts, text), config().seed)
    )
    holding = [i for i in range(contexts.count) if REPEATED in {found for found, _ in contexts.documents_of(i)}]
    read = sum(int(index) in holding for step in range(STEPS) for index in batches.indices(step))
    assert read != len(holding)
    assert f"tokens of it are in {len(holding)} of {contexts.count} contexts,\n" in told
    assert f"which are read {read} times in {STEPS} steps" in told
    assert len(re.findall(r"^  step \d+: context", told, re.MULTILINE)) == SHOWN_READINGS
    assert f"\n  and {read - SHOWN_READINGS} more\n" in told


@pytest.mark.parametrize("budget", [BUDGET, EqualTextBudget(text=800)], ids=["tokens", "text"])
def test_the_corpus_is_not_read_again_whatever_the_budget(
    inputs: dict[str, Path], monkeypatch: pytest.MonkeyPatch, budget: BudgetConfig
) -> None:
    monkeypatch.setattr(OrderedDocuments, "read", None)
    monkeypatch.setattr(OrderedDocuments, "summed", None)
    assert "which are read" in where(REPEATED, config(budget), inputs)


def test_an_id_stands_for_its_document_before_it_is_read_as_a_number(tmp_path: Path) -> None:
    with CorpusWriter(tmp_path, heldout=0.0, shard_bytes=20) as writer:
        for name in ("first", "#0", "-x", "#3"):
            writer.add(name, "a text of its own", "test")
    assert [find_document(name, tmp_path) for name in ("first", "#0", "-x", "#3", "#1", "#2")] == [0, 1, 2, 3, 1, 2]
    with pytest.raises(ConfigurationError, match="documents #0 to #3"):
        find_document("#4", tmp_path)
