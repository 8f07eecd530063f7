"""Composition as a user types it: groups, sweeps, units, and refusals that name every problem at once."""

import dataclasses
from pathlib import Path
from typing import TextIO

import hydra
import pytest
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.config_repository import IConfigRepository
from hydra.core.default_element import ResultDefault
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.plugins.config_source import ConfigResult
from omegaconf import DictConfig, ListConfig, OmegaConf

from paribus.checks.command import compose_command
from paribus.config.arguments import override_key, parse
from paribus.config.compose import Composition
from paribus.config.groups.budget import EqualTextBudget, EqualTokensBudget
from paribus.config.groups.embedding import TransformersEmbedder
from paribus.config.groups.tokenization import ScaffoldBPETokenizer
from paribus.config.reference.files import configuration_directory
from paribus.config.validate import build_run
from paribus.errors import ConfigurationError
from support.compositions import hydra_compose


def compose(*arguments: str) -> Composition:
    return compose_command(parse(arguments))


def problems(*arguments: str) -> dict[str, str]:
    with pytest.raises(ConfigurationError) as caught:
        compose(*arguments)
    lines = [line.strip() for line in str(caught.value).splitlines()[1:]]
    return dict(line.split(": ", 1) for line in lines)


def test_contriever_is_mean_pooling_at_a_fixed_commit() -> None:
    embedder = compose("embedder=contriever", "ordering=in_context", "duplicates=embedding").jobs[0].config.embedder
    assert isinstance(embedder, TransformersEmbedder)
    assert (embedder.path, embedder.pooling, len(embedder.revision or "")) == ("facebook/contriever", "mean", 40)


def test_the_defaults_are_one_valid_run() -> None:
    composition = compose()
    assert len(composition.jobs) == 1
    assert not composition.multirun


def test_a_scale_sets_sizes_and_the_command_line_beats_it() -> None:
    config = compose("scale=paper").jobs[0].config
    assert (config.model.width, config.budget.tokens) == (1024, 100_000_000_000)
    config = compose("scale=paper", "model=tiny", "budget.tokens=6M").jobs[0].config
    assert (config.model.width, config.budget.tokens) == (32, 6_000_000)


@pytest.mark.parametrize(
    ("words", "shots"),
    [
        ([], (0,)),
        (["scale=tiny"], (0,)),
        (["scale=demo"], (0,)),
        (["experiment=demo"], (0,)),
        (["scale=paper"], (0, 5)),
        (["evaluation=papers", "evaluation.data=."], (0, 5)),
    ],
)
def test_models_whose_contexts_hold_no_examples_are_asked_without(words: list[str], shots: tuple[int, ...]) -> None:
    assert {job.config.evaluation.shots for job in compose(*words).jobs} == {shots}


@pytest.mark.parametrize(
    ("name", "kind", "field", "amount"),
    [
        ("tokens_100b", "equal_tokens", "tokens", 100 * 10**9),
        ("tokens_300b", "equal_tokens", "tokens", 300 * 10**9),
        ("text_388gib", "equal_text", "text", 388 * 2**30),
        ("equal_steps", "equal_steps", "steps", 1_200),
        ("equal_flops", "equal_flops", "flops", 960 * 10**12),
    ],
)
def test_a_named_budget_is_what_its_name_says(name: str, kind: str, field: str, amount: int) -> None:
    budget = compose(f"budget={name}").jobs[0].config.budget
    assert (budget.kind, getattr(budget, field), budget.max_epochs) == (kind, amount, None)


@pytest.mark.parametrize(("written", "flops"), [("1e20", 10**20), ("3e19", 3 * 10**19), ("'2.5e18'", 25 * 10**17)])
def test_flops_are_written_as_powers_of_ten(written: str, flops: int) -> None:
    assert compose("budget=equal_flops", f"budget.flops={written}").jobs[0].config.budget.flops == flops


def test_budgets_without_a_step_are_refused_with_their_values() -> None:
    tiny = ("scale=tiny",)
    assert problems(*tiny, "budget.tokens=511")["budget.tokens"].startswith("511 is less than one step")
    flops = problems(*tiny, "tokenizer=bytes", "budget=equal_flops", "budget.flops=1e7")
    assert flops["budget.flops"].startswith("10000000 is less than one step")
    assert "1.14e+08 FLOPs" in flops["budget.flops"]
    assert "budget.steps" in problems("budget=equal_steps", "budget.steps=0")
    assert "budget.max_epochs" in problems("budget.max_epochs=0")


def test_equal_text_reads_sizes_as_people_write_them() -> None:
    budget = compose("scale=paper", "budget=equal_text").jobs[0].config.budget
    assert isinstance(budget, EqualTextBudget)
    assert budget.text == 388 * 2**30


def test_a_multirun_declares_its_factors_but_not_the_seed() -> None:
    composition = compose("-m", "tokenizer=bpe,scaffold_bpe", "encoder=merge_rank,longest_first", "seed=0,1")
    assert composition.factors == ("tokenizer", "encoder")
    assert len(composition.jobs) == 8
    assert isinstance(composition.jobs[-1].config.tokenizer, ScaffoldBPETokenizer)


