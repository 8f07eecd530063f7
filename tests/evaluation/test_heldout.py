"""The continuation task: items made from held-out text."""

import dataclasses
import json
import random
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from paribus.config.groups.evaluation import EvaluationConfig
from paribus.corpus.artifact import CorpusArtifact
from paribus.errors import DataError
from paribus.evaluation.heldout import continuation_items, cut_passage, passage_sample, sample_documents
from paribus.evaluation.items import Item, ItemSet, text_digest
from paribus.evaluation.stage import build_scores, build_tasks
from paribus.reporting.compare import compare
from paribus.reporting.runs import load_scores
from paribus.tokenization import Tokenizer
from support.corpora import build_corpus, files_corpus, write_jsonl
from support.evaluations import stage_context, write_checkpoints
from support.tables import notes, record

WORDS = ("the", "of", "corpus", "token", "order", "and", "vocabulary", "merges", "a", "text", "längste", "straße")
HAN = "的一是在不了有和人这中大为上个国我以要他时来用们生到作地于出就分对成会可主发年动同工也能下过子说产种面"


def spaced_documents(number: int, words: int = 120) -> dict[str, str]:
    draw = random.Random(5)
    return {f"doc{i}": " ".join(draw.choices(WORDS, k=words)) for i in range(number)}


def han_documents(number: int) -> dict[str, str]:
    draw = random.Random(6)
    return {f"han{i}": "".join(draw.choices(HAN, k=300)) for i in range(number)}


def build(documents: dict[str, str], largest: int = 500) -> ItemSet:
    sample = passage_sample(largest, (200, 80))
    for document, text in documents.items():
        sample.add(document, text)
    return continuation_items(sample, largest)


def check(item: Item, documents: dict[str, str]) -> None:
    true = item.choices[item.gold]
    assert (item.query + true) in documents[item.id]
    assert len(set(item.choices)) == 4
    assert {len(choice) for choice in item.choices} == {len(true)}
    for choice in (choice for i, choice in enumerate(item.choices) if i != item.gold):
        assert any(choice in text for document, text in documents.items() if document != item.id)
    assert not item.query[-1].isspace()


@pytest.mark.parametrize("documents", [spaced_documents(80), han_documents(80)], ids=["spaced", "han"])
def test_an_item_is_a_true_continuation_against_three_of_other_documents(documents: dict[str, str]) -> None:
    items = build(documents)
    assert len(items.evaluated) + len(items.fewshot) == 80
    for item in items.evaluated + items.fewshot:
        check(item, documents)


def test_a_document_with_spaces_is_split_before_one_and_other_scripts_between_characters() -> None:
    assert all(choice[0] == " " for item in build(spaced_documents(40)).evaluated for choice in item.choices)
    assert all(choice[0] in HAN for item in build(han_documents(40)).evaluated for choice in item.choices)


def test_examples_share_no_document_and_no_choice_with_scored_items() -> None:
    items = build(spaced_documents(100))
    shown, scored = ({choice for item in part for choice in item.choices} for part in (items.fewshot, items.evaluated))
    assert not shown & scored
    assert not {item.id for item in items.fewshot} & {item.id for item in items.evaluated}


def test_items_depend_on_the_texts_alone_and_not_on_their_order() -> None:
    documents = spaced_documents(50)
    assert build(documents) == build(dict(reversed(documents.items())))


def test_right_answers_are_spread_over_the_four_places() -> None:
    places = [item.gold for item in build(spaced_documents(400, words=60)).evaluated]
    assert all(0.15 < places.count(place) / len(places) < 0.35 for place in range(4))


def test_too_few_documents_are_refused_with_the_number_needed() -> None:
    with pytest.raises(DataError, match=r"has 11 documents.*needs 12 or more.*corpus.heldout") as error:
        build(spaced_documents(11))
    assert "evaluation.continuation_items" in str(error.value)
    assert "leave the task out, as evaluation=heldout does" in str(error.value)
    assert len(build(spaced_documents(12)).evaluated) == 4


def test_blank_and_short_documents_make_no_passage() -> None:
    assert cut_passage("d", "too short", (200, 80)) is None
    assert cut_passage("d", "x" + " " * 400 + "x", (200, 80)) is None


