"""Prompts, continuations and metrics of our tasks against those of lm-eval's own, request by request.

COPA is not among them: lm-eval puts two spaces before its choices, and the file has a prompt of its own.
"""

from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Any

import datasets
import pytest
from lm_eval.api.task import ConfigurableTask
from lm_eval.tasks._yaml_loader import load_yaml

from paribus.evaluation.benchmarks import BENCHMARKS, _drop_item
from paribus.evaluation.evaluate import load_task
from paribus.evaluation.items import AnswerItem, Item, ItemSet, write_task
from paribus.evaluation.rows import drop_scores, squad_scores
from support.benchmark_records import PROBLEMS, RECORDS

BUILT_IN = {
    "boolq": "super_glue/boolq/default.yaml",
    "hellaswag": "hellaswag/hellaswag.yaml",
    "openbookqa": "openbookqa/openbookqa.yaml",
    "piqa": "piqa/piqa.yaml",
    "siqa": "siqa/siqa.yaml",
    "storycloze": "storycloze/storycloze_2016.yaml",
    "winogrande": "winogrande/default.yaml",
    "arc_easy": "arc/arc_easy.yaml",
    "arc_challenge": "arc/arc_challenge.yaml",
    "commonsense_qa": "commonsense_qa/default.yaml",
    "lambada_openai": "lambada/lambada_openai.yaml",
    "memotrap_proverb_ending": "inverse_scaling/inverse_scaling_memo_trap.yaml",
    "race_high": "race/race.yaml",
}
WRITTEN = {
    "triviaqa": "triviaqa/default.yaml",
    "nq_open": "nq_open/nq_open.yaml",
    "drop": "drop/default.yaml",
    "webqs": "webqs/webqs.yaml",
}
ITEMS = 3
EXAMPLE = {"question": "who won"}


def built_in(name: str) -> dict[str, Any]:
    directory = resources.files("lm_eval") / "tasks"
    config: dict[str, Any] = load_yaml(Path(str(directory / (BUILT_IN | WRITTEN)[name])))
    return config


def theirs(name: str, shots: int) -> ConfigurableTask:
    """lm-eval's own task over equal records."""
    config = built_in(name)
    splits = {config.get(key) for key in ("training_split", "validation_split", "test_split")} - {None}
    records = dict.fromkeys(splits, datasets.Dataset.from_list([RECORDS[name]] * ITEMS))
    if shots:
        records[config["training_split"]] = datasets.Dataset.from_list([RECORDS[name] | EXAMPLE] * ITEMS)
    task = ConfigurableTask(config={**config, "custom_dataset": lambda **_: records, "num_fewshot": shots})
    task.set_fewshot_seed(1)
    task.build_all_requests()
    return task


def ours(name: str, shots: int, directory: Path, example: Mapping[str, Any] = MappingProxyType({})) -> ConfigurableTask:
    """Our task over the same records, as the stage `tasks` writes it."""
    benchmark = BENCHMARKS[name]
    items = [benchmark.item(f"test/{number}", RECORDS[name]) for number in range(ITEMS)]
    shown = [benchmark.item("train/0", RECORDS[name] | example)]
    write_task(directory, name, ItemSet(items, shown, "train split"), benchmark.prompt, benchmark.generation)
    task = load_task(directory, name, shots)
    task.set_fewshot_seed(1)
    task.build_all_requests()
    return task


@pytest.mark.parametrize("name", BUILT_IN)
def test_choices_are_asked_and_scored_as_lm_eval_does(name: str, tmp_path: Path) -> None:
    reference, task = theirs(name, 0), ours(name, 0, tmp_path)
    requests = [instance.args for instance in reference.instances]
    assert [instance.args for instance in task.instances] == requests
    number = len(requests) // ITEMS
    for best in range(number):
        answers = [(-1.0 if place == best else -2.0, place == best) for place in range(number)]
        expected, results = (each.process_results(next(iter(each.eval_docs)), answers) for each in (reference, task))
        assert {metric: results[metric] for metric in expected} == expected
    right = requests[getattr(BENCHMARKS[name].item("x", RECORDS[name]), "gold", 0)]
    prompt = ours(name, 1, tmp_path).instances[0].args[0]
    assert prompt == f"{''.join(right)}\n\n{requests[0][0]}"