def test_an_experiment_file_is_a_multirun_and_takes_overrides() -> None:
    composition = compose("experiment=demo", "seed=0,1", "ordering=standard,in_context", "scale=tiny")
    assert composition.multirun
    assert composition.factors == ("arm", "ordering")
    assert len(composition.jobs) == 12
    assert isinstance(composition.jobs[0].config.budget, EqualTokensBudget)
    assert composition.jobs[0].config.budget.tokens == 64_000


def test_an_experiment_takes_another_corpus_budget_and_model() -> None:
    overrides = ("corpus=files", "corpus.paths=[my/*.jsonl.zst]", "budget=equal_text", "model=tiny")
    config = compose("experiment=demo", *overrides).jobs[0].config
    assert (config.corpus.kind, config.budget.kind, config.model.width) == ("files", "equal_text", 32)


@pytest.mark.parametrize("joint", [" ", "="])
def test_an_experiment_of_the_user_s_own_directory_is_found(tmp_path: Path, joint: str) -> None:
    (tmp_path / "experiment").mkdir()
    text = "# @package _global_\nhydra: {mode: MULTIRUN, sweeper: {params: {encoder: 'merge_rank,longest_first'}}}\n"
    (tmp_path / "experiment" / "own.yaml").write_text(text, encoding="utf-8")
    composition = compose(*f"--config-dir{joint}{tmp_path}".split(), "experiment=own", "scale=tiny")
    assert composition.factors == ("encoder",)


def _own(directory: Path, hydra_block: str) -> tuple[str, ...]:
    """The words that name an experiment of the user's own with this block of Hydra."""
    (directory / "experiment").mkdir()
    text = f"# @package _global_\nhydra: {{{hydra_block}}}\n"
    (directory / "experiment" / "own.yaml").write_text(text, encoding="utf-8")
    return "--config-dir", str(directory), "experiment=own", "scale=tiny"


@pytest.mark.parametrize(
    ("swept", "path", "told"),
    [
        ("tokenizer: [bpe, scaffold_bpe]", ".tokenizer", "takes one choice; tokenizer: bpe,scaffold_bpe makes a run"),
        ("tokenizer: 'bpe,scafold_bpe'", ".tokenizer", "'scafold_bpe' is unknown; did you mean 'scaffold_bpe'?"),
        ("tokeniser: 'bpe,words'", ".tokeniser", "'tokeniser' is unknown; did you mean 'tokenizer'?"),
        ("tokenizer.vocabsize: '300,512'", ".tokenizer.vocabsize", "did you mean 'vocab_size'?"),
        ("tokenizer: 'glob(*bpe)'", ".tokenizer", "tokenizer=glob(*bpe) does not name its values; list them: a,b,c"),
        ("tokenizer: 'bpe,'", ".tokenizer=bpe,", "is not a Hydra override: "),
        ("seeds.order: 'range(0,0)'", ".seeds.order", "seeds.order=range(0,0) has no values, and so no run; list them"),
    ],
)
def test_what_an_experiment_sweeps_is_judged_as_what_a_command_sweeps(
    tmp_path: Path, swept: str, path: str, told: str
) -> None:
    words = _own(tmp_path, f"mode: MULTIRUN, sweeper: {{params: {{seed: '0,1', {swept}}}}}")
    found = problems(*words)
    assert list(found) == [f"hydra.sweeper.params{path}"]
    assert told in found[f"hydra.sweeper.params{path}"]


@pytest.mark.parametrize(
    ("swept", "path", "shown"),
    [("seed: [0, 1]", "seed", "seed=0,1"), ("tokenizer.vocab_size: [300, 512]", "tokenizer.vocab_size", "=300,512")],
)
def test_a_list_of_what_has_one_value_is_told_how_a_sweep_is_written(
    tmp_path: Path, swept: str, path: str, shown: str
) -> None:
    found = problems(*_own(tmp_path, f"mode: MULTIRUN, sweeper: {{params: {{{swept}}}}}"))
    assert found[path].endswith(
        f"; values to sweep are parted by commas, without brackets: {path}={shown.split('=')[1]}"
    )


def test_the_arms_of_an_experiment_that_is_no_multirun_are_not_dropped(tmp_path: Path) -> None:
    words = _own(tmp_path, "sweeper: {params: {tokenizer: 'bpe,scaffold_bpe', seed: '0,1'}}")
    told = problems(*words)["hydra.sweeper.params"]
    remedy = "set hydra.mode: MULTIRUN in the file that names them, or give -m"
    assert told == f"a multirun alone reads tokenizer, seed: {remedy}"
    assert len(compose("-m", *words).jobs) == 4
    assert len(compose(*words, "hydra.mode=RUN").jobs) == 1
    assert [job.config.seed for job in compose(*words, "tokenizer=bpe", "seed=1").jobs] == [1]