@pytest.mark.parametrize("size", [100, 101, 102])
def test_held_out_documents_of_smallest_digest_are_scored_in_corpus_order_each_cut_at_a_character(size: int) -> None:
    documents = han_documents(50)
    chosen = sample_documents(documents.items(), EvaluationConfig(heldout_documents=20, document_bytes=size))
    smallest = sorted(documents, key=lambda document: text_digest(documents[document]))[:20]
    assert [document for document, _ in chosen] == sorted(smallest, key=list(documents).index)
    for document, text in chosen:
        assert documents[document].startswith(text)
        assert size - 3 < len(text.encode()) <= size


EVALUATION = EvaluationConfig(tasks=(), heldout_documents=1_000, clean_overlap=0.3, last_checkpoints=2)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Documents of which some held-out ones are half of a training document; scored."""
    root, draw = tmp_path_factory.mktemp("sets"), random.Random(3)
    texts = [draw.choices(WORDS, k=60) for _ in range(100)]
    texts += [text[:30] + draw.choices(WORDS, k=30) for text in texts]
    path = write_jsonl(root / "rows.jsonl", [{"text": " ".join(text)} for text in texts])
    build_corpus(files_corpus(path), root / "corpus")
    build_tasks(stage_context(root, EVALUATION, "tasks", "corpus"))
    write_checkpoints(root, Tokenizer.train([" ".join(WORDS)] * 3, vocab_size=320, special_tokens=["<|endoftext|>"]))
    result = build_scores(stage_context(root, EVALUATION, "evaluation", "training", "tasks", "corpus"))
    (root / "result.json").write_text(json.dumps(result), encoding="utf-8")
    return root


def test_clean_documents_have_the_bits_they_have_among_all(root: Path) -> None:
    wanted = {found.id for found in CorpusArtifact(root / "corpus").documents("heldout") if found.overlap <= 0.3}
    every = pq.read_table(root / "evaluation" / "heldout.parquet").to_pylist()
    assert 0 < len(wanted) < len({row["document"] for row in every})
    clean = [row for row in every if row["document"] in wanted]
    table = pq.read_table(root / "evaluation" / "texts.parquet").to_pylist()
    found = [row for row in table if row.pop("text_set") == "heldout_clean"]
    assert all(row.pop("tokens") for row in found)
    assert found == clean
    metrics = json.loads((root / "result.json").read_text(encoding="utf-8"))["metrics"]
    each = [[row for row in clean if row["checkpoint"] == step] for step in (10, 20)]
    shares = [sum(row["bits"] for row in rows) / sum(row["bytes"] for row in rows) for rows in each]
    assert metrics["eval/heldout_clean/bits_per_byte"] == pytest.approx(sum(shares) / 2)


def test_concatenated_documents_are_all_documents_with_other_bits(root: Path) -> None:
    scores = load_scores(root / "evaluation")
    concatenated = scores.texts["heldout_concatenated"]
    assert concatenated.documents == scores.heldout.documents
    assert (concatenated.bytes == scores.heldout.bytes).all()
    assert (concatenated.bits != scores.heldout.bits).any()


def test_the_table_has_them_beside_all_and_tells_the_overlap(root: Path, tmp_path: Path) -> None:
    overlap = {"documents": 700, "above_80": 0, "above_50": 34, "above_20": 55, "mean": 0.0517}
    corpus = {"overlap": overlap, "moved": {"documents": 102, "bytes": 9}}
    run = dataclasses.replace(record(tmp_path, "one", {}, {}), scores=root / "evaluation", corpus=corpus)
    comparison = compare([run], [])
    columns = [(column.group, column.label) for column in comparison.columns if column.kind == "bits_per_byte"]
    assert columns == [("Held-out text", label) for label in ("bits / byte", "concatenated", "clean")]
    lines = notes(comparison)
    assert any("of them concatenated" in line and "clean ones among them" in line for line in lines)
    assert (
        "Overlap with training text, as the share of a held-out document's 8-grams in one training document: above "
        "80 % in 0, above 50 % in 34, above 20 % in 55 of the corpus' 700 held-out documents, 5.2 % in the mean; 102 "
        "near copies of training text, or of one group with one, had been moved to training."
    ) in lines
