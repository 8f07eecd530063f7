"""Composition as a user types it: groups, sweeps, and refusals that name every problem at once."""

import dataclasses
from pathlib import Path

import hydra
import pytest
from omegaconf import OmegaConf

from paribus.checks import compose_command
from paribus.config.arguments import configuration_directory, override_key, parse
from paribus.config.compose import Composition
from paribus.config.schema import RunConfig
from paribus.config.validate import build_run
from paribus.errors import ConfigurationError


def compose(*arguments: str) -> Composition:
    return compose_command(parse(arguments))


def config(words: str) -> RunConfig:
    return compose(*words.split()).jobs[0].config


def problems(*arguments: str) -> dict[str, str]:
    with pytest.raises(ConfigurationError) as caught:
        compose(*arguments)
    return dict(caught.value.problems)


def value(config: object, path: str) -> object:
    for name in path.split("."):
        config = getattr(config, name)
    return config


VALUES: tuple[tuple[str, str, object], ...] = (
    ("", "seed", 0),
    ("scale=paper", "model.width", 1024),
    ("scale=paper", "budget.tokens", 100 * 10**9),
    ("scale=paper model=tiny budget.tokens=6M", "budget.tokens", 6_000_000),
    # Contexts of small models hold no examples.
    ("", "evaluation.shots", (0,)),
    ("experiment=demo", "evaluation.shots", (0,)),
    ("scale=paper", "evaluation.shots", (0, 5)),
    ("budget=tokens_300b", "budget.tokens", 300 * 10**9),
    ("budget=text_388gib", "budget.text", 388 * 2**30),
    ("budget=equal_steps", "budget.steps", 1_200),
    ("budget=equal_flops", "budget.flops", 960 * 10**12),
    ("budget=equal_flops budget.flops='2.5e18'", "budget.flops", 25 * 10**17),
    ("experiment=demo corpus=files corpus.paths=[a.jsonl] budget=equal_text model=tiny", "budget.kind", "equal_text"),
    ("tokenizer=bpe encoder=natural", "encoder.kind", "merge_rank"),
    ("tokenizer=wordpiece encoder=natural", "encoder.kind", "left_to_right"),
    ("tokenizer=unigram encoder=natural", "encoder.kind", "viterbi"),
    ("embedder=contriever ordering=in_context duplicates=embedding", "embedder.path", "facebook/contriever"),
    ("embedder=contriever ordering=in_context duplicates=embedding", "embedder.pooling", "mean"),
    ("tracking=none", "tracking.uri", None),
)


def test_groups_scales_and_fields_set_what_they_name() -> None:
    assert {(words, path): value(config(words), path) for words, path, _ in VALUES} == {
        (words, path): expected for words, path, expected in VALUES
    }


def test_a_task_may_have_numbers_of_examples_of_its_own() -> None:
    evaluation = compose("evaluation.shots=[0,5]", "evaluation.shots_of={ag_news: [32]}").jobs[0].config.evaluation
    assert (evaluation.task_shots("ag_news"), evaluation.task_shots("boolq")) == ((32,), (0, 5))


def test_a_multirun_declares_its_factors_but_not_the_seed() -> None:
    composition = compose("-m", "tokenizer=bpe,scaffold_bpe", "encoder=merge_rank,longest_first", "seed=0,1")
    assert (composition.factors, len(composition.jobs)) == (("tokenizer", "encoder"), 8)
    assert composition.jobs[-1].config.tokenizer.kind == "scaffold_bpe"


def test_an_experiment_file_is_a_multirun_and_takes_overrides() -> None:
    composition = compose("experiment=demo", "seed=0,1", "ordering=standard,in_context", "scale=tiny")
    assert composition.multirun
    assert (composition.factors, len(composition.jobs)) == (("arm", "ordering"), 12)
    assert value(composition.jobs[0].config, "budget.tokens") == 64_000