@pytest.mark.parametrize(
    ("given", "jobs"),
    [
        ((), [("merge_rank", None), ("dropout", 0.1), ("dropout", 0.2)]),
        (("encoder=merge_rank",), [("merge_rank", None)]),
        (("encoder=dropout",), [("dropout", 0.1), ("dropout", 0.2)]),
        (("encoder.probability=0.3",), [("merge_rank", None), ("dropout", 0.3)]),
    ],
)
def test_a_field_that_a_file_sweeps_is_for_the_arms_that_have_it(
    tmp_path: Path, given: tuple[str, ...], jobs: list[tuple[str, float | None]]
) -> None:
    swept = "encoder: 'merge_rank,dropout', encoder.probability: '0.1,0.2'"
    words = _own(tmp_path, f"mode: MULTIRUN, sweeper: {{params: {{{swept}}}}}")
    encoders = [job.config.encoder for job in compose(*words, *given).jobs]
    assert [(each.kind, getattr(each, "probability", None)) for each in encoders] == jobs


@pytest.mark.parametrize("group", ["tokenizer", "arm"])
def test_several_choices_in_a_list_of_defaults_are_not_dropped(tmp_path: Path, group: str) -> None:
    (tmp_path / "experiment").mkdir()
    for name, chosen in {"several": "[bpe, scaffold_bpe]", "one": "bpe", "none": "null"}.items():
        text = f"# @package _global_\ndefaults:\n  - override /{group}: {chosen}\n"
        (tmp_path / "experiment" / f"{name}.yaml").write_text(text, encoding="utf-8")
    words = ("--config-dir", str(tmp_path), "scale=tiny")
    remedy = f"under hydra.sweeper.params {group}: a,b makes a run of each"
    told = problems(*words, "experiment=several")
    assert told == {group: f"takes one choice, and a list of defaults names several; {remedy}"}
    assert len(compose(*words, "experiment=one").jobs) == 1
    assert group != "arm" or len(compose(*words, "experiment=none", "~arm").jobs) == 1


def test_a_sweep_in_another_order_each_time_is_refused(tmp_path: Path) -> None:
    """A report would compare with one row, and the next with another."""
    told = "tokenizer=shuffle(bpe,bytes) has another order whenever it is read, and the first row is what others are"
    assert problems("-m", "tokenizer=shuffle(bpe,bytes)")["tokenizer"].startswith(told)
    words = _own(tmp_path, "mode: MULTIRUN, sweeper: {params: {tokenizer: 'shuffle(bpe,bytes)'}}")
    assert problems(*words)["hydra.sweeper.params.tokenizer"].startswith(told)
    assert len(compose("-m", "scale=tiny", "tokenizer=sort(scaffold_bpe,bpe)").jobs) == 2


def test_a_sweep_without_values_is_refused() -> None:
    assert problems("-m", "seed=range(0,0)") == {
        "seed": "seed=range(0,0) has no values, and so no run; list them: a,b,c"
    }


@pytest.mark.parametrize(
    ("swept", "other"),
    [
        ("seed=0,1", "++seed=2"),
        ("seed=0,1", "~seed"),
        ("++seed=0,1", "seed=2"),
        ("++seed=0,1", "seed=2,3"),
        ("tokenizer.vocab_size=300,400", "++tokenizer.vocab_size=500"),
    ],
)
def test_a_sweep_that_another_override_takes_away_is_refused(swept: str, other: str) -> None:
    for words in ((swept, other), (other, swept)):
        told = problems("-m", "scale=tiny", *words)[override_key(swept)]
        assert told.endswith("; leave one of them out")
        assert swept in told and f" {other}" in told


def test_a_sweep_of_a_file_that_an_override_takes_away_is_refused(tmp_path: Path) -> None:
    words = _own(tmp_path, "mode: MULTIRUN, sweeper: {params: {seed: '0,1'}}")
    assert problems(*words, "++seed=2") == {"seed": "given by seed=0,1 and by ++seed=2; leave one of them out"}


def test_the_arms_of_one_of_several_experiments_are_not_dropped(tmp_path: Path) -> None:
    words = ("-m", *_own(tmp_path, "mode: MULTIRUN, sweeper: {params: {tokenizer: 'bpe,scaffold_bpe', seed: '0,1'}}"))
    text = "# @package _global_\ndefaults:\n  - own\n"
    (tmp_path / "experiment" / "other.yaml").write_text(text, encoding="utf-8")
    several = [word.replace("=own", "=own,other") for word in words]
    told = problems(*several)["hydra.sweeper.params"]
    assert told.startswith("tokenizer, seed of a file that not all runs choose are dropped: give each such file a")
    assert problems(*several, "tokenizer=bpe,scaffold_bpe")["hydra.sweeper.params"].startswith("seed of a file")
    assert len(compose(*several, "tokenizer=bpe,scaffold_bpe", "seed=1").jobs) == 4


