"""Slips in the names of an experiment's table, told before anything runs."""

from pathlib import Path

import pytest

from paribus.checks.command import compose_command
from paribus.checks.table_slips import is_slip
from paribus.config.arguments import parse
from paribus.errors import ConfigurationError
from paribus.pipeline.prepare import prepare

SWEEP = ("-m", "scale=tiny", "corpus=pydocs_small", "tokenizer=bpe,scaffold_bpe")


def refused(tmp_path: Path, *fields: str, tolerate_missing: bool = True) -> str:
    given = [f"+experiment.table.{field}" for field in fields]
    composition = compose_command(parse([*SWEEP, f"root={tmp_path}", *given]))
    try:
        prepare(composition, tolerate_missing=tolerate_missing)
    except ConfigurationError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    "fields",
    [
        ("columns=[boolq,squad:f1,hellaswag/5_shot,average,flops,heldout_clean,bits_per_byte]",),
        ("columns=[reading]", "groups={reading:[race_high,squad]}"),
        ("columns=[mmlu,a/b]", "groups={mmlu:[mmlu],a/b:[boolq]}"),
        ("columns=[squad:f1/5_shot,boolq:acc_norm,mmlu_anatomy:acc_mine,heldout_clean:perplexity,bits_per_byte]",),
        ("columns=[copa,xcopa_et,of_my_own]", "metrics={boolq:acc}"),
        ("metrics={boolq:acc,noticia:rougeLsum}",),
        ("columns=[openbookqa,openbookqa_bn]",),
        ("baseline={tokenizer:bpe}", "rows=[tokenizer]", "order={tokenizer:[scaffold_bpe,bpe]}"),
        ("baseline={tokenizer:unigram}",),
        ("names={bpe:BPE,unigram:BPE,boolq:BoolQ,bits_per_byte:BPB,tokenizer:T,something_else:E}",),
        ("order={tokenizer:[bytes,unigram,words]}", "decimals={boolq:2,average:1,bits_per_byte:4,hours:0}"),
    ],
)
def test_what_some_run_may_have_is_accepted_scored_here_or_not(fields: tuple[str, ...], tmp_path: Path) -> None:
    assert refused(tmp_path, *fields) == ""


@pytest.mark.parametrize(
    ("words", "fields"),
    [
        (("tokenizer=bpe", "seed=1"), ("baseline={tokenizer:bpe}", "rows=[tokenizer]", "order={tokenizer:[bpe]}")),
        (("-m", "tokenizer=bpe", "seed=0,1"), ("baseline={tokenizer:bpe}",)),
        (("-m", "arm=choice(lbpe)", "seed=0,1"), ("baseline={arm:bpe}", "order={arm:[bpes,lbpe]}")),
        (("-m", "arm=scaffold_bpe,unigram"), ("baseline={arm:scaffold_lbpe}",)),
    ],
)
def test_a_part_of_a_sweep_may_have_the_table_of_the_whole(
    words: tuple[str, ...], fields: tuple[str, ...], tmp_path: Path
) -> None:
    given = [f"+experiment.table.{field}" for field in fields]
    command = parse([*words, "scale=tiny", "corpus=pydocs_small", f"root={tmp_path}", *given])
    assert prepare(compose_command(command), tolerate_missing=True)