def own_experiment(directory: Path, hydra_block: str) -> tuple[str, ...]:
    """Words that name an experiment of the user's own with this block of Hydra."""
    (directory / "experiment").mkdir()
    text = f"# @package _global_\nhydra: {{{hydra_block}}}\n"
    (directory / "experiment" / "own.yaml").write_text(text, encoding="utf-8")
    return "--config-dir", str(directory), "experiment=own", "scale=tiny"


@pytest.mark.parametrize(
    ("swept", "path", "message"),
    [
        ("tokenizer: [bpe, scaffold_bpe]", ".tokenizer", "takes one choice; tokenizer: bpe,scaffold_bpe makes a run"),
        ("tokenizer: 'bpe,scafold_bpe'", ".tokenizer", "'scafold_bpe' is unknown; did you mean 'scaffold_bpe'?"),
        ("tokenizer.vocabsize: '300,512'", ".tokenizer.vocabsize", "did you mean 'vocab_size'?"),
        ("tokenizer: 'glob(*bpe)'", ".tokenizer", "tokenizer=glob(*bpe) does not name its values; list them: a,b,c"),
    ],
)
def test_a_slip_in_the_sweep_of_a_file_is_refused_by_its_path(
    tmp_path: Path, swept: str, path: str, message: str
) -> None:
    words = own_experiment(tmp_path, f"mode: MULTIRUN, sweeper: {{params: {{seed: '0,1', {swept}}}}}")
    refused = problems(*words)
    assert list(refused) == [f"hydra.sweeper.params{path}"]
    assert message in refused[f"hydra.sweeper.params{path}"]


def test_the_arms_of_an_experiment_that_is_no_multirun_are_not_dropped(tmp_path: Path) -> None:
    words = own_experiment(tmp_path, "sweeper: {params: {tokenizer: 'bpe,scaffold_bpe', seed: '0,1'}}")
    remedy = "set hydra.mode: MULTIRUN in the file that names them, or give -m"
    assert problems(*words)["hydra.sweeper.params"] == f"a multirun alone reads tokenizer, seed: {remedy}"
    assert len(compose("-m", *words).jobs) == 4
    assert len(compose(*words, "hydra.mode=RUN").jobs) == 1


def test_a_field_that_a_file_sweeps_is_for_the_arms_that_have_it(tmp_path: Path) -> None:
    swept = "encoder: 'merge_rank,dropout', encoder.probability: '0.1,0.2'"
    words = own_experiment(tmp_path, f"mode: MULTIRUN, sweeper: {{params: {{{swept}}}}}")
    expected = {
        (): [("merge_rank", None), ("dropout", 0.1), ("dropout", 0.2)],
        ("encoder=merge_rank",): [("merge_rank", None)],
        ("encoder.probability=0.3",): [("merge_rank", None), ("dropout", 0.3)],
    }
    for overrides, jobs in expected.items():
        encoders = [job.config.encoder for job in compose(*words, *overrides).jobs]
        assert [(each.kind, getattr(each, "probability", None)) for each in encoders] == jobs, overrides


@pytest.mark.parametrize("group", ["tokenizer", "arm"])
def test_several_choices_in_a_list_of_defaults_are_not_dropped(tmp_path: Path, group: str) -> None:
    (tmp_path / "experiment").mkdir()
    for name, chosen in {"several": "[bpe, scaffold_bpe]", "one": "bpe"}.items():
        text = f"# @package _global_\ndefaults:\n  - override /{group}: {chosen}\n"
        (tmp_path / "experiment" / f"{name}.yaml").write_text(text, encoding="utf-8")
    words = ("--config-dir", str(tmp_path), "scale=tiny")
    remedy = f"under hydra.sweeper.params {group}: a,b makes a run of each"
    message = f"takes one choice, and a list of defaults names several; {remedy}"
    assert problems(*words, "experiment=several") == {group: message}
    assert len(compose(*words, "experiment=one").jobs) == 1