def test_a_choice_that_is_swept_may_be_quoted(tmp_path: Path) -> None:
    words = _own(tmp_path, "mode: MULTIRUN, sweeper: {params: {duplicates: '\"off\",exact'}}")
    assert [job.config.duplicates.kind for job in compose(*words).jobs] == ["off", "exact"]
    jobs = compose("-m", "scale=tiny", "duplicates='off',exact").jobs
    assert [job.config.duplicates.kind for job in jobs] == ["off", "exact"]


@pytest.mark.parametrize("name", ["bpe", "my own", "a=b", "x,y", "甲", "it's"])
def test_fields_are_for_a_quoted_choice_too(tmp_path: Path, name: str) -> None:
    if name != "bpe":
        (tmp_path / "tokenizer").mkdir()
        text = "defaults:\n  - /tokenizer/bpe@_here_\n"
        (tmp_path / "tokenizer" / f"{name}.yaml").write_text(text, encoding="utf-8")
    words = ("--config-dir", str(tmp_path), "-m", "scale=tiny", "corpus=files", "corpus.paths=[a]")
    for quoted in (f'"{name}"', "'" + name.replace("'", "\\'") + "'"):
        for choices in (f"{quoted},bytes", f"bytes,{quoted}"):
            jobs = compose(*words, f"tokenizer={choices}", "tokenizer.vocab_size=300,400").jobs
            sizes = [getattr(job.config.tokenizer, "vocab_size", None) for job in jobs]
            assert sorted(sizes, key=str) == [300, 400, None]


def test_a_missing_directory_of_configurations_is_refused(tmp_path: Path) -> None:
    assert "no directory" in problems("--config-dir", str(tmp_path / "absent"))["--config-dir"]


def test_every_problem_is_reported_at_once_by_its_path() -> None:
    found = problems(
        "tokenizer=bpee",
        "+typo=1",
        "model.wdth=3",
        "corpus.limit=3GiBs",
        "seed=one",
        "training.micro_batch=-1",
        "encoder=longest_first",
    )
    assert set(found) == {"tokenizer", "typo", "model.wdth", "corpus.limit", "seed", "training.micro_batch"}
    assert "did you mean 'bpe'" in found["tokenizer"]
    assert "did you mean 'width'" in found["model.wdth"]
    assert "388GiB" in found["corpus.limit"]


def test_a_problem_of_the_command_and_of_its_jobs_is_told_once() -> None:
    with pytest.raises(ConfigurationError) as refused:
        compose_command(parse(["experiment.table.baseline={tokenizer: bpe}"]))
    assert str(refused.value).count("Could not override") == 1


@pytest.mark.parametrize("override", ["+model._target_=os.system", "+corpus.extra=1", "+anything={a: 1}"])
def test_appended_keys_are_refused(override: str) -> None:
    assert len(problems(override)) == 1


def test_a_required_value_says_what_it_is_for() -> None:
    assert "is required" in problems("corpus=files")["corpus.paths"]


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        (("tokenizer=bytes", "encoder=longest_first"), "encoder.kind"),
        (("tokenizer=bpe", "encoder=dropout", "encoder.draws=2"), "encoder.draws"),
        (("tokenizer.vocab_size=100",), "tokenizer.vocab_size"),
        (("encoder=longest_first", "encoder.candidates=expanded"), "encoder.candidates"),
        (("ordering=in_context", "neighbours.retrieved=5"), "ordering.neighbours"),
        (("ordering=in_context_released", "neighbours.retrieved=5"), "ordering.neighbours"),
        (("ordering=nn", "neighbours.retrieved=5"), "ordering.neighbours"),
        (("ordering=nn", "packing=best_fit"), "packing.kind"),
        (("ordering=nn", "packing=one_document"), "packing.kind"),
        (("neighbours.index=ivf", "neighbours.code_size=16"), "neighbours.code_size"),
        (("neighbours=exact", "neighbours.code_size=16"), "neighbours.code_size"),
        (("neighbours=exact", "neighbours.probes=8"), "neighbours.index"),
        (("neighbours.device=gpu",), "neighbours.device"),
        (("neighbours=exact", "neighbours.lists=8"), "neighbours.index"),
        (("neighbours.lists=8", "neighbours.probes=16"), "neighbours.probes"),
        (("embedder=transformers", "embedder.path=''"), "embedder.path"),
        (("training.warmup_share=1",), "training.warmup_share"),
        (("training.global_batch=0",), "training.global_batch"),
        (("training.batch_bytes=64KB",), "training.batch_bytes"),
        (("training.batch_multiple=8",), "training.batch_multiple"),
        (("training.global_batch=0", "training.batch_bytes=64KB", "training.processes=2"), "training.batch_multiple"),
        (("model.context_length=0",), "model.context_length"),
        (("model.context_bytes=1KB",), "model.context_bytes"),
        (("training.checkpoints=2",), "evaluation.last_checkpoints"),
        (("model.heads=3",), "model.heads"),
        (("packing.shuffle=none", "packing.stretch_bytes=64KB"), "packing.stretch_bytes"),
        (("model.context_length=128", "packing.stretch_bytes=127"), "packing.stretch_bytes"),
        (("model.context_length=0", "model.context_bytes=1000", "packing.stretch_bytes=999"), "packing.stretch_bytes"),
        (("start=checkpoint",), "start.path"),
        (("start=checkpoint", "start.path=a", "start.run=b"), "start.path"),
        (("start=checkpoint", "start.path=a", "start.optimizer=resumed", "start.vocabulary=added"), "start.vocabulary"),
        (("start=continued",), "start.tokens"),
        (("scale=tiny", "start=continued", "start.tokens=64000"), "start.tokens"),
        (("scale=tiny", "start=continued", "start.tokens=100"), "start.tokens"),
        (("scale=tiny", "start=continued", "start.tokens=63600"), "start.tokens"),
        (("scale=tiny", "start=continued", "start.tokens=15K", "training.warmup_steps=31"), "training.warmup_steps"),
        (("scale=tiny", "start=continued", "start.tokens=15K", "start.steps=3"), "start.steps"),
        (("budget=equal_steps", "budget.steps=100", "training.warmup_steps=100"), "training.warmup_steps"),
        (("training.warmup_learning_rate=1e-7",), "training.warmup_learning_rate"),
        (("training.schedule=inverse_sqrt", "training.warmup_learning_rate=1"), "training.warmup_learning_rate"),
        (("budget.tokens=10",), "budget.tokens"),
        (("evaluation.last_checkpoints=9",), "evaluation.last_checkpoints"),
        (("evaluation.average_checkpoints=9",), "evaluation.average_checkpoints"),
        (("evaluation.last_checkpoints=3", "evaluation.average_checkpoints=4"), "evaluation.average_checkpoints"),
        (("evaluation.shots_of={boolq: [2, 2]}",), "evaluation.shots_of.boolq"),
        (("training.micro_batch=7",), "training.micro_batch"),
        (("tokenizer.special_tokens=[a,a]",), "tokenizer.special_tokens"),
    ],
)
def test_an_impossible_combination_is_refused_by_path(arguments: tuple[str, ...], path: str) -> None:
    assert set(problems(*arguments)) == {path}


