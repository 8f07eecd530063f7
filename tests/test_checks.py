"""Names of measures, columns and tasks, sets of tasks below conf/evaluation, and settings that cannot be together."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from paribus.checks import check_combinations, check_primary, compose_command
from paribus.config.arguments import configuration_directory, parse
from paribus.config.groups.corpus import ParallelCorpus
from paribus.config.groups.evaluation import EvaluationConfig
from paribus.config.groups.ordering import NeighboursConfig, PairPacking, TfidfEmbedder
from paribus.config.groups.tokenization import WordPieceTokenizer
from paribus.config.groups.training import EqualStepsBudget, TrainingConfig
from paribus.config.schema import RunConfig
from paribus.errors import ConfigurationError
from paribus.evaluation.benchmarks import is_ours
from paribus.ordering.embedding_files import check_ordering
from paribus.pipeline.prepare import prepare_runs
from support.embeddings import encoder_config, write_encoder
from support.models import ENCODER_DECODER, FAMILIES, GPT_NEOX, LLAMA, NAMED
from support.run_config import run_config
from support.training_inputs import pair_config

SWEEP = ("-m", "scale=tiny", "corpus=pydocs_small", "encoder=merge_rank,longest_first")
TASKS = "evaluation.tasks=[continuation,squad]"
TEXTS = "evaluation.texts=[wikipedia]"


def problems(*overrides: str) -> list[tuple[str, str]]:
    composition = compose_command(parse([*SWEEP, *overrides]))
    return list(check_primary([job.config for job in composition.jobs]))


PRIMARY = "+experiment.table.primary="
ACCEPTED: tuple[tuple[str, ...], ...] = (
    (),
    (TASKS, f"{PRIMARY}[bits_per_byte,average]"),
    (TASKS, "evaluation.shots=[0,5]", f"{PRIMARY}[continuation,'squad:f1','squad:f1/5_shot',continuation/0_shot]"),
    (TEXTS, f"{PRIMARY}[wikipedia,heldout_clean,heldout_concatenated]"),
    ("+experiment.table.groups={Mine:[continuation]}", f"{PRIMARY}[Mine]"),
    ("finetuning=scrolls", "finetuning.answer_characters=32", f"{PRIMARY}[qmsum]"),
    ("+experiment.table.columns=[boolq,tokens,average]", f"{PRIMARY}[boolq/5_shot,average]"),
)
REFUSED: tuple[tuple[tuple[str, ...], str], ...] = (
    (("primary=[bits_per_byt]",), "'bits_per_byt' is unknown; did you mean 'bits_per_byte'?"),
    (("groups={Mine:[boolq]}", "primary=[Mine]"), "'Mine' is unknown; "),
    (("primary=[continuation/7_shot]",), "no run is scored with so many examples; evaluation.shots says"),
    (("columns=[boolq,tokens]", "primary=[bits_per_byte]"), "is no column of the table; add it to"),
)


def test_a_primary_measure_is_one_that_a_run_of_the_sweep_may_have() -> None:
    assert {overrides: problems(*overrides) for overrides in ACCEPTED} == {overrides: [] for overrides in ACCEPTED}
    for overrides, expected in REFUSED:
        ((path, message),) = problems(*(f"+experiment.table.{override}" for override in overrides))
        assert expected in message and re.fullmatch(r"experiment\.table\.primary\[[01]\]", path), overrides


def refusal(root: Path, field: str, *overrides: str) -> str:
    try:
        prepare_runs(compose_command(parse([*SWEEP, f"root={root}", f"+experiment.table.{field}", *overrides])))
    except ConfigurationError as error:
        return str(error)
    return ""


def test_a_table_that_the_sweep_cannot_have_is_refused_by_its_path(tmp_path: Path) -> None:
    refusals = {
        "columns=[bits_per_byte,flop]": "columns[1]: 'flop' is unknown; did you mean 'flops'?",
        "columns=[boolqq/5_shot]": "columns[0]: 'boolqq/5_shot' is unknown; did you mean 'boolq'?",
        "groups={reading:[race_hihg]}": "groups.reading[0]: 'race_hihg' is unknown; did you mean 'race_high'?",
        "rows=[encodr]": "rows: factor 'encodr' is unknown; did you mean 'encoder'?",
        "primary=[bits_per_byte],[continuation]": "runs of one command are in one table, and these name several",
    }
    for field, message in refusals.items():
        assert message in refusal(tmp_path, field), field


SETS = sorted((configuration_directory() / "evaluation").glob("*.yaml"))


def test_a_named_set_names_tasks_that_there_are_and_shots_of_its_own_tasks() -> None:
    for path in SETS:
        content = yaml.safe_load(path.read_text())
        tasks = content["tasks"]
        assert all(map(is_ours, tasks)) and len(set(tasks)) == len(tasks), path
        assert set(content.get("shots_of") or {}) <= set(tasks), path


# Settings that cannot be together, refused before anything runs.


def problems_of(model: Any, **changes: Any) -> dict[str, str]:
    return dict(check_combinations(run_config(model=replace(model, **changes))))


def test_shapes_that_a_family_cannot_have_are_refused_with_both_fields() -> None:
    for model in FAMILIES:
        assert problems_of(model, heads=5)["model.heads"] == "5 does not divide model.width=32"
    assert "= 1 must be even" in problems_of(LLAMA, heads=32)["model.heads"]
    message = "model.rotary_fraction=0.25 of model.width / model.heads = 4 is 1; it must be even and at least 2"
    assert problems_of(GPT_NEOX, heads=8)["model.rotary_fraction"] == message
    assert "model.rotary_fraction" not in problems_of(GPT_NEOX, heads=8, rotary_fraction=0.5)
    message = "25 exceeds the table of model.positions=24"
    assert problems_of(ENCODER_DECODER, context_length=25)["model.context_length"] == message
    assert "model.context_length" not in problems_of(ENCODER_DECODER, context_length=24)
    possible = {"model.heads", "model.match", "model.context_length", "model.rotary_fraction"}
    assert [name for name, model in NAMED.items() if set(problems_of(model)) & possible] == []


def test_pairs_rows_of_pairs_and_an_encoder_decoder_go_together_or_not_at_all() -> None:
    found = problems_of(ENCODER_DECODER)
    assert "encoder_decoder trains on pairs of source and target; use corpus=parallel" in found["corpus.kind"]
    assert found["packing.kind"] == "concatenate does not go with model.kind=encoder_decoder; use pair"
    assert "continuation scores what follows a text" in found["evaluation.tasks"]
    pairs: dict[str, Any] = {
        "corpus": ParallelCorpus(source=("a.en",), target=("a.de",)),
        "packing": PairPacking(),
        "budget": EqualStepsBudget(steps=10_000),
    }
    translation = run_config(model=ENCODER_DECODER, evaluation=EvaluationConfig(tasks=()), **pairs)
    assert list(check_combinations(translation)) == []
    decoder = dict(check_combinations(run_config(model=LLAMA, **pairs)))
    assert decoder.keys() == {"model.kind", "packing.kind"}
    assert "llama trains on documents, and corpus=parallel has pairs" in decoder["model.kind"]


TRAINING = TrainingConfig(global_batch=8, micro_batch=1)


def test_groups_that_processes_do_not_make_up_are_refused() -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"shard_processes": 2}, "2, but training.parallel=ddp divides no weights; use training.parallel=fsdp, or 0"),
        ({"shard_processes": 3, "parallel": "fsdp", "processes": 4}, "3 make no groups of training.processes=4 x "),
        ({"shard_processes": 2, "parallel": "fsdp", "processes": 4}, ""),
        ({"shard_processes": 2, "parallel": "fsdp", "processes": 2, "nodes": 2}, ""),
    ]
    for fields, expected in cases:
        problem = dict(check_combinations(run_config(training=replace(TRAINING, **fields)))).get(
            "training.shard_processes", ""
        )
        assert problem.startswith(expected) and bool(problem) == bool(expected), fields


ENGLISH_TO_GERMAN = ParallelCorpus(source=("train.en.gz",), target=("train.de.gz",))


def refused(corpus: ParallelCorpus, *tasks: str, **evaluation: Any) -> dict[str, str]:
    config = replace(pair_config(), evaluation=EvaluationConfig(tasks=tasks, **evaluation))
    return of_evaluation(replace(config, corpus=corpus))


def of_evaluation(config: RunConfig) -> dict[str, str]:
    return {path: message for path, message in check_combinations(config) if path.startswith("evaluation")}


def test_a_set_in_another_direction_is_refused_with_what_would_be_right() -> None:
    assert "from de to en, the corpus from en to de" in refused(ENGLISH_TO_GERMAN, "wmt14_de_en")["evaluation.tasks"]
    assert refused(ENGLISH_TO_GERMAN, "wmt14_de_en")["evaluation.tasks"].endswith("take wmt14_en_de")
    said = refused(ParallelCorpus(source=("a.jsonl",)), "wmt14_en_fr")["evaluation.tasks"]
    assert "the corpus from an unnamed language to an unnamed language" in said
    assert said.endswith("say corpus.source_language=en corpus.target_language=fr if that is so")


def test_tasks_that_an_encoder_decoder_cannot_score_are_refused() -> None:
    found = refused(ENGLISH_TO_GERMAN, "continuation", "pku", texts=("books",))
    assert found["evaluation.tasks"].startswith("continuation scores what follows a text")
    assert found["evaluation.texts"].startswith("books has texts without a source")


def test_a_tokenizer_that_loses_whole_words_is_not_scored_as_a_segmenter() -> None:
    lossy = WordPieceTokenizer(vocab_size=500, unit="character", unknown="token", lossless=False)
    config = run_config(tokenizer=lossy, evaluation=EvaluationConfig(tasks=("pku",)))
    assert of_evaluation(config)["evaluation.tasks"].endswith("use tokenizer.unknown=byte_fallback")
    assert of_evaluation(replace(config, tokenizer=replace(lossy, unknown="byte_fallback"))) == {}


@pytest.mark.parametrize("index", ["auto", "ivf_pq"])
def test_a_code_that_does_not_divide_the_vectors_is_refused(index: str, tmp_path: Path) -> None:
    for embedder in (TfidfEmbedder(dimensions=8), encoder_config(write_encoder(tmp_path / "encoder"), max_tokens=14)):
        neighbours = NeighboursConfig(index=index, code_size=3)  # type: ignore[arg-type]
        config = run_config(embedder=embedder, neighbours=neighbours)
        ((path, message),) = check_ordering(config, {"embeddings", "neighbours"})
        assert path == "neighbours.code_size"
        assert f"3 does not divide the 8 dimensions of embedder.kind={embedder.kind}; use 2" in message
        assert list(check_ordering(replace(config, neighbours=replace(neighbours, code_size=4)), {"neighbours"})) == []


TOGETHER = {
    "pretokenizer=existing": "pretokenizer.kind: existing goes with tokenizer=existing only",
    "tokenizer=existing tokenizer.path=t pretokenizer=gpt2": "pretokenizer.kind: gpt2 beside tokenizer=existing",
    "pretokenizer=stripped tokenizer.lossless=true": "pretokenizer.kind: stripped loses whitespace",
    "tokenizer=bytes encoder=merge_rank pretokenizer=stripped": "loses whitespace, which tokenizer=bytes",
    "tokenizer.unit=character tokenizer.unknown=token": "tokenizer.unknown: token loses characters",
    "tokenizer=words tokenizer.unit=character tokenizer.unknown=token tokenizer.lossless=false encoder=fewest": (
        "encoder.kind: fewest needs units"
    ),
    "pretokenizer=spans encoder=dropout": "encoder.kind: dropout needs a pre-tokenizer by pattern",
    "ordering=in_context neighbours.index=flat neighbours.lists=4": "neighbours.index: flat searches everything",
    "training.deterministic=true training.compile=always": "training.compile: always compiles layers",
    "training.deterministic=true training.micro_batch=0": "training.micro_batch: 0 takes what a trial finds",
    "training.processes=2 training.device=cuda:0": "training.device: cuda:0 is one device",
    "evaluation.shots=[0,0]": "evaluation.shots: lists a number twice",
    "evaluation.tasks=[wmt14_en_de]": "evaluation.tasks: wmt14_en_de is translated by an encoder_decoder",
    "finetuning=scrolls finetuning.answer_characters=4096": "finetuning.answer_characters: 4096 characters",
    "factors=[tokeniser]": "factors[0]: 'tokeniser' is no path",
}


@pytest.mark.parametrize("words", TOGETHER)
def test_settings_that_cannot_work_together_are_refused_by_path(words: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(TOGETHER[words])):
        compose_command(parse(["scale=tiny", *words.split()]))
