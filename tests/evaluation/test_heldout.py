"""The continuation task: items made from held-out text."""

import json
import random
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from paribus.config.groups.evaluation import EvaluationConfig
from paribus.corpus.artifact import CorpusArtifact
from paribus.errors import DataError
from paribus.evaluation.heldout import continuation_items, cut_passage, passage_sample, sample_documents
from paribus.evaluation.items import ItemSet, text_digest
from paribus.evaluation.stage import build_scores, build_tasks
from paribus.tokenization import Tokenizer
from support.corpora import build_corpus, files_corpus, write_jsonl
from support.evaluations import evaluation_context, write_checkpoints

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


@pytest.mark.parametrize("documents", [spaced_documents(80), han_documents(80)], ids=["spaced", "han"])
def test_an_item_is_a_true_continuation_against_three_of_other_documents(documents: dict[str, str]) -> None:
    items = build(documents)
    assert len(items.evaluated) + len(items.fewshot) == 80
    for item in items.evaluated + items.fewshot:
        right = item.choices[item.gold]
        assert (item.query + right) in documents[item.id]
        assert len(set(item.choices)) == 4 and {len(choice) for choice in item.choices} == {len(right)}
        for choice in set(item.choices) - {right}:
            assert any(choice in text for document, text in documents.items() if document != item.id)
        assert not item.query[-1].isspace()
        assert all(choice[0] == " " or choice[0] in HAN for choice in item.choices)
    shown, scored = ({choice for item in part for choice in item.choices} for part in (items.fewshot, items.evaluated))
    assert not shown & scored
    assert not {item.id for item in items.fewshot} & {item.id for item in items.evaluated}
    assert build(dict(reversed(documents.items()))) == items


def test_right_answers_are_spread_and_blank_or_short_documents_give_no_passage() -> None:
    places = [item.gold for item in build(spaced_documents(400, words=60)).evaluated]
    assert all(0.15 < places.count(place) / len(places) < 0.35 for place in range(4))
    for text in ("too short", "x" + " " * 400 + "x"):
        assert cut_passage("d", text, (200, 80)) is None


def test_too_few_documents_are_refused_with_the_number_needed() -> None:
    with pytest.raises(DataError, match=r"has 11 documents.*needs 12 or more.*corpus.heldout"):
        build(spaced_documents(11))
    assert len(build(spaced_documents(12)).evaluated) == 4


@pytest.mark.parametrize("size", [100, 101, 102])
def test_the_documents_of_smallest_digest_are_scored_each_cut_at_a_character(size: int) -> None:
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
    build_tasks(evaluation_context(root, EVALUATION, "tasks", "corpus"))
    write_checkpoints(root, Tokenizer.train([" ".join(WORDS)] * 3, vocab_size=320, special_tokens=["<|endoftext|>"]))
    result = build_scores(evaluation_context(root, EVALUATION, "evaluation", "training", "tasks", "corpus"))
    (root / "result.json").write_text(json.dumps(result), encoding="utf-8")
    return root


def test_clean_documents_have_the_bits_they_have_among_all(root: Path) -> None:
    ids = {document.id for document in CorpusArtifact(root / "corpus").documents("heldout") if document.overlap <= 0.3}
    table = pq.read_table(root / "evaluation" / "heldout.parquet").to_pylist()
    assert 0 < len(ids) < len({row["document"] for row in table})
    expected = [row for row in table if row["document"] in ids]
    rows = pq.read_table(root / "evaluation" / "texts.parquet").to_pylist()
    clean = [row for row in rows if row.pop("text_set") == "heldout_clean"]
    assert all(row.pop("tokens") for row in clean)
    assert clean == expected
    metrics = json.loads((root / "result.json").read_text(encoding="utf-8"))["metrics"]
    by_step = [[row for row in clean if row["checkpoint"] == step] for step in (10, 20)]
    ratios = [sum(row["bits"] for row in rows) / sum(row["bytes"] for row in rows) for rows in by_step]
    assert metrics["eval/heldout_clean/bits_per_byte"] == pytest.approx(sum(ratios) / 2)