@pytest.mark.parametrize(
    "arguments", [("tokenizer=unigram",), ("tokenizer=words",), ("tokenizer=bpe", "encoder=viterbi")], ids=" ".join
)
def test_an_encoder_of_another_tokenizer_is_refused_with_what_compares_the_two(arguments: tuple[str, ...]) -> None:
    _, _, advised = problems(*arguments)["encoder.kind"].partition("an arm, which has its own encoder: ")
    assert len(compose(*advised.split()).jobs) == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ("ordering=lexical", "neighbours.retrieved=5"),
        ("ordering=in_context", "neighbours.retrieved=20"),
        ("ordering=in_context", "packing=best_fit"),
        ("neighbours=paper",),
        ("training.global_batch=0", "training.batch_bytes=64KB"),
        ("training.global_batch=0", "training.batch_bytes=64KB", "training.batch_multiple=8", "training.processes=2"),
        ("model.context_length=0", "model.context_bytes=1KB"),
        ("budget=equal_steps", "budget.steps=100", "training.warmup_steps=99"),
        ("training.schedule=inverse_sqrt", "training.warmup_learning_rate=1e-7"),
        ("embedder=transformers", "embedder.path=owner/name"),
        ("evaluation.last_checkpoints=2", "evaluation.average_checkpoints=4"),
        ("scale=tiny", "start=continued", "start.tokens=16K"),
        ("scale=tiny", "budget=equal_text", "start=continued", "start.text=60KB"),
    ],
)
def test_what_only_looks_impossible_is_accepted(arguments: tuple[str, ...]) -> None:
    assert len(compose(*arguments).jobs) == 1


@pytest.mark.parametrize("packing", ["best_fit", "one_document"])
def test_how_long_a_padded_budget_lasts_is_not_judged_from_full_contexts(packing: str) -> None:
    assert compose(f"packing={packing}", "budget.tokens=10").jobs


def test_several_values_without_a_multirun_are_refused_with_the_remedy() -> None:
    assert "add -m" in problems("tokenizer=bpe,bytes")["overrides"]


def test_one_bad_value_of_a_sweep_is_found_before_anything_runs() -> None:
    assert set(problems("-m", "tokenizer=bpe,scafold_bpe", "seed=0,1")) == {"tokenizer"}


def test_wrong_types_inside_lists_are_named_by_position() -> None:
    assert set(problems("evaluation.shots=[0,x]")) == {"evaluation.shots[1]"}
    assert problems("evaluation.shots=[]") == {"evaluation.shots": "should have 1 entry or more"}
    found = problems("evaluation.shots_of={boolq: [0,x]}")
    assert found == {"evaluation.shots_of.boolq[1]": "should be a valid integer, not 'x'"}
    found = problems("evaluation.shots_of={boolq: 1.5}")
    assert found == {"evaluation.shots_of.boolq": "should be a valid list, not 1.5"}
    found = problems("evaluation.tasks=my_task")
    assert found == {
        "evaluation.tasks": "should be a valid list, not 'my_task'; a list is typed evaluation.tasks=[my_task]"
    }
    found = problems("evaluation.shots_of={boolq: [1.5]}")
    assert found == {"evaluation.shots_of.boolq[0]": "should be a valid integer, not 1.5"}