@pytest.mark.parametrize(
    ("swept", "other"),
    [
        ("seed=0,1", "++seed=2"),
        ("seed=0,1", "~seed"),
        ("++seed=0,1", "seed=2,3"),
        ("tokenizer.vocab_size=300,400", "++tokenizer.vocab_size=500"),
    ],
)
def test_a_sweep_that_another_override_takes_away_is_refused(swept: str, other: str) -> None:
    for words in ((swept, other), (other, swept)):
        message = problems("-m", "scale=tiny", *words)[override_key(swept)]
        assert message.endswith("; leave one of them out")
        assert swept in message and f" {other}" in message


def test_every_problem_is_reported_at_once_by_its_path() -> None:
    slips = "tokenizer=bpee +typo=1 model.wdth=3 corpus.limit=3GiBs seed=one training.micro_batch=-1"
    refused = problems(*slips.split(), "encoder=longest_first")
    assert set(refused) == {"tokenizer", "typo", "model.wdth", "corpus.limit", "seed", "training.micro_batch"}
    assert "did you mean 'bpe'" in refused["tokenizer"]
    assert "did you mean 'width'" in refused["model.wdth"]
    assert "388GiB" in refused["corpus.limit"]


IMPOSSIBLE = (
    ("tokenizer=bytes encoder=longest_first", "encoder.kind"),
    ("tokenizer=bpe encoder=dropout encoder.draws=2", "encoder.draws"),
    ("tokenizer.vocab_size=100", "tokenizer.vocab_size"),
    ("encoder=longest_first encoder.candidates=expanded", "encoder.candidates"),
    ("ordering=in_context neighbours.retrieved=5", "ordering.neighbours"),
    ("ordering=nn packing=best_fit", "packing.kind"),
    ("neighbours.index=ivf neighbours.code_size=16", "neighbours.code_size"),
    ("neighbours=exact neighbours.code_size=16", "neighbours.code_size"),
    ("neighbours.device=gpu", "neighbours.device"),
    ("neighbours.lists=8 neighbours.probes=16", "neighbours.probes"),
    ("embedder=transformers embedder.path=''", "embedder.path"),
    ("training.warmup_share=1", "training.warmup_share"),
    ("training.global_batch=0", "training.global_batch"),
    ("training.batch_bytes=64KB", "training.batch_bytes"),
    ("training.batch_multiple=8", "training.batch_multiple"),
    ("training.global_batch=0 training.batch_bytes=64KB training.processes=2", "training.batch_multiple"),
    ("model.context_length=0", "model.context_length"),
    ("model.context_bytes=1KB", "model.context_bytes"),
    ("training.checkpoints=2", "evaluation.last_checkpoints"),
    ("model.heads=3", "model.heads"),
    ("start=checkpoint", "start.path"),
    ("start=checkpoint start.path=a start.run=b", "start.path"),
    ("start=checkpoint start.path=a start.optimizer=resumed start.vocabulary=added", "start.vocabulary"),
    ("start=continued", "start.tokens"),
    ("scale=tiny start=continued start.tokens=64000", "start.tokens"),
    ("scale=tiny start=continued start.tokens=63600", "start.tokens"),
    ("scale=tiny start=continued start.tokens=15K training.warmup_steps=31", "training.warmup_steps"),
    ("scale=tiny start=continued start.tokens=15K start.steps=3", "start.steps"),
    ("budget=equal_steps budget.steps=100 training.warmup_steps=100", "training.warmup_steps"),
    ("budget.tokens=10", "budget.tokens"),
    ("evaluation.last_checkpoints=9", "evaluation.last_checkpoints"),
    ("evaluation.average_checkpoints=9", "evaluation.average_checkpoints"),
    ("evaluation.last_checkpoints=3 evaluation.average_checkpoints=4", "evaluation.average_checkpoints"),
    ("evaluation.shots_of={boolq:[2,2]}", "evaluation.shots_of.boolq"),
    ("training.micro_batch=7", "training.micro_batch"),
    ("tokenizer.special_tokens=[a,a]", "tokenizer.special_tokens"),
)


