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

from paribus.evaluation.benchmarks import BENCHMARKS
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
    found = dict.fromkeys(splits, datasets.Dataset.from_list([RECORDS[name]] * ITEMS))
    if shots:
        found[config["training_split"]] = datasets.Dataset.from_list([RECORDS[name] | EXAMPLE] * ITEMS)
    task = ConfigurableTask(config={**config, "custom_dataset": lambda **_: found, "num_fewshot": shots})
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
def test_requests_are_those_of_lm_evals_own_task(name: str, tmp_path: Path) -> None:
    expected, found = theirs(name, 0), ours(name, 0, tmp_path)
    assert [instance.args for instance in found.instances] == [instance.args for instance in expected.instances]


@pytest.mark.parametrize("name", BUILT_IN)
def test_examples_in_the_prompt_are_written_as_lm_eval_writes_them(name: str, tmp_path: Path) -> None:
    shown = ours(name, 1, tmp_path).instances[0].args[0]
    asked = theirs(name, 0).instances
    right = asked[getattr(BENCHMARKS[name].item("x", RECORDS[name]), "gold", 0)].args
    assert shown == f"{''.join(right)}\n\n{asked[0].args[0]}"


@pytest.mark.parametrize("name", WRITTEN)
def test_questions_whose_answer_is_written_are_asked_as_lm_eval_asks_them(name: str, tmp_path: Path) -> None:
    expected, found = theirs(name, 0), ours(name, 0, tmp_path)
    asked = [instance.args for instance in found.instances]
    prompts = list(dict.fromkeys(instance.args[0] for instance in expected.instances))
    assert [prompt for prompt, _ in asked] == prompts * ITEMS
    if name != "webqs":  # lm-eval scores its accepted answers instead
        assert asked[0][1]["until"] == expected.instances[0].args[1]["until"]


@pytest.mark.parametrize("name", ["triviaqa", "nq_open"])
def test_examples_with_written_answers_are_those_of_lm_eval(name: str, tmp_path: Path) -> None:
    assert ours(name, 1, tmp_path, EXAMPLE).instances[0].args[0] == theirs(name, 1).instances[0].args[0]


@pytest.mark.parametrize("name", ["triviaqa", "nq_open"])
@pytest.mark.parametrize("answer", ["ann lee", "The Ann", "it's [a]", "Bob", "Ann!"])
def test_exact_match_is_that_of_lm_evals_own_task(name: str, answer: str, tmp_path: Path) -> None:
    tasks = (theirs(name, 0), ours(name, 0, tmp_path))
    expected, found = (task.process_results(next(iter(task.eval_docs)), [answer]) for task in tasks)
    assert found == expected


def test_a_squad_prompt_is_that_of_lm_eval() -> None:
    from lm_eval.tasks.squadv2.task import SQuAD2

    item = BENCHMARKS["squad"].item("x", RECORDS["squad"])
    assert isinstance(item, AnswerItem)
    assert item.query == SQuAD2.doc_to_text(None, RECORDS["squad"])
    assert item.answers == (("Ann",), ("Ann",))


@pytest.mark.parametrize("name", BUILT_IN)
def test_results_are_those_of_lm_evals_own_task(name: str, tmp_path: Path) -> None:
    expected, found = theirs(name, 0), ours(name, 0, tmp_path)
    number = len(found.instances) // ITEMS
    for best in range(number):
        answers = [(-1.0 if place == best else -2.0, place == best) for place in range(number)]
        docs = [next(iter(task.eval_docs)) for task in (expected, found)]
        left, right = (task.process_results(doc, answers) for task, doc in zip((expected, found), docs, strict=True))
        assert {metric: right[metric] for metric in left} == left


def test_every_benchmark_has_a_record_of_its_schema_or_a_sibling_that_has() -> None:
    siblings = {name for name in BENCHMARKS if name.startswith("memotrap")}
    for name in set(RECORDS) | siblings:
        assert name in BENCHMARKS
    assert set(BENCHMARKS) - siblings <= set(RECORDS)


def test_files_and_hub_records_of_one_question_give_one_item() -> None:
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
    "amazon": ("negative", "positive"),
    "yelp": ("negative", "positive"),
    "tweet_hate": ("non-hate", "hate"),
    "tweet_offensive": ("non-offensive", "hate"),
    "ag_news": ("World", "Sports", "Business", "Sci/Tech"),
    "dbpedia": (
        "Company", "EducationalInstitution", "Artist", "Athlete", "OfficeHolder", "MeanOfTransportation", "Building",
        "NaturalPlace", "Village", "Animal", "Plant", "Album", "Film", "WrittenWork",
    ),
}  # fmt: skip
"""By label, of MetaICL's code."""


@pytest.mark.parametrize("name", LABEL_WORDS)
def test_the_label_words_of_classification_are_those_of_metaicl_on_a_line_of_their_own(
    name: str, tmp_path: Path
) -> None:
    words = LABEL_WORDS[name]
    item = BENCHMARKS[name].item("x", RECORDS[name])
    assert isinstance(item, Item)
    assert (item.choices, item.gold) == (words, RECORDS[name]["label"])
    asked = ["".join(instance.args) for instance in ours(name, 0, tmp_path).instances[: len(words)]]
    assert asked == [f"{item.query}\n{word}" for word in words]


@pytest.mark.parametrize(
    ("prediction", "answers", "exact", "f1"),
    [
        ("1976", ["1976"], 1.0, 1.0),
        ("the Denver Broncos!", ["Denver Broncos", "The Broncos"], 1.0, 1.0),
        ("Broncos", ["Denver Broncos"], 0.0, 2 / 3),
        ("Carolina Panthers", ["Denver Broncos", "Carolina"], 0.0, 2 / 3),
        ("a an the", ["Denver"], 0.0, 0.0),
        ("", ["Denver"], 0.0, 0.0),
        ("to be or to be", ["to be"], 0.0, 4 / 7),
    ],
)
def test_squad_scores_take_the_best_answer(prediction: str, answers: list[str], exact: float, f1: float) -> None:
    scores = squad_scores(prediction, [[answer] for answer in answers])
    assert scores == {"exact_match": exact, "f1": pytest.approx(f1)}


@pytest.mark.parametrize(
    ("prediction", "answers", "exact", "f1"),
    [
        ("3.0", [["3"]], 1.0, 1.0),
        ("the Bears", [["Bears"]], 1.0, 1.0),
        ("24 points", [["23 points"]], 0.0, 0.0),
        ("John Smith", [["Smith"], ["Jane"]], 0.0, 0.67),
        ("Ann", [["Ann", "Bob"]], 0.0, 0.5),
    ],
)
def test_drop_scores_align_spans_and_compare_numbers(
    prediction: str, answers: list[list[str]], exact: float, f1: float
) -> None:
    assert drop_scores(prediction, answers) == {"exact_match": exact, "f1": pytest.approx(f1)}