INFINITE_FIELDS = (
    "training.gradient_clip",
    "training.learning_rate",
    "training.weight_decay",
    "training.min_learning_rate_ratio",
    "model.initializer_range",
    "evaluation.length_penalty",
    "engine.lease_seconds",
    "engine.grace_seconds",
    "tracking.patience",
    "corpus.heldout",
)


@pytest.mark.parametrize(("written", "told"), [("inf", "inf"), ("1e400", "inf"), ("-inf", "-inf"), ("nan", "nan")])
def test_a_number_that_is_not_finite_is_refused_by_path(written: str, told: str) -> None:
    found = problems(*(f"{field}={written}" for field in INFINITE_FIELDS))
    assert found == dict.fromkeys(INFINITE_FIELDS, f"should be a finite number, not {told}")


def test_no_limit_is_said_by_null_and_not_by_infinity() -> None:
    fields = ("budget.max_epochs", "plan.max_device_hours", "training.loss_limit")
    found = problems(*(f"{field}=inf" for field in fields))
    assert found == dict.fromkeys(fields, "should be a finite number, not inf; null is no limit")
    found = problems(*(f"{field}=-inf" for field in fields))
    assert found == dict.fromkeys(fields, "should be a finite number, not -inf")
    assert compose(*(f"{field}=null" for field in fields)).jobs


def test_numbers_that_are_not_finite_are_found_in_a_sweep_and_inside_lists_and_blocks() -> None:
    assert set(problems("-m", "training.gradient_clip=1,inf")) == {"training.gradient_clip"}
    found = problems("+experiment=demo", "+experiment.paper={rows: [{a: 1}, {a: nan}]}", "evaluation.shots=[0,inf]")
    assert found == {
        "experiment.paper.rows[1].a": "should be a finite number, not nan",
        "evaluation.shots[1]": "should be a finite number, not inf",
    }


def test_an_amount_beyond_all_numbers_is_refused() -> None:
    assert "too large" in problems("budget.tokens='1e400'")["budget.tokens"]
    (message,) = problems(f"seed={'9' * 5000}").values()
    assert "no Hydra override" in message or "is not a Hydra override" in message


@pytest.mark.parametrize("text", ["=1", "+=[1,2]", "++=[1,nan]", "~=1", "~", "@a=1"])
def test_an_override_that_names_nothing_is_told_by_its_text(text: str) -> None:
    assert problems(text, "-m") == {text: "is not a Hydra override: it names no field and no group"}


@pytest.mark.parametrize(
    ("text", "typed"),
    [
        ("root=roots/a=b", "root='roots/a=b'"),
        ("corpus.paths=[文書.jsonl, b.jsonl]", "corpus.paths=['文書.jsonl',b.jsonl]"),
        ("corpus.paths=文書.jsonl,'b c.jsonl'", "corpus.paths='文書.jsonl','b c.jsonl'"),
    ],
)
def test_a_text_that_needs_quotes_is_told_with_them(text: str, typed: str) -> None:
    (told,) = problems(text, "-m").values()
    assert told.endswith(f'; a text is typed in quotes: "{typed}"')
    assert OverridesParser.create().parse_override(typed)


@pytest.mark.parametrize("text", ["root=it's", "root=$HOME=é", "root=a=b,"])
def test_a_text_that_quotes_alone_do_not_mend_is_told_without_them(text: str) -> None:
    (told,) = problems(text).values()
    assert "in quotes" not in told


def test_a_job_in_a_directory_of_its_own_is_refused_for_it_would_look_for_relative_paths_there() -> None:
    told = "would look for relative paths in a directory of the job; leave it out"
    assert problems("hydra.job.chdir=true") == {"hydra.job.chdir": told}
    assert compose("hydra.job.chdir=false").jobs


def test_an_override_with_line_ends_is_told_in_one_line() -> None:
    text = "0\n .=\n  \x1b[2J]:x"
    assert list(problems(text)) == [r"'0\n .=\n  \x1b[2J]:x'"]


def test_a_task_may_have_numbers_of_examples_of_its_own() -> None:
    evaluation = compose("evaluation.shots=[0,5]", "evaluation.shots_of={ag_news: [32]}").jobs[0].config.evaluation
    assert evaluation.task_shots("ag_news") == (32,)
    assert evaluation.task_shots("boolq") == evaluation.shots == (0, 5)


def test_the_environment_never_enters_the_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "hunter2")
    assert "hunter2" not in repr(compose("seed=3").jobs[0].config)