@pytest.mark.parametrize("name", WRITTEN)
def test_written_answers_are_asked_for_and_scored_as_lm_eval_does(name: str, tmp_path: Path) -> None:
    reference, task = theirs(name, 0), ours(name, 0, tmp_path)
    requests = [instance.args for instance in task.instances]
    prompts = list(dict.fromkeys(instance.args[0] for instance in reference.instances))
    assert [prompt for prompt, _ in requests] == prompts * ITEMS
    if name != "webqs":  # lm-eval scores its accepted answers instead
        assert requests[0][1]["until"] == reference.instances[0].args[1]["until"]
    if name in ("triviaqa", "nq_open"):
        for answer in ("ann lee", "The Ann", "it's [a]", "Bob", "Ann!"):
            expected, results = (
                each.process_results(next(iter(each.eval_docs)), [answer]) for each in (reference, task)
            )
            assert results == expected, answer
        prompt = ours(name, 1, tmp_path, EXAMPLE).instances[0].args[0]
        assert prompt == theirs(name, 1).instances[0].args[0]


def test_a_squad_prompt_is_that_of_lm_eval() -> None:
    from lm_eval.tasks.squadv2.task import SQuAD2

    item = BENCHMARKS["squad"].item("x", RECORDS["squad"])
    assert isinstance(item, AnswerItem)
    assert item.query == SQuAD2.doc_to_text(None, RECORDS["squad"])
    assert item.answers == (("Ann",), ("Ann",))


def test_records_of_files_and_of_the_hub_give_the_same_item() -> None:
    pairs: dict[str, dict[str, Any]] = {
        "siqa": {"context": "Al left.", "question": "Why?", "choices": ["anger", "love", "hunger"], "label": 1},
        "arc_easy": {"query": "Question: What is ice?", "choices": RECORDS["arc_easy"]["choices"]["text"], "gold": 1},
        "copa": {"query": "The man fell because", "choices": ["it was icy.", "he sang."], "gold": 0},
        "lambada_openai": {"context": "She did not care about", "continuation": "signs"},
        "memotrap_proverb_ending": RECORDS["memotrap_proverb_ending"]
        | {"classes": "[' heavy.', ' fonder.']", "answer_index": "0"},
        "race_high": RECORDS["race_high"] | {"problems": PROBLEMS},
    }
    for name, record in pairs.items():
        assert BENCHMARKS[name].item("x", record) == BENCHMARKS[name].item("x", RECORDS[name])


LABEL_WORDS = {
    "sst2": ("negative", "positive"),
    "tweet_hate": ("non-hate", "hate"),
    "ag_news": ("World", "Sports", "Business", "Sci/Tech"),
}
"""By label, of MetaICL's code."""


def test_label_words_are_those_of_metaicl_on_a_line_of_their_own(tmp_path: Path) -> None:
    for name, words in LABEL_WORDS.items():
        item = BENCHMARKS[name].item("x", RECORDS[name])
        assert isinstance(item, Item)
        assert (item.choices, item.gold) == (words, RECORDS[name]["label"]), name
        requests = ["".join(instance.args) for instance in ours(name, 0, tmp_path).instances[: len(words)]]
        assert requests == [f"{item.query}\n{word}" for word in words]


def test_squad_scores_take_the_best_answer() -> None:
    cases = [
        ("1976", ["1976"], 1.0, 1.0),
        ("the Denver Broncos!", ["Denver Broncos", "The Broncos"], 1.0, 1.0),
        ("Carolina Panthers", ["Denver Broncos", "Carolina"], 0.0, 2 / 3),
        ("a an the", ["Denver"], 0.0, 0.0),
        ("", ["Denver"], 0.0, 0.0),
        ("to be or to be", ["to be"], 0.0, 4 / 7),
    ]
    for prediction, answers, exact, f1 in cases:
        scores = squad_scores(prediction, [[answer] for answer in answers])
        assert scores == {"exact_match": exact, "f1": pytest.approx(f1)}, prediction


def test_drop_scores_align_spans_and_compare_numbers() -> None:
    cases = [
        ("3.0", [["3"]], 1.0, 1.0),
        ("the Bears", [["Bears"]], 1.0, 1.0),
        ("24 points", [["23 points"]], 0.0, 0.0),
        ("John Smith", [["Smith"], ["Jane"]], 0.0, 0.67),
        ("Ann", [["Ann", "Bob"]], 0.0, 0.5),
    ]
    for prediction, answers, exact, f1 in cases:
        assert drop_scores(prediction, answers) == {"exact_match": exact, "f1": pytest.approx(f1)}, prediction


def test_answers_that_others_gave_to_drop_are_right_too() -> None:
    date = {"day": "", "month": "", "year": ""}
    record = {"passage": "p", "question": "q", "answer": {"number": "3", "spans": [], "date": date}}
    record["validated_answers"] = {"number": ["", "3"], "spans": [["three", "drei"], []], "date": [date, date]}
    assert _drop_item("1", record).answers == (("3",), ("three", "drei"))