def test_an_impossible_combination_is_refused_by_path() -> None:
    assert {words: set(problems(*words.split())) for words, _ in IMPOSSIBLE} == {
        words: {path} for words, path in IMPOSSIBLE
    }


POSSIBLE = (
    "ordering=lexical neighbours.retrieved=5",
    "ordering=in_context neighbours.retrieved=20",
    "ordering=in_context packing=best_fit",
    "neighbours=paper",
    "neighbours.recall=1",
    "packing=one_document budget.tokens=10",
    "training.global_batch=0 training.batch_bytes=64KB",
    "training.global_batch=0 training.batch_bytes=64KB training.batch_multiple=8 training.processes=2",
    "model.context_length=0 model.context_bytes=1KB",
    "budget=equal_steps budget.steps=100 training.warmup_steps=99",
    "budget.max_epochs=null plan.max_device_hours=null training.loss_limit=null",
    "training.schedule=inverse_sqrt training.warmup_learning_rate=1e-7",
    "training.beta1=0 training.beta2=0",
    "embedder=transformers embedder.path=owner/name",
    "evaluation.last_checkpoints=2 evaluation.average_checkpoints=4",
    "scale=tiny start=continued start.tokens=16K",
    "scale=tiny budget=equal_text start=continued start.text=60KB",
    "start=checkpoint start.run='1234567890123456'",
    "seeds={order:3}",
)


def test_combinations_that_only_look_impossible_are_accepted() -> None:
    for words in POSSIBLE:
        assert len(compose(*words.split()).jobs) == 1, words


REFUSED = (
    ("scale=tiny budget.tokens=511", "budget.tokens", "511 is less than one step"),
    ("scale=tiny tokenizer=bytes budget=equal_flops budget.flops=1e7", "budget.flops", "1.14e+08 FLOPs"),
    ("budget=equal_steps budget.steps=0", "budget.steps", "should be above zero"),
    ("budget.max_epochs=inf", "budget.max_epochs", "should be a finite number, not inf; null is no limit"),
    ("budget.tokens='1e400'", "budget.tokens", "too large"),
    ("-m training.gradient_clip=1,nan", "training.gradient_clip", "should be a finite number, not nan"),
    ("training.beta1=1", "training.beta1", "should be less than 1"),
    (f"encoder=dropout encoder.seed={2**63}", "encoder.seed", f"should be less than {2**63}"),
    ("evaluation.shots=[]", "evaluation.shots", "should have 1 entry or more"),
    ("evaluation.shots=[0,x]", "evaluation.shots[1]", "should be a valid integer, not 'x'"),
    ("evaluation.tasks=my_task", "evaluation.tasks", "a list is typed evaluation.tasks=[my_task]"),
    ("start=checkpoint start.run=1234567890123456", "start.run", "quote what is text"),
    ("root=roots/a=b", "root=roots/a=b", "a text is typed in quotes: \"root='roots/a=b'\""),
    ("corpus=files", "corpus.paths", "is required"),
    ("lbpe", "lbpe", "is no override, which is typed NAME=VALUE"),
    ("training.learning_rat=1", "training.learning_rat", "did you mean 'learning_rate'?"),
    ("training.lr=1", "training.lr", "`paribus explain training` says what there is"),
    ("budget.text=20K", "budget.text", "budget of kind equal_text has it"),
    ("start=scratch start.run=0123456789abcdef", "start.run", "start of kind checkpoint has it"),
    ("experiment=demo experiment.table.primary=[x]", "experiment.table.primary", "+experiment.table.primary=[x]"),
    ("experiment=lbpe/tabel_1", "experiment", "did you mean 'lbpe/table_1'?"),
    ("--config-dir /absent", "--config-dir", "no directory"),
    ("tokenizer=bpe,bytes", "overrides", "add -m"),
    ("-m tokenizer=bpe,scafold_bpe seed=0,1", "tokenizer", "did you mean 'scaffold_bpe'?"),
    ("-m tokenizer=shuffle(bpe,bytes)", "tokenizer", "has another order whenever it is read"),
    ("-m seeds=0,1", "seeds", "is a block of fields, which has no value; its fields: "),
    ("-m seed=0,1 hydra/launcher=jobib", "hydra/launcher", "did you mean 'joblib'?"),
)
"""What is typed, the path that its refusal names, and a part of what it says."""


