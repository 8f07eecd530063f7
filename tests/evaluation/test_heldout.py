"""The continuation task: items made from held-out text."""

import random

import pytest

from paribus.config.groups.evaluation import EvaluationConfig
from paribus.errors import DataError
from paribus.evaluation.heldout import continuation_items, cut_passage, passage_sample, sample_documents
from paribus.evaluation.items import Item, ItemSet, text_digest

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


def test_a_split_never_separates_a_letter_from_its_accent() -> None:
    passage = cut_passage("d", "e\u0301" * 100, (200, 80))
    assert passage is not None
    assert passage.continuation[0] == "e"


def test_choices_are_as_near_in_bytes_as_the_corpus_allows() -> None:
    documents = spaced_documents(60) | han_documents(60)
    for item in build(documents).evaluated:
        sizes = [len(choice.encode()) for choice in item.choices]
        assert max(sizes) <= 1.2 * min(sizes)


def test_examples_share_no_document_and_no_choice_with_scored_items() -> None:
    items = build(spaced_documents(100))
    shown, scored = ({choice for item in part for choice in item.choices} for part in (items.fewshot, items.evaluated))
    assert not shown & scored
    assert not {item.id for item in items.fewshot} & {item.id for item in items.evaluated}


def test_items_depend_on_the_texts_alone_and_not_on_their_order() -> None:
    documents = spaced_documents(50)
    assert build(documents) == build(dict(reversed(documents.items())))


def test_exact_copies_make_one_item() -> None:
    documents = spaced_documents(40)
    copies = {f"copy of {document}": text for document, text in documents.items()}
    assert build(documents | copies) == build(documents)


def test_right_answers_are_spread_over_the_four_places() -> None:
    places = [item.gold for item in build(spaced_documents(400, words=60)).evaluated]
    assert all(0.15 < places.count(place) / len(places) < 0.35 for place in range(4))


def test_the_number_of_items_is_at_most_what_was_asked_for() -> None:
    assert len(build(spaced_documents(300, words=60), largest=7).evaluated) == 7


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


def test_fewer_and_shorter_documents_are_all_scored_and_whole() -> None:
    documents = spaced_documents(5)
    assert dict(sample_documents(documents.items(), EvaluationConfig())) == documents
