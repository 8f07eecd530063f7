"""Room for encoded text, stages behind `until`, and the search for neighbours in a plan."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from paribus.config.groups.budget import EqualTextBudget
from paribus.config.groups.embedding import NeighboursConfig
from paribus.config.groups.ordering import InContextOrdering
from paribus.config.groups.packing import PairPacking
from paribus.config.groups.tokenization import DropoutEncoder
from paribus.ordering.contexts.readings import SAMPLED
from paribus.pipeline.prepared_run import PreparedRun
from paribus.planning.bill import bill
from paribus.planning.encoded import Encoded
from paribus.planning.plan import make_plan
from support.plans import planned_run, store_record

CORPUS = {"train": {"documents": 10, "bytes": 1_000_000}}


def test_draws_take_room_as_often_as_they_are(tmp_path: Path) -> None:
    pairs = {"train": {"documents": 1_000, "bytes": 100_000, "target_bytes": 60_000}}
    told = {}
    for draws in (1, 32):
        run = planned_run(tmp_path / str(draws), encoder=DropoutEncoder(draws=draws), packing=PairPacking())
        bare = make_plan([run])
        assert bare.encoded == Encoded(draws=draws, unknown=True)
        assert ("room for tokens and contexts is not known" in "\n".join(bill(bare))) == (draws > 1)
        store_record(run, "corpus", pairs)
        plan = make_plan([run])
        told[draws] = "\n".join(bill(plan))
        # A byte is a token of two bytes; bounds, lengths of sources and four arrays of contexts are of eight.
        assert plan.encoded.tokens == draws * (2 * 100_000 + 2 * 8 * 1_000) + 8 * 1_000
        # All 100,000 bytes are sampled, two integers each.
        assert plan.encoded.contexts == draws * 8 * (4 * 1_000 + 2 * 100_000)
    assert "still to encode: ~218.8 KiB of tokens and 1.6 MiB of contexts\n" in told[1] + "\n"
    assert "~6.6 MiB of tokens and 49.8 MiB of contexts, which 32 draws of BPE-dropout take 32 times" in told[32]


def test_documents_take_the_room_of_their_tokens_once_there_is_a_corpus(
    tmp_path: Path,
) -> None:
    run = planned_run(tmp_path)
    assert "still to encode" not in "\n".join(bill(make_plan([run])))
    store_record(run, "corpus", CORPUS)
    encoded = make_plan([run]).encoded
    # 31,251 contexts of 32 tokens, ends of documents among them, and a sample of the bytes.
    contexts = 8 * (4 * 31_251 + 2 * SAMPLED)
    assert encoded == Encoded(tokens=2 * 1_000_000 + 2 * 8 * 10, contexts=contexts)
    store_record(run, "tokens", {"documents": 10, "bytes": 1_000_000, "tokens": 1_000_000})
    assert make_plan([run]).encoded == Encoded(contexts=contexts)
    assert "still to encode: ~5.0 MiB of contexts" in "\n".join(bill(make_plan([run])))
    store_record(run, "contexts", {})
    assert make_plan([run]).encoded == Encoded()


def until(run: PreparedRun, stage: Any) -> PreparedRun:
    return replace(run, job=replace(run.job, config=replace(run.job.config, until=stage)))


def test_stages_behind_until_are_neither_planned_nor_counted(tmp_path: Path) -> None:
    plan = make_plan([until(planned_run(tmp_path), "contexts")])
    assert {stage.name for stage in plan.stages} == {"corpus", "vocabulary", "tokens", "order", "contexts"}
    assert (plan.trainings, plan.flops, plan.disk_bytes) == ([], 0, 0)
    assert plan.device_hours is not None and plan.device_hours.value == 0
    told = "\n".join(bill(plan))
    assert "until=contexts: what follows that stage, or does not lead to it, is neither made nor counted" in told
    assert "to train" not in told


PAPER = NeighboursConfig(index="ivf_pq", lists=32_768, probes=64, code_size=256, shard_documents=50_000_000)


@pytest.mark.parametrize(
    ("neighbours", "documents", "warned"),
    [
        (PAPER, 235_266_464, "32,768 quantized lists of ~235.3M documents take about 9,276 core-hours"),
        (PAPER, 2_000_000, None),
        (NeighboursConfig(), 2_000_000, None),
        (NeighboursConfig(), 235_266_464, "core-hours"),
        (NeighboursConfig(index="flat"), 235_266_464, None),
    ],
)
@pytest.mark.parametrize("made", [True, False])
def test_a_search_that_takes_many_core_hours_is_warned_of(
    tmp_path: Path, neighbours: NeighboursConfig, documents: int, warned: str | None, made: bool
) -> None:
    """Counted in the corpus, or taken from the text of the budget, in documents of 6.4 kB, where there is none."""
    budget = EqualTextBudget(text=6_400 * documents)
    run = planned_run(tmp_path, ordering=InContextOrdering(), neighbours=neighbours, budget=budget)
    if made:
        store_record(run, "corpus", {"train": {"documents": documents, "bytes": 6_400 * documents}})
    told = "\n".join(make_plan([run]).judgement)
    assert warned in told if warned else "core-hours" not in told
    store_record(run, "neighbours", {})
    assert "core-hours" not in "\n".join(make_plan([run]).judgement)