@pytest.mark.parametrize(
    ("field", "told"),
    [
        ("columns=[bits_per_byte,flop]", "experiment.table.columns[1]: 'flop' is unknown; did you mean 'flops'?"),
        ("columns=[boolq/5_shots]", "columns[0]: 'boolq/5_shots' is no task/N_shot, such as boolq/5_shot"),
        (
            "columns=[average/5_shot]",
            "'average/5_shot' is unknown, since 'average' is no task: it has no",
        ),
        ("columns=[heldout_clean:perplexty]", "'heldout_clean:perplexty' is unknown, since 'heldout_clean' is no task"),
        ("columns=[squad:f11/5_shot]", "experiment.table.columns[0]: 'f11' is unknown; did you mean 'f1'?"),
        (
            "columns=[mmlu]",
            "columns[0]: 'mmlu' is a group of tasks, which has no scores of its own; experiment",
        ),
        (
            "metrics={mmlu:acc_norm}",
            "metrics.mmlu: 'mmlu' is a group of tasks, which has no scores of its own; name",
        ),
        ("columns=[bolq]", "experiment.table.columns[0]: 'bolq' is unknown; did you mean 'boolq'?"),
        ("columns=[boolqq/5_shot]", "experiment.table.columns[0]: 'boolqq/5_shot' is unknown; did you mean 'boolq'?"),
        ("groups={reading:[race_hihg]}", "groups.reading[0]: 'race_hihg' is unknown; did you mean 'race_high'?"),
        ("metrics={squadd:f1}", "experiment.table.metrics.squadd: 'squadd' is unknown; did you mean 'squad'?"),
        ("baseline={tokenizer:bp}", "experiment.table.baseline.tokenizer: 'bp' is unknown; did you mean 'bpe'?"),
        ("baseline={tokeniser:bpe}", "experiment.table.baseline: factor 'tokeniser' is unknown; did you mean 'token"),
        ("rows=[encodr]", "experiment.table.rows: factor 'encodr' is unknown; "),
        ("metrics={boolq:acc_nrom}", "experiment.table.metrics.boolq: 'acc_nrom' is unknown; did you mean 'acc_norm'?"),
        ("decimals={acuracy:1}", "experiment.table.decimals.acuracy: 'acuracy' is unknown; did you mean 'accuracy'?"),
        ("decimals={accuracy:-1}", "experiment.table.decimals.accuracy: -1 is no number of digits from 0 to 10"),
        ("groups={reading:[]}", "experiment.table.groups.reading: is empty; list the tasks it is the mean of"),
        ("groups={text:[bits_per_byte]}", "groups.text[0]: 'bits_per_byte' is no task; a group is a mean of tasks"),
        ("order={tokenizer:[scafold_bpe]}", "experiment.table.order.tokenizer[0]: 'scafold_bpe' is unknown; did you"),
        ("names={bpe:BPE,scaffold_bpe:BPE}", "experiment.table.names: bpe and scaffold_bpe are both called 'BPE'; "),
        ("names={scaffold_bpe:bpe}", "experiment.table.names: bpe and scaffold_bpe are both called 'bpe'; "),
        ("names={scafold_bpe:S}", "experiment.table.names.scafold_bpe: 'scafold_bpe' is unknown; did you mean 'scaff"),
        ("names={tokeniser:T}", "experiment.table.names.tokeniser: 'tokeniser' is unknown; did you mean 'tokenizer'?"),
        ("order={tokeniser:[bpe]}", "experiment.table.order: factor 'tokeniser' is unknown; "),
    ],
)
def test_a_slip_is_refused_by_its_path_in_a_plan_and_before_a_run(field: str, told: str, tmp_path: Path) -> None:
    for tolerate_missing in (True, False):
        assert told in refused(tmp_path, field, tolerate_missing=tolerate_missing)


def test_a_task_of_lm_eval_or_of_the_user_is_no_slip_of_another(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("task: boolqs\ndataset_path: mine\n", encoding="utf-8")
    assert is_slip("boolqs", ["boolq"])
    assert not is_slip("boolqs", ["boolq"], str(tmp_path))
    assert not is_slip("xcopa_et", ["xcopa_e"])


def test_runs_of_one_command_have_one_table(tmp_path: Path) -> None:
    told = refused(tmp_path, "primary=[bits_per_byte],[continuation]")
    assert "experiment.table: runs of one command are in one table, and these name several" in told
    assert refused(tmp_path, "primary=[bits_per_byte]") == ""


def test_tasks_of_a_fine_tuning_are_tasks_also_where_lm_eval_has_groups_of_their_names(tmp_path: Path) -> None:
    tuned = ("scale=laptop", "finetuning=scrolls", "finetuning.tasks=[qmsum]", "finetuning.answer_characters=500")
    table = "+experiment.table={columns:[qmsum,qasper],metrics:{qasper:f1}}"
    assert prepare(compose_command(parse([*SWEEP, *tuned, f"root={tmp_path}", table])), tolerate_missing=True)


def test_of_values_another_one_is_no_slip(tmp_path: Path) -> None:
    swept = [*SWEEP[:-1], "training.learning_rate=0.001,0.002"]
    given = [f"root={tmp_path}", "+experiment.table.baseline={training.learning_rate:'0.0001'}"]
    assert prepare(compose_command(parse([*swept, *given])), tolerate_missing=True)
