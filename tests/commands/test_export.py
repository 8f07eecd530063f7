"""A model card says what its numbers are in words of the field."""

import json
from pathlib import Path

import pytest

from paribus.commands.export import METRIC_WORDS, Origin, model_card, score_table, score_words
from paribus.config.explain import summaries
from paribus.config.metrics import PREFERRED
from paribus.reporting.measures import METRICS


@pytest.mark.parametrize(
    ("logged", "told"),
    [
        ("eval/boolq/5shot/acc", "boolq, 5-shot, accuracy"),
        ("eval/boolq/0shot/acc_norm", "boolq, 0-shot, accuracy, by log-probability a character"),
        ("eval/qmsum/0shot/rougeL", "qmsum, 0-shot, ROUGE-L"),
        ("eval/bits_per_byte", "bits per byte, held-out text"),
        ("eval/heldout_clean/bits_per_byte", "bits per byte, held-out text that is unlike all training text"),
        ("eval/wikitext/bits_per_byte", "bits per byte, wikitext"),
        ("another/number", "another/number"),
    ],
)
def test_a_score_is_told_in_words(logged: str, told: str) -> None:
    assert score_words(logged) == told


def test_every_metric_that_tables_know_has_words() -> None:
    assert set(METRIC_WORDS) | set(PREFERRED) <= set(METRICS)


def test_of_what_is_counted_of_tokens_there_is_their_length_and_the_task_of_paribus_is_explained() -> None:
    scores = {"eval/continuation/0shot/acc": 0.5, "text/bytes_per_token": 2.0, "text/entropy": 1.0}
    lines = list(score_table(scores))
    assert "| bytes per token, held-out text | 2 |" in lines and len(lines) == 7
    assert any(line.startswith("`continuation` asks which of four texts") for line in lines)
    assert not any("`continuation`" in line for line in score_table({"eval/boolq/0shot/acc": 0.5}))


def test_a_summary_goes_on_after_the_names_of_authors() -> None:
    assert summaries("encoder")["dropout"].startswith("BPE-dropout (Provilkov et al. ")


@pytest.mark.parametrize("step", [10, 20])
def test_a_model_is_said_to_have_read_all_text_at_the_end_alone(step: int, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"architectures": ["LlamaForCausalLM"]}), encoding="utf-8")
    result = {"steps": 20, "parameters": 3_000_000, "tokens": 2_000_000, "text_bytes": 6_000_000}
    made = {"git": None, "paribus": "1", "python": "3", "packages": {}}
    record = {"name": "a", "identity": {"corpus": {"kind": "pydocs"}}}
    card = model_card(Origin("0", record, step, None, {"result": result, "provenance": made}, {}), tmp_path, "m")
    head, _, table = card.partition("## Model")
    assert f"after step {step} of 20" in head and "2.0M tokens" in head
    assert ("had read a part of that text" in head) == (step < 20)
    assert ("of it read in all steps" in table) == (step < 20)
