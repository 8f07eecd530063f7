"""The stages `tasks` and `evaluation` on a tiny corpus and tiny models."""

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

from paribus.config.groups.evaluation import EvaluationConfig
from paribus.errors import ConfigurationError
from paribus.evaluation.items import Item, read_records
from paribus.evaluation.stage import build_scores, build_tasks
from paribus.modeling.models import load_model
from paribus.stage import StageContext
from paribus.tokenization import Tokenizer
from support.benchmark_records import RECORDS
from support.evaluations import WORDS, brute_force, stage_context, write_checkpoints, write_drawn_corpus
from support.real_data import RealData

HELDOUT = {"eval/bits_per_byte", "eval/heldout_concatenated/bits_per_byte"}
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
        build_tasks(stage_context(root, evaluation, "tasks", "corpus"))
        context = stage_context(root, evaluation, "evaluation", "training", "tasks", "corpus")
        return context, build_scores(context)

    return run


def rows(context: StageContext, name: str = "items") -> list[dict[str, Any]]:
    table: list[dict[str, Any]] = pq.read_table(context.output / f"{name}.parquet").to_pylist()
    return table


def test_every_checkpoint_task_shot_count_item_and_measure_has_one_value(scored: Any) -> None:
    context, result = scored(last_checkpoints=2)
    table = rows(context)
    keys = [(row["checkpoint"], row["task"], row["shots"], row["item"], row["metric"]) for row in table]
    assert len(set(keys)) == len(keys) == 2 * 1 * 2 * 20 * 4
    assert {row["metric"] for row in table} == MEASURES
    assert {row["checkpoint"] for row in table} == {10, 20} == set(result["checkpoints"])
    values = [row["value"] for row in table if row["shots"] == 5 and row["metric"] == "acc"]
    assert result["metrics"]["eval/continuation/5shot/acc"] == pytest.approx(sum(values) / len(values))
    reported = {(name, step) for name, _, step in context.listener.metrics}
    names = {f"eval/continuation/{shots}shot/{measure}" for shots in (0, 5) for measure in MEASURES}
    from paribus.evaluation.evaluate import TEXT_NUMBERS

    text = {(name, step) for name, step in reported if name.startswith("text/")}
    shape = {(name, step) for name, step in reported if name.startswith("embeddings/")}
    assert shape == {(f"embeddings/uniformity{part}", 20) for part in ("", "_frequent", "_medium", "_rare", "_unused")}
    assert reported - text - shape == {(name, step) for name in names | HELDOUT for step in (10, 20)}
    assert text == {(f"text/{name}", 20) for name in TEXT_NUMBERS}


def test_scores_do_not_depend_on_the_batch_size(scored: Any) -> None:
    (one, _), (many, _) = scored(name="one", batch_tokens=1), scored(name="many", batch_tokens=4096)
    for table, value in (("items", "value"), ("heldout", "bits")):
        left, right = rows(one, table), rows(many, table)
        assert [row[value] for row in left] == pytest.approx([row[value] for row in right], rel=1e-4, abs=1e-4)


def test_every_tokenizer_is_asked_the_same_questions(scored: Any) -> None:
    plain = Tokenizer.train([], algorithm="bytes", special_tokens=["<|endoftext|>"])
    (first, _), (second, _) = scored(name="bpe"), scored(name="bytes", tokenizer=plain)
    identity = [(row["item"], row["doc_hash"], row["metric"]) for row in rows(first)]
    assert identity == [(row["item"], row["doc_hash"], row["metric"]) for row in rows(second)]
    files = [sorted(path for path in context.inputs["tasks"].iterdir()) for context in (first, second)]
    assert [path.read_bytes() for path in files[0]] == [path.read_bytes() for path in files[1]]
    long = json.loads((second.output / "statistics.json").read_text())["tasks"]["continuation"]
    items = sorted({row["item"] for row in rows(second)})
    assert len(items) == 20
    assert long["truncated_items"] == {"0": items, "5": items}
    short = json.loads((first.output / "statistics.json").read_text())["tasks"]["continuation"]
    assert short["truncated_items"]["0"] == []


def test_held_out_bits_and_statistics_are_over_the_texts_own_bytes(scored: Any, bpe: Tokenizer) -> None:
    context, result = scored()
    documents = [json.loads(line) for line in (context.inputs["tasks"] / "heldout.jsonl").read_text().splitlines()]
    table = rows(context, "heldout")
    assert [row["document"] for row in table] == [document["id"] for document in documents]
    assert [row["bytes"] for row in table] == [len(document["text"].encode()) for document in documents]
    assert len(table) == 20
    size = sum(row["bytes"] for row in table)
    bits = sum(row["bits"] for row in table) / size
    assert result["metrics"]["eval/bits_per_byte"] == pytest.approx(bits)
    statistics = json.loads((context.output / "statistics.json").read_text())
    tokens = sum(len(bpe.encode(document["text"])) for document in documents)
    assert statistics["heldout"]["bytes_per_token"] == pytest.approx(size / tokens)
    assert statistics["tasks"]["continuation"]["chance"] == 0.25