def test_a_field_that_only_some_choices_have_is_given_to_those(tmp_path: Path) -> None:
    started = compose("-m", "start=scratch,checkpoint", "start.run=0123456789abcdef", f"root={tmp_path}")
    assert [job.config.start.kind for job in started.jobs] == ["scratch", "checkpoint"]
    assert started.jobs[0].overrides == ("start=scratch", f"root={tmp_path}")
    assert "start.run=0123456789abcdef" in started.jobs[1].overrides
    swept = compose("-m", "tokenizer=bpe,bytes", "tokenizer.vocab_size=4000,8000")
    sizes = [getattr(job.config.tokenizer, "vocab_size", None) for job in swept.jobs]
    assert sizes == [4000, 8000, None]


def test_a_field_that_no_choice_of_a_swept_group_has_is_refused() -> None:
    assert (
        "did you mean 'vocab_size'?"
        in problems("-m", "tokenizer=bpe,bytes", "tokenizer.vocb_size=9")["tokenizer.vocb_size"]
    )
    assert "start.run" in problems("start=scratch", "start.run=0123456789abcdef")


def test_a_launcher_is_chosen_as_in_hydra_and_a_misspelt_one_is_refused() -> None:
    assert compose("-m", "seed=0,1", "hydra/launcher=joblib").launcher == "joblib"
    assert compose("-m", "seed=0,1").launcher == "basic"
    assert "did you mean 'joblib'?" in problems("-m", "seed=0,1", "hydra/launcher=jobib")["hydra/launcher"]
    assert "n_job" in " ".join(problems("-m", "seed=0,1", "hydra/launcher=joblib", "hydra.launcher.n_job=2"))
    none = problems("-m", "seed=0,1", "hydra/launcher=joblib", "hydra.launcher.n_jobs=0")
    assert none == {"hydra.launcher.n_jobs": "0 would run no job; give how many run at once, or -1 for all cores"}