def test_a_slip_is_refused_by_its_path_with_what_would_be_right() -> None:
    for words, path, message in REFUSED:
        refused = problems(*words.split())
        assert list(refused) == [path], words
        assert message in refused[path], words


def test_an_encoder_of_another_tokenizer_is_refused_with_what_compares_the_two() -> None:
    for words in ("tokenizer=unigram", "tokenizer=words", "tokenizer=bpe encoder=viterbi"):
        refused = problems(*words.split())["encoder.kind"]
        _, _, advised = refused.partition("an arm, which has its own encoder: ")
        assert len(compose(*advised.split()).jobs) == 2, words


def test_a_field_that_only_some_choices_have_is_given_to_those(tmp_path: Path) -> None:
    started = compose("-m", "start=scratch,checkpoint", "start.run=0123456789abcdef", f"root={tmp_path}")
    assert [job.config.start.kind for job in started.jobs] == ["scratch", "checkpoint"]
    assert started.jobs[0].overrides == ("start=scratch", f"root={tmp_path}")
    assert "start.run=0123456789abcdef" in started.jobs[1].overrides
    swept = compose("-m", "tokenizer=bpe,bytes", "tokenizer.vocab_size=4000,8000")
    sizes = [getattr(job.config.tokenizer, "vocab_size", None) for job in swept.jobs]
    assert sizes == [4000, 8000, None]


@pytest.mark.parametrize(
    "arguments",
    [
        ("-m", "experiment=demo", "seed=1,2"),
        (
            "-m",
            "tokenizer=bpe,bytes",
            "encoder=merge_rank",
            "seed=0,1",
            "training.learning_rate=1e-4,2e-4",
            "scale=tiny",
        ),
        ("-m", "evaluation.shots=[0],[0,5]", "++seed=3", "budget.tokens=10M", "budget=equal_text,equal_tokens"),
        ("-m", "seed=1,2", "hydra.job.name=x", "++training.gradient_clip=0.5", "root=/tmp/${seed}"),
        ("-m", "experiment=demo", "+experiment.table.paper=true", "seed=1,2"),
        ("seed=5", "scale=tiny", "seed=6", "evaluation.limit=7", "corpus=files", "corpus.paths=[a,b]"),
    ],
)
def test_each_job_is_what_hydra_makes_of_its_overrides(arguments: tuple[str, ...]) -> None:
    jobs = compose(*arguments).jobs
    with hydra.initialize_config_dir(str(configuration_directory()), version_base="1.3"):
        for job in jobs:
            container = OmegaConf.to_container(hydra.compose("config", list(job.overrides)), resolve=True)
            assert build_run(container) == job.config  # type: ignore[arg-type]
    assert len({repr(job.config) for job in jobs}) == len(jobs)


@pytest.mark.parametrize("group", ["training", "evaluation", "engine", "packing"])
def test_every_field_of_a_block_can_be_typed_without_a_plus(group: str) -> None:
    """A field that no file gives would be refused where it is typed as the documentation has it."""
    block = getattr(compose().jobs[0].config, group)
    for field in dataclasses.fields(block):
        value = getattr(block, field.name)
        if field.name != "kind" and isinstance(value, bool | int | float | str):
            typed = f"{group}.{field.name}={str(value).lower() if isinstance(value, bool) else value}"
            assert getattr(getattr(compose(typed).jobs[0].config, group), field.name) == value


@pytest.mark.parametrize("swept", ["{order: 3},{order: 4}", "choice({order: 3},{order: 4})"])
def test_a_block_of_fields_takes_some_of_them_job_by_job(swept: str) -> None:
    assert [job.config.seeds.order for job in compose("-m", f"seeds={swept}").jobs] == [3, 4]