def test_embeddings_of_the_last_checkpoint_are_measured_and_projected_by_class_of_frequency(
    scored: Any, bpe: Tokenizer
) -> None:
    context, _ = scored(last_checkpoints=2)
    about = json.loads((context.output / "statistics.json").read_text())["embeddings"]
    table = pq.read_table(context.output / "embeddings.parquet").to_pydict()
    texts = [json.loads(line)["text"] for line in (context.inputs["tasks"] / "heldout.jsonl").read_text().splitlines()]
    counts = np.bincount(bpe.encode_batch(texts)[0], minlength=bpe.vocab_size)
    assert dict(zip(table["id"], table["count"], strict=True)) == {
        token: count for token, count in enumerate(counts.tolist()) if token != bpe.eos_id
    }
    used = [token for token, count in zip(table["id"], table["count"], strict=True) if count]
    assert about["checkpoint"] == 20
    assert about["tokens"] == {"used": len(used), "unused": bpe.vocab_size - 1 - len(used)}
    model = load_model(context.inputs["training"] / "step_00000020")
    for side, weights in (("input", model.embedding), ("output", model.output)):
        unit = torch.nn.functional.normalize(weights.weight.detach()[used])
        expected = float(torch.pdist(unit.double()).square().mul(-2).exp().mean().log())
        assert about["uniformity"][side]["used"] == pytest.approx(expected, abs=1e-4)


def test_prompts_hold_only_examples_of_the_pool_and_follow_the_seed(scored: Any) -> None:
    from paribus.evaluation.evaluate import load_task

    tasks = scored()[0].inputs["tasks"]
    pool = {
        item["query"] + item["choices"][item["gold"]] for item in read_records(tasks / "continuation.fewshot.jsonl")
    }

    def prompts(seed: int) -> list[str]:
        task = load_task(tasks, "continuation", 5)
        task.set_fewshot_seed(seed)
        task.build_all_requests()
        return [instance.args[0] for instance in task.instances if instance.idx == 0]

    for prompt in prompts(1):
        *examples, question = prompt.split("\n\n")
        assert len(set(examples)) == 5
        assert set(examples) <= pool
        assert not any(example.startswith(question) for example in examples)
    assert prompts(1) == prompts(1) != prompts(2)


def test_lm_eval_itself_reads_the_task_from_inside_its_directory(
    scored: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import datasets
    from lm_eval.tasks import TaskManager

    from paribus.evaluation.evaluate import load_task

    tasks = scored()[0].inputs["tasks"].rename(tmp_path / "moved")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tasks)
    theirs = TaskManager(include_path=".", include_defaults=False).load(["continuation"])["tasks"]["continuation"]
    theirs.build_all_requests()
    ours = load_task(tasks, "continuation", 0)
    ours.build_all_requests()
    assert [instance.args for instance in theirs.instances] == [instance.args for instance in ours.instances]


def test_more_checkpoints_than_were_kept_are_refused(scored: Any) -> None:
    with pytest.raises(
        ConfigurationError,
        match=r"evaluation\.last_checkpoints: 3 are to be scored or averaged, .* at 2 of .* 20 steps",
    ):
        scored(last_checkpoints=3)


def test_more_examples_than_there_are_is_refused_before_training(tmp_path: Path) -> None:
    write_drawn_corpus(tmp_path)
    context = stage_context(tmp_path, EvaluationConfig(shots=(0, 60)), "tasks", "corpus")
    with pytest.raises(ConfigurationError, match=r"evaluation\.shots asks for 60 examples .* task continuation has 1"):
        build_tasks(context)


def test_each_kind_of_item_is_scored_from_real_files(scored: Any, real_data: RealData) -> None:
    names = ("ag_news", "tweet_hate", "memotrap_history_of_science", "lambada_openai", "siqa")
    own = {"ag_news": (3,), "tweet_hate": (2,), "lambada_openai": (0,)}
    data = str(real_data.benchmarks)
    context, result = scored(tasks=names, data=data, limit=3, shots=(0, 1), shots_of=own)
    assert {(row["task"], row["shots"]) for row in rows(context)} == {
        (name, shots) for name in names for shots in own.get(name, (0, 1))
    }
    assert {row["metric"] for row in rows(context) if row["task"] == "lambada_openai"} == {"acc", "target_bits"}
    assert {row["metric"] for row in rows(context) if row["task"] == "ag_news"} == MEASURES
    memotrap = {row["metric"] for row in rows(context) if row["task"] == "memotrap_history_of_science"}
    assert memotrap == MEASURES | {"exact_match"}
    assert result["metrics"]["eval/lambada_openai/0shot/target_bits"] > 0


