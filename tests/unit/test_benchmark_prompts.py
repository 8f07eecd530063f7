"""Prompts, continuations and metrics of our tasks against those of lm-eval's own, request by request.

COPA is not among them: lm-eval puts two spaces before its choices, and the file has a prompt of its own.
"""

from importlib import resources
from pathlib import Path
from typing import Any

import datasets
import pytest
from lm_eval.api.task import ConfigurableTask
from lm_eval.tasks._yaml_loader import load_yaml

from benchmark_records import PROBLEMS, RECORDS
from paribus.evaluation.harness import load_task
from paribus.evaluation.items import ItemSet
from paribus.evaluation.suites.registry import BENCHMARKS
from paribus.evaluation.task_files import write_task

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
ITEMS = 3


def built_in(name: str) -> dict[str, Any]:
    directory = resources.files("lm_eval") / "tasks"
    config: dict[str, Any] = load_yaml(Path(str(directory / BUILT_IN[name])))
    return config


def theirs(name: str, shots: int) -> ConfigurableTask:
    """lm-eval's own task over equal records."""
    config = built_in(name)
    splits = {config.get(key) for key in ("training_split", "validation_split", "test_split")} - {None}
    records = datasets.Dataset.from_list([RECORDS[name]] * ITEMS)
    found = dict.fromkeys(splits, records)
    task = ConfigurableTask(config={**config, "custom_dataset": lambda **_: found, "num_fewshot": shots})
    task.set_fewshot_seed(1)
    task.build_all_requests()
    return task


def ours(name: str, shots: int, directory: Path) -> ConfigurableTask:
    """Our task over the same records, as the stage `tasks` writes it."""
    benchmark = BENCHMARKS[name]
    items = [benchmark.item(f"test/{number}", RECORDS[name]) for number in range(ITEMS)]
    write_task(directory, name, ItemSet(items, items, "train split"), benchmark.prompt)
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


@pytest.mark.parametrize("name", BUILT_IN)
def test_hub_names_and_splits_are_those_of_lm_evals_own_task(name: str) -> None:
    config, benchmark = built_in(name), BENCHMARKS[name]
    scored = config.get("test_split") or config.get("validation_split")
    if name == "memotrap_proverb_ending":
        assert benchmark.hub is None
        return
    assert benchmark.hub is not None
    assert (benchmark.hub.path, benchmark.hub.name) == (config["dataset_path"], config.get("dataset_name"))
    assert benchmark.split == scored


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


def test_the_label_words_of_classification_follow_their_template(tmp_path: Path) -> None:
    def asked(name: str) -> list[str]:
        directory = tmp_path / name
        directory.mkdir()
        return ["".join(instance.args) for instance in ours(name, 0, directory).instances[:2]]

    assert asked("sst2") == ["a fine film It was terrible.", "a fine film It was great."]
    assert asked("tweet_hate") == [f"be kind This is {word} to hate speech." for word in ("unrelated", "related")]
    assert asked("ag_news")[1] == "Talks fail. The talks failed. Topic: Sports."
    assert len(BENCHMARKS["dbpedia"].item("x", RECORDS["dbpedia"]).choices) == 14  # type: ignore[union-attr]
