"""The stages `tasks` and `evaluation` on a tiny corpus and tiny models."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

from paribus.config.groups.evaluation import EvaluationConfig
from paribus.errors import ConfigurationError
from paribus.evaluation.benchmarks import BENCHMARKS
from paribus.evaluation.evaluate import TEXT_NUMBERS, load_task
from paribus.evaluation.items import read_records
from paribus.evaluation.stage import build_scores, build_tasks
from paribus.modeling.models import load_model
from paribus.stage import StageContext
from paribus.tokenization import Tokenizer
from support.benchmark_records import RECORDS
from support.evaluations import WORDS, evaluation_context, write_checkpoints, write_drawn_corpus

MEASURES = {"acc", "acc_norm", "acc_bytes", "choice_bits"}


@pytest.fixture
def bpe() -> Tokenizer:
    return Tokenizer.train([" ".join(WORDS)] * 3, vocab_size=300, special_tokens=["<|endoftext|>"])


@pytest.fixture
def scored(tmp_path: Path, bpe: Tokenizer) -> Callable[..., tuple[StageContext, dict[str, Any]]]:
    """Run both stages with an evaluation configuration in a folder of its own."""

    def run(tokenizer: Tokenizer = bpe, name: str = "run", **fields: Any) -> tuple[StageContext, dict[str, Any]]:
        root = tmp_path / name
        evaluation = EvaluationConfig(**({"continuation_items": 20, "heldout_documents": 20} | fields))
        write_drawn_corpus(root)
        write_checkpoints(root, tokenizer)
        build_tasks(evaluation_context(root, evaluation, "tasks", "corpus"))
        context = evaluation_context(root, evaluation, "evaluation", "training", "tasks", "corpus")
        return context, build_scores(context)

    return run


def rows(context: StageContext, name: str = "items") -> list[dict[str, Any]]:
    table: list[dict[str, Any]] = pq.read_table(context.output / f"{name}.parquet").to_pylist()
    return table


def statistics(context: StageContext) -> dict[str, Any]:
    numbers: dict[str, Any] = json.loads((context.output / "statistics.json").read_text())
    return numbers


def heldout(context: StageContext) -> list[dict[str, Any]]:
    """Documents to be scored."""
    return [json.loads(line) for line in (context.inputs["tasks"] / "heldout.jsonl").read_text().splitlines()]


def test_every_checkpoint_task_shot_count_item_and_measure_has_one_value(scored: Any) -> None:
    context, result = scored(last_checkpoints=2)
    table = rows(context)
    keys = [(row["checkpoint"], row["task"], row["shots"], row["item"], row["metric"]) for row in table]
    assert len(set(keys)) == len(keys) == 2 * 1 * 2 * 20 * 4
    assert {row["metric"] for row in table} == MEASURES
    assert {row["checkpoint"] for row in table} == {10, 20} == set(result["checkpoints"])
    values = [row["value"] for row in table if row["shots"] == 5 and row["metric"] == "acc"]
    assert result["metrics"]["eval/continuation/5shot/acc"] == pytest.approx(sum(values) / len(values))
    names = {f"eval/continuation/{shots}shot/{measure}" for shots in (0, 5) for measure in MEASURES}
    names |= {"eval/bits_per_byte", "eval/heldout_concatenated/bits_per_byte"}
    of_last = {f"embeddings/uniformity{part}" for part in ("", "_frequent", "_medium", "_rare", "_unused")}
    of_last |= {f"text/{name}" for name in TEXT_NUMBERS}
    expected = {(name, step) for name in names for step in (10, 20)} | {(name, 20) for name in of_last}
    assert {(name, step) for name, _, step in context.listener.metrics} == expected


def test_every_tokenizer_is_asked_the_same_questions(scored: Any) -> None:
    plain = Tokenizer.train([], algorithm="bytes", special_tokens=["<|endoftext|>"])
    contexts = [scored(name="bpe")[0], scored(name="bytes", tokenizer=plain)[0]]
    questions = [[(row["item"], row["doc_hash"], row["metric"]) for row in rows(context)] for context in contexts]
    assert questions[0] == questions[1]
    files = [[path.read_bytes() for path in sorted(context.inputs["tasks"].iterdir())] for context in contexts]
    assert files[0] == files[1]
    in_merges, in_bytes = (statistics(context)["tasks"]["continuation"]["truncated_items"] for context in contexts)
    items = sorted({item for item, _, _ in questions[0]})
    assert len(items) == 20
    assert in_bytes == {"0": items, "5": items}
    assert in_merges["0"] == []


def test_held_out_bits_and_statistics_are_over_the_texts_own_bytes(scored: Any, bpe: Tokenizer) -> None:
    context, result = scored()
    documents, table = heldout(context), rows(context, "heldout")
    assert [row["document"] for row in table] == [document["id"] for document in documents]
    assert [row["bytes"] for row in table] == [len(document["text"].encode()) for document in documents]
    assert len(table) == 20
    size = sum(row["bytes"] for row in table)
    assert result["metrics"]["eval/bits_per_byte"] == pytest.approx(sum(row["bits"] for row in table) / size)
    tokens = sum(len(bpe.encode(document["text"])) for document in documents)
    assert statistics(context)["heldout"]["bytes_per_token"] == pytest.approx(size / tokens)
    assert statistics(context)["tasks"]["continuation"]["chance"] == 0.25


def test_embeddings_of_the_last_checkpoint_are_measured_by_the_frequency_of_tokens(scored: Any, bpe: Tokenizer) -> None:
    context, _ = scored(last_checkpoints=2)
    about = statistics(context)["embeddings"]
    texts = [document["text"] for document in heldout(context)]
    counts = np.bincount(bpe.encode_batch(texts)[0], minlength=bpe.vocab_size).tolist()
    table = {row["id"]: row["count"] for row in rows(context, "embeddings")}
    assert table == {token: count for token, count in enumerate(counts) if token != bpe.eos_id}
    used = [token for token, count in table.items() if count]
    assert about["checkpoint"] == 20
    assert about["tokens"] == {"used": len(used), "unused": bpe.vocab_size - 1 - len(used)}
    model = load_model(context.inputs["training"] / "step_00000020")
    for side, weights in (("input", model.embedding), ("output", model.output)):
        unit = torch.nn.functional.normalize(weights.weight.detach()[used])
        expected = float(torch.pdist(unit.double()).square().mul(-2).exp().mean().log())
        assert about["uniformity"][side]["used"] == pytest.approx(expected, abs=1e-4)


def test_prompts_hold_only_examples_of_the_pool_and_follow_the_seed(scored: Any) -> None:
    tasks = scored()[0].inputs["tasks"]
    examples = read_records(tasks / "continuation.fewshot.jsonl")
    pool = {item["query"] + item["choices"][item["gold"]] for item in examples}

    def prompts(seed: int) -> list[str]:
        task = load_task(tasks, "continuation", 5)
        task.set_fewshot_seed(seed)
        task.build_all_requests()
        return [instance.args[0] for instance in task.instances if instance.idx == 0]

    for prompt in prompts(1):
        *shown, question = prompt.split("\n\n")
        assert len(set(shown)) == 5 and set(shown) <= pool
        assert not any(example.startswith(question) for example in shown)
    assert prompts(1) == prompts(1) != prompts(2)


def test_more_checkpoints_than_were_kept_are_refused(scored: Any) -> None:
    message = r"evaluation\.last_checkpoints: 3 are to be scored or averaged, .* at 2 of .* 20 steps"
    with pytest.raises(ConfigurationError, match=message):
        scored(last_checkpoints=3)


def test_more_examples_than_there_are_are_refused_before_training(tmp_path: Path) -> None:
    write_drawn_corpus(tmp_path)
    context = evaluation_context(tmp_path, EvaluationConfig(shots=(0, 60)), "tasks", "corpus")
    with pytest.raises(ConfigurationError, match=r"evaluation\.shots asks for 60 examples .* task continuation has 1"):
        build_tasks(context)


def test_each_kind_of_item_has_its_own_measures(scored: Any, tmp_path: Path) -> None:
    measures = {
        "triviaqa": {"exact_match"},
        "squad": {"exact_match", "f1"},
        "drop": {"exact_match", "f1"},
        "winogrande": {"acc", "choice_bits"},
        "ag_news": MEASURES,
        "memotrap_proverb_ending": MEASURES | {"exact_match"},
        "lambada_openai": {"acc", "target_bits"},
    }
    for name in measures:
        directory = tmp_path / "data" / BENCHMARKS[name].directory
        directory.mkdir(parents=True)
        records = [json.dumps(RECORDS[name] | {"number": number}) for number in range(4)]
        (directory / f"{BENCHMARKS[name].split}.jsonl").write_text("\n".join(records))
        example = {"question": "other?", "sentence": "Other _ text.", "text": "Other text.", "prompt": "Other"}
        (directory / "train.jsonl").write_text(json.dumps(RECORDS[name] | example))
    shots_of = {"lambada_openai": (0,), "drop": (1,)}
    context, result = scored(tasks=tuple(measures), data=str(tmp_path / "data"), shots=(0, 1), shots_of=shots_of)
    expected = {
        (name, shots, metric)
        for name, metrics in measures.items()
        for shots in shots_of.get(name, (0, 1))
        for metric in metrics
    }
    assert Counter((row["task"], row["shots"], row["metric"]) for row in rows(context)) == dict.fromkeys(expected, 4)
    assert 0 <= result["metrics"]["eval/squad/1shot/f1"] <= 1
    chance = {name: about["chance"] for name, about in statistics(context)["tasks"].items()}
    assert (chance["squad"], chance["winogrande"], chance["ag_news"]) == (0, 0.5, 0.25)


def test_a_vocabulary_trained_on_with_dropout_is_scored_with_all_merges(scored: Any, bpe: Tokenizer) -> None:
    (plain, _), (dropped, _) = scored(shots=(0,)), scored(bpe.with_encoder("dropout"), name="dropped", shots=(0,))
    assert Tokenizer.load(dropped.inputs["training"] / "step_00000020" / "tokenizer").settings.dropout > 0
    for name in ("items.parquet", "heldout.parquet", "statistics.json"):
        assert (dropped.output / name).read_bytes() == (plain.output / name).read_bytes()