@pytest.mark.parametrize(
    "override", ["model=[]", "model@x=[]", "seed=interval(0,1)", "model=glob(*)", "hydra.mode=${now:%Y}"]
)
def test_an_override_that_names_no_value_is_refused_by_its_path(override: str) -> None:
    with pytest.raises(ConfigurationError, match=r"\n  (model|seed|overrides)\S*: "):
        compose_command(parse(["scale=tiny", override]))


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


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a process of its own, where no command before has read anything."""
    monkeypatch.setattr(hydra, "compose", hydra_compose)


@pytest.mark.usefixtures("alone")
def test_a_file_is_read_once_for_all_jobs_of_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    load = OmegaConf.load

    def counting(file: TextIO) -> DictConfig | ListConfig:
        read.append(file.name)
        return load(file)

    monkeypatch.setattr(OmegaConf, "load", counting)
    jobs = compose("-m", "tokenizer=bpe,unigram", "encoder=natural,longest_first", "scale=tiny,demo").jobs
    assert len(jobs) == 8
    assert str(configuration_directory() / "scale" / "tiny.yaml") in read
    assert len(read) == len(set(read))


@pytest.mark.usefixtures("alone")
def test_the_files_of_hydra_itself_are_merged_once_for_all_jobs_of_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    merged: list[str] = []
    load = ConfigLoaderImpl._load_single_config

    def counting(self: ConfigLoaderImpl, default: ResultDefault, repo: IConfigRepository) -> ConfigResult:
        merged.append(str(default.config_path))
        return load(self, default, repo)

    monkeypatch.setattr(ConfigLoaderImpl, "_load_single_config", counting)
    jobs = compose("-m", "tokenizer=bpe,unigram", "encoder=natural", "ordering=standard,lexical", "scale=tiny").jobs
    assert len(jobs) == 4
    assert merged.count("tokenizer/unigram") == 2
    assert merged.count("hydra/config") == merged.count("hydra/launcher/basic") == 1


@pytest.mark.usefixtures("alone")
def test_the_same_choices_in_another_order_are_composed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    composed: list[list[str]] = []

    def counting(name: str, overrides: list[str], **options: bool) -> DictConfig:
        composed.append(overrides)
        return hydra_compose(name, overrides, **options)

    monkeypatch.setattr(hydra, "compose", counting)
    jobs = compose("-m", "scale=tiny", "arm=bpe,lbpe", "seed=0,1").jobs
    assert len(jobs) == 4
    assert len({frozenset(overrides) for overrides in composed}) == len(composed)


def test_groups_of_hydra_s_own_search_path_are_composed(tmp_path: Path) -> None:
    (tmp_path / "extra").mkdir()
    (tmp_path / "extra" / "mine.yaml").write_text("# @package _global_\nseed: 7\n", encoding="utf-8")
    composition = compose("-m", f"hydra.searchpath=[file://{tmp_path}]", "+extra=mine", "evaluation.limit=1,2")
    assert [(job.config.seed, job.config.evaluation.limit) for job in composition.jobs] == [(7, 1), (7, 2)]


def test_a_mistyped_experiment_is_told_the_nearest_of_all_of_them() -> None:
    with pytest.raises(ConfigurationError) as refused:
        compose_command(parse(["experiment=lbpe/tabel_1"]))
    told = str(refused.value)
    assert "experiment: 'lbpe/tabel_1' is unknown; did you mean 'lbpe/table_1'?" in told
    assert "demo" in told and "in_context/ablation" in told and "scaffold_bpe/table_1" in told


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("training.beta1=1", "should be less than 1"),
        ("training.beta2=1.0", "should be less than 1"),
        ("training.beta1=-0.1", "should be greater than or equal to 0"),
    ],
)
def test_a_decay_that_adamw_would_refuse_is_refused_by_path(override: str, message: str) -> None:
    found = problems(override)
    assert found[override.split("=", maxsplit=1)[0]].startswith(message)


def test_a_seed_of_dropout_that_no_kernel_takes_is_refused_by_path() -> None:
    found = problems("encoder=dropout", f"encoder.seed={2**63}")
    assert found == {"encoder.seed": f"should be less than {2**63}"}
    assert compose("encoder=dropout", f"encoder.seed={2**63 - 1}").jobs


def test_a_run_whose_name_reads_as_a_number_is_to_be_quoted() -> None:
    told = problems("start=checkpoint", "start.run=1234567890123456")["start.run"]
    assert told.startswith("should be a valid string, not 1234567890123456: quote what is text")
    compose("start=checkpoint", "start.run='1234567890123456'")


@pytest.mark.parametrize(
    "overrides",
    [
        ("training.beta1=0", "training.beta2=0"),
        ("ordering=lexical", "ordering.length_normalization=1"),
        ("ordering=in_context_released", "ordering.jaccard=1"),
        ("neighbours.recall=1",),
    ],
)
def test_the_ends_of_a_range_that_mean_something_are_accepted(overrides: tuple[str, ...]) -> None:
    assert compose(*overrides).jobs


@pytest.mark.parametrize("group", ["training", "evaluation", "engine", "packing"])
def test_every_field_of_a_block_can_be_typed_without_a_plus(group: str) -> None:
    """A field that no file gives would be refused where it is typed as the documentation has it."""
    block = getattr(compose().jobs[0].config, group)
    for field in dataclasses.fields(block):
        value = getattr(block, field.name)
        if field.name != "kind" and isinstance(value, bool | int | float | str):
            compose(f"{group}.{field.name}={str(value).lower() if isinstance(value, bool) else value}")


@pytest.mark.parametrize(
    ("tokenizer", "encoder"),
    [
        ("bpe", "merge_rank"), ("scaffold_bpe", "merge_rank"), ("wordpiece", "left_to_right"), ("unigram", "viterbi"),
        ("words", "whole"), ("bytes", "merge_rank"),
    ],
)  # fmt: skip
def test_the_natural_encoder_is_that_of_the_tokenizer(tokenizer: str, encoder: str) -> None:
    natural, named = (compose(f"tokenizer={tokenizer}", f"encoder={name}") for name in ("natural", encoder))
    assert natural.jobs[0].config == named.jobs[0].config
    assert natural.jobs[0].config.encoder.kind == encoder


def test_a_word_without_a_value_and_a_value_for_a_block_are_refused() -> None:
    assert problems("lbpe")["lbpe"].startswith("is no override, which is typed NAME=VALUE")
    assert problems("-m", "seeds=0,1")["seeds"].startswith("is a block of fields, which has no value; its fields: ")


def test_a_block_of_fields_takes_one_of_its_fields() -> None:
    assert compose("seeds={order: 3}").jobs[0].config.seeds.order == 3


@pytest.mark.parametrize("swept", ["{order: 3},{order: 4}", "choice({order: 3},{order: 4})"])
def test_a_block_of_fields_takes_some_of_them_job_by_job(swept: str) -> None:
    assert [job.config.seeds.order for job in compose("-m", f"seeds={swept}").jobs] == [3, 4]


def test_the_mlflow_of_the_environment_is_taken_where_none_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    server = "http://127.0.0.1:5000"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", server)
    assert compose().jobs[0].config.tracking.uri == server
    assert compose("tracking.uri=http://other:1").jobs[0].config.tracking.uri == "http://other:1"
    assert compose("tracking=none").jobs[0].config.tracking.uri is None
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "")
    assert compose().jobs[0].config.tracking.uri is None


@pytest.mark.parametrize("name", ["lr", "epochs", "batch_size"])
def test_a_name_that_is_near_to_none_is_told_where_the_names_are(name: str) -> None:
    told = f"{name!r} is unknown; `paribus explain training` says what there is"
    assert problems(f"training.{name}=1") == {f"training.{name}": told}
    assert "did you mean 'learning_rate'?" in problems("training.learning_rat=1")["training.learning_rat"]


def test_a_sweeper_is_refused_with_the_reason() -> None:
    assert problems("hydra/sweeper=optuna")["hydra/sweeper"].startswith("no sweeper is used: paribus composes all jobs")
    assert compose("hydra/sweeper=basic").jobs