def test_answers_are_written_and_compared_with_the_accepted_ones(scored: Any, tmp_path: Path) -> None:
    names = ("triviaqa", "squad", "drop", "winogrande")
    for name in names:
        directory = tmp_path / "data" / name
        directory.mkdir(parents=True)
        records = [RECORDS[name] | {"number": number} for number in range(4)]
        (directory / "validation.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
        other = {"question": "other?", "sentence": "Other _ text."}
        (directory / "train.jsonl").write_text(json.dumps(RECORDS[name] | other) + "\n")
    context, result = scored(tasks=names, data=str(tmp_path / "data"), shots=(0, 1))
    metrics = {name: {row["metric"] for row in rows(context) if row["task"] == name} for name in names}
    assert metrics["triviaqa"] == {"exact_match"}
    assert metrics["squad"] == metrics["drop"] == {"exact_match", "f1"}
    assert metrics["winogrande"] == {"acc", "choice_bits"}
    assert len(rows(context)) == 2 * 4 * (1 + 2 + 2 + 2)
    assert 0 <= result["metrics"]["eval/squad/1shot/f1"] <= 1
    statistics = json.loads((context.output / "statistics.json").read_text())["tasks"]
    assert statistics["squad"]["chance"] == 0
    assert statistics["winogrande"]["chance"] == 0.5


def test_documents_that_a_tokenizer_changes_are_counted_where_it_may_lose_text(scored: Any, bpe: Tokenizer) -> None:
    texts, sizes = [" ".join(WORDS)] * 3, {"vocab_size": 300, "special_tokens": ["<|endoftext|>"]}
    knowing = Tokenizer.train(texts, unit="character", unknown="token", pretokenizer="none", **sizes)  # type: ignore[arg-type]
    words = [" ".join(word for word in WORDS if "e" not in word)] * 3
    unknowing = Tokenizer.train(words, unit="character", unknown="token", pretokenizer="none", **sizes)  # type: ignore[arg-type]
    assert (knowing.settings.lossy, unknowing.settings.lossy) == (True, True)
    found = []
    for name, tokenizer in {"bpe": bpe, "knowing": knowing, "unknowing": unknowing}.items():
        context, _ = scored(tokenizer, name=name, shots=(0,))
        statistics = json.loads((context.output / "statistics.json").read_text())
        documents = (context.inputs["tasks"] / "heldout.jsonl").read_text().splitlines()
        found.append(statistics["changed_documents"] / len(documents))
    assert found == [0, 0, 1]


def test_a_vocabulary_trained_on_with_dropout_is_scored_with_all_merges(scored: Any, bpe: Tokenizer) -> None:
    (plain, _), (dropped, _) = scored(shots=(0,)), scored(bpe.with_encoder("dropout"), name="dropped", shots=(0,))
    assert Tokenizer.load(dropped.inputs["training"] / "step_00000020" / "tokenizer").settings.dropout > 0
    for name in ("items.parquet", "heldout.parquet", "statistics.json"):
        assert (dropped.output / name).read_bytes() == (plain.output / name).read_bytes()


def test_tokens_that_cross_a_boundary_are_counted_and_scored_as_text(scored: Any) -> None:
    texts = [" ".join(WORDS)] * 3 + [" ".join(reversed(WORDS))] * 3
    crossing = Tokenizer.train(texts, vocab_size=300, pretokenizer="none", special_tokens=["<|endoftext|>"])
    context, _ = scored(tokenizer=crossing, shots=(0,))
    items = [Item(**record) for record in read_records(context.inputs["tasks"] / "continuation.jsonl")]
    crossed = [
        [not has_prefix(crossing.encode(item.query + choice), crossing.encode(item.query)) for choice in item.choices]
        for item in items
    ]
    about = json.loads((context.output / "statistics.json").read_text())["tasks"]["continuation"]
    assert about["crossed_items"] == {"0": sum(map(any, crossed))}
    assert about["crossed_choices"] == {"0": sum(map(sum, crossed))}
    values = {row["item"]: row["value"] for row in rows(context) if row["metric"] == "choice_bits"}
    model = load_model(context.inputs["training"] / "step_00000020").eval()
    place = next(place for place, choices in enumerate(crossed) if any(choices))
    scores = joint_scores(model, crossing, items[place])
    bits = -torch.log_softmax(scores, 0)[items[place].gold] / torch.log(torch.tensor(2.0))
    assert values[items[place].id] == pytest.approx(float(bits), abs=1e-3)


def has_prefix(whole: Any, first: Any) -> bool:
    return bool(len(whole) >= len(first) and (whole[: len(first)] == first).all())


def joint_scores(model: Any, tokenizer: Tokenizer, item: Any) -> torch.Tensor:
    """Log-probability of each whole text's own tokens after those that the context and all of them begin with."""
    wholes = [tokenizer.encode(item.query + choice).tolist() for choice in item.choices]
    listed = zip(tokenizer.encode(item.query).tolist(), *wholes, strict=False)
    shared = sum(1 for _ in itertools.takewhile(lambda ids: len(set(ids)) == 1, listed))
    before = wholes[0][:shared] or [tokenizer.eos_id]
    return torch.tensor([brute_force(model, before, whole[shared:])[0] for whole in wholes]).double()
