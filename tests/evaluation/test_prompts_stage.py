"""The stage `prompts`: what is known of a tokenizer and the tasks before a model is trained."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from paribus.config.groups.evaluation import EvaluationConfig
from paribus.evaluation.items import AnswerItem, AnyItem, BlankItem, Item, TextItem, read_records, write_records
from paribus.evaluation.prompts import ItemTokens, Spellings, build_prompts, item_tokens
from paribus.evaluation.stage import build_scores, build_tasks
from paribus.stage import StageContext
from paribus.tokenization import Tokenizer
from support.evaluations import WORDS, ByteEncoder, stage_context, write_checkpoints, write_drawn_corpus

EVALUATION = EvaluationConfig(continuation_items=20, heldout_documents=10)
TEXTS = [" ".join(WORDS)] * 3 + [" ".join(reversed(WORDS))] * 3


@pytest.fixture(params=["crossing", "words", "bytes"])
def tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    end = ["<|endoftext|>"]
    if request.param == "bytes":
        return Tokenizer.train([], algorithm="bytes", special_tokens=end)
    pretokenizer = "none" if request.param == "crossing" else "gpt2"
    return Tokenizer.train(TEXTS, vocab_size=300, pretokenizer=pretokenizer, special_tokens=end)


def prompts_of(root: Path, tokenizer: Tokenizer) -> tuple[StageContext, dict[str, Any]]:
    write_drawn_corpus(root)
    build_tasks(stage_context(root, EVALUATION, "tasks", "corpus"))
    tokenizer.save(root / "tokens" / "tokenizer")
    context = stage_context(root, EVALUATION, "prompts", "tokens", "tasks")
    build_prompts(context)
    return context, json.loads((context.output / "prompts.json").read_text())["tasks"]["continuation"]


def test_the_counts_before_training_are_those_of_scoring(tmp_path: Path, tokenizer: Tokenizer) -> None:
    _, counted = prompts_of(tmp_path, tokenizer)
    write_checkpoints(tmp_path, tokenizer, steps=(10,))
    scores = stage_context(tmp_path, EVALUATION, "evaluation", "training", "tasks", "corpus")
    build_scores(scores)
    scored = json.loads((scores.output / "statistics.json").read_text())["tasks"]["continuation"]
    assert counted["crossed_items"] == scored["crossed_items"]["0"]
    assert counted["crossed_choices"] == scored["crossed_choices"]["0"]
    assert counted["long_prompts"] == {shots: len(cut) for shots, cut in scored["truncated_items"].items()}
    assert (counted["items"], counted["choices"]) == (20, 80)


def cut(tokenizer: Any, record: dict[str, Any], delimiter: str) -> ItemTokens:
    return item_tokens(tokenizer, lambda: Spellings(tokenizer.token_bytes()), record, delimiter, ("t", 0))


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (Item("1", "four", ("a", "bb"), 0), ItemTokens(4 + 3, 2, 0)),
        (BlankItem("2", ("four", "a"), "bb", 0), ItemTokens(4 + 3, 2, 0)),
        (TextItem("3", "four", "12"), ItemTokens(4 + 3, 1, 0)),
        (AnswerItem("4", "four", (("1", "1"), ("1",))), ItemTokens(4 + 5, 0, 0)),
        (Item("5", "four", ("a", "ar"), 0), ItemTokens(4 + 3, 2, 0)),
    ],
)
def test_every_kind_of_item_is_cut_with_what_joins_its_answer(
    tmp_path: Path, item: AnyItem, expected: ItemTokens
) -> None:
    write_records(tmp_path / "items.jsonl", [asdict(item)])
    (record,) = read_records(tmp_path / "items.jsonl")
    assert cut(ByteEncoder(), record, " ") == expected


def test_a_token_over_the_boundary_is_one_crossing_choice(tmp_path: Path) -> None:
    write_records(tmp_path / "items.jsonl", [asdict(Item("1", "four", ("a", "bb"), 0))])
    (record,) = read_records(tmp_path / "items.jsonl")
    assert cut(ByteEncoder((b"ra",)), record, "") == ItemTokens(6, 2, 1)
