"""The texts of what runs were scored on, read from what the stage `tasks` writes."""

import json
from pathlib import Path

from paribus.evaluation.heldout import HELDOUT, TextPair, write_heldout, write_pairs
from paribus.evaluation.items import (
    AnswerItem,
    AnyItem,
    BenchmarkPrompt,
    BlankItem,
    Generation,
    Item,
    ItemSet,
    TextItem,
    write_task,
)
from paribus.evaluation.tasks import PAIRS, SEGMENTED, TEXTS
from paribus.pipeline.item_texts import finetuned_texts, scored_texts
from paribus.reporting.items import ItemText

KINDS: dict[str, tuple[AnyItem, ItemText]] = {
    "choices": (Item("test/1", "Is it?", ("yes", "no"), 1), ItemText("Is it?", ("yes", "no"), 1)),
    "blank": (BlankItem("test/1", ("It", "They"), "is so.", 0), ItemText("", ("It", "They"), 0, "is so.")),
    "text": (TextItem("test/1", "What", " follows"), ItemText("What", accepted=(" follows",))),
    "answer": (
        AnswerItem("test/1", "Who?", (("he", "she"), ("they",))),
        ItemText("Who?", accepted=("he, she", "they")),
    ),
}


def test_an_item_of_each_kind_has_its_texts(tmp_path: Path) -> None:
    for kind, (item, text) in KINDS.items():
        generation = Generation(("\n",), "lm_eval") if kind == "answer" else None
        write_task(tmp_path, kind, ItemSet([item], [item], "itself"), BenchmarkPrompt("a test"), generation)
        assert scored_texts(tmp_path, kind) == {"test/1": text}
    assert scored_texts(tmp_path, "another") == {}


def test_documents_pairs_and_segmented_sentences_have_their_texts(tmp_path: Path) -> None:
    write_heldout(tmp_path / HELDOUT, [("a", "held out")])
    write_heldout(tmp_path / f"wikipedia{TEXTS}", [("b", "an article")])
    write_pairs(tmp_path / f"wmt14_en_de{PAIRS}", [TextPair("c", "a word", "ein Wort")])
    (tmp_path / f"pku{SEGMENTED}").write_text("我们 在\n这里\n", encoding="utf-8")
    for name in ("heldout", "heldout_clean", "heldout_concatenated"):
        assert scored_texts(tmp_path, name) == {"a": ItemText("held out")}
    for name in ("wikipedia", "wikipedia_concatenated"):
        assert scored_texts(tmp_path, name) == {"b": ItemText("an article")}
    assert scored_texts(tmp_path, "wmt14_en_de") == {"c": ItemText("a word", accepted=("ein Wort",))}
    assert scored_texts(tmp_path, "pku") == {
        "test/1": ItemText(accepted=("我们 在",)),
        "test/2": ItemText(accepted=("这里",)),
    }


def test_a_fine_tuned_question_has_its_text_or_that_of_its_document(tmp_path: Path) -> None:
    questions = [
        {"id": name, "question": question, "document": 0, "answers": ["an answer"], "digest": ""}
        for name, question in (("a", "What?"), ("b", ""))
    ]
    (tmp_path / "documents.jsonl").write_text(json.dumps("a document") + "\n", encoding="utf-8")
    lines = "".join(json.dumps(question) + "\n" for question in questions)
    for split in ("train", "validation"):
        (tmp_path / f"{split}.jsonl").write_text(lines, encoding="utf-8")
    texts = {"a": "What?", "b": "a document"}
    assert finetuned_texts(tmp_path) == {name: ItemText(text, accepted=("an answer",)) for name, text in texts.items()}
