"""The bills of the papers' own experiments on 16 nodes of 8 H800, as `paribus plan` reckons them.

python benchmarks/paper_costs.py > docs/costs.md

Seconds; nothing is trained and no corpus is needed.
"""

import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from paribus.checks import compose_command
from paribus.config.arguments import parse
from paribus.config.units import format_count, format_hours, format_size
from paribus.pipeline.prepare import prepare_runs
from paribus.planning.plan import Plan, make_plan

CLUSTER = "plan=h800_128 training.nodes=16 training.processes=8"
COPIES = "training.parallel=ddp"
"""Every device has the whole model."""
NODES = "training.parallel=fsdp training.shard_processes=8"
"""Every node has the whole model, divided among its devices."""
DIVIDED = ("6.7B", "7B")
"""Sizes of which a device has no room for weights, moments and gradients."""
PILE = "corpus=pile corpus.paths='[pile/*.zst]'"
CRAWL = "corpus=ccnet"
TRANSLATION = (
    "scale=paper model=wmt_big training=ott_2018 training.checkpoints=60 training.keep_checkpoints=10 "
    "evaluation.last_checkpoints=1 evaluation.average_checkpoints=10"
)
TO_GERMAN = "corpus.source='[wmt14/train.en]' corpus.target='[wmt14/train.de]' budget.steps=20K encoder.draws=72"
TO_FRENCH = (
    "corpus.source='[wmt14/train.en]' corpus.target='[wmt14/train.fr]' evaluation.tasks='[wmt14_en_fr]' "
    "model.dropout=0.1 tokenizer.vocab_size=40000 budget.steps=120K encoder.draws=54"
)
CONTINUED = "budget.tokens=5B"
CONTEXTS = "budget=tokens_300b corpus.sample=null"
ENCODER = "duplicates=embedding neighbours=exact neighbours.shard_documents=12_000_000 embedder=contriever"
SIZES = (("468M", "paper"), ("1.2B", "paper_1.2b"), ("6.7B", "paper_6.7b"))


@dataclass(frozen=True)
class Experiment:
    """A row: what it is, and the overrides that it is planned with."""

    title: str
    overrides: str

    @property
    def layout(self) -> str:
        """How the devices share it."""
        divided = any(size in self.title.split() for size in DIVIDED)
        long = self.title.startswith("In-Context")
        contexts = {(False, False): 16, (False, True): 2, (True, False): 4, (True, True): 1}[divided, long]
        return f"{NODES if divided else COPIES} training.micro_batch={contexts}"


def tokenized(paper: str, folder: str, larger: str, more: str, text: str) -> Iterator[Experiment]:
    """What LBPE and Scaffold-BPE both have: three sizes, larger vocabularies, three times the tokens, equal text."""
    for size, scale in SIZES:
        yield Experiment(f"{paper}, {size}", f"experiment={folder}/table_1 scale={scale} {PILE}")
    for title, table, override in (
        ("468M, 64K tokens of vocabulary", larger, "tokenizer.vocab_size=64000 "),
        ("468M, 128K tokens of vocabulary", larger, "tokenizer.vocab_size=128000 "),
        ("468M, 300B tokens", more, "budget.tokens=300B "),
        ("468M, equal text", text, ""),
    ):
        yield Experiment(f"{paper}, {title}", f"experiment={folder}/table_{table} scale=paper {override}{PILE}")


def ordered(title: str, name: str, size: str, overrides: str = "") -> Experiment:
    """One of In-Context Pretraining's, at a size."""
    scale = f"scale=in_context_{size} {CONTEXTS} {CRAWL} {ENCODER}"
    # Of an option that is given twice the later counts, so an experiment's own stand after those of all.
    words = filter(None, (f"experiment=in_context/{name}", scale, overrides))
    return Experiment(f"In-Context, {title}, {size.upper()}", " ".join(words))


EXPERIMENTS = (
    *tokenized("LBPE", "lbpe", "4", "5", "7"),
    Experiment("LBPE, going on: the two that go on", f"experiment=lbpe/table_3 scale=paper {CONTINUED} {PILE}"),
    Experiment("LBPE, with Scaffold-BPE, 468M", f"experiment=lbpe/table_8 scale=paper {PILE}"),
    *tokenized("Scaffold-BPE", "scaffold_bpe", "3", "4", "7"),
    Experiment("Scaffold-BPE, closed-book questions, 6.7B", f"experiment=scaffold_bpe/table_2 scale=paper_6.7b {PILE}"),
    Experiment("Scaffold-BPE, embeddings, 6.7B", f"experiment=scaffold_bpe/figure_6 scale=paper_6.7b {PILE}"),
    Experiment("Scaffold-BPE, translation En-De", f"experiment=scaffold_bpe/table_5 {TRANSLATION} {TO_GERMAN}"),
    Experiment("Scaffold-BPE, translation En-Fr", f"experiment=scaffold_bpe/table_5 {TRANSLATION} {TO_FRENCH}"),
    *(ordered("language modelling", "figure_3", size) for size in ("0.3b", "0.7b", "1.5b", "7b")),
    ordered("ablation: orders", "ablation", "1.5b"),
    ordered("ablation: near duplicates kept", "ablation", "1.5b", "ordering=in_context duplicates=off"),
    ordered("classification", "table_1", "7b"),
    ordered("reading", "table_2", "7b"),
    ordered("retrieval", "table_3", "7b"),
    ordered("factuality", "table_4", "7b"),
    ordered("SCROLLS", "table_5", "7b", "finetuning.answer_characters=4000"),
    ordered("while training", "figure_4", "7b"),
    ordered("numbers of examples", "figure_6", "7b"),
)
HEADINGS = (
    "experiment",
    "trainings",
    "tokens each",
    "parameters",
    "FLOPs",
    "device-hours",
    "hours on 128",
    "disk",
    "GPU",
)


def plan_of(experiment: Experiment) -> Plan:
    """The plan of an experiment on the cluster, in an output root that is empty."""
    with tempfile.TemporaryDirectory() as root:
        words = [word.replace("'", "") for word in f"{experiment.overrides} {CLUSTER} {experiment.layout}".split()]
        return make_plan(prepare_runs(compose_command(parse([*words, f"root={root}"])), tolerate_missing=True))


def row(experiment: Experiment, plan: Plan) -> str:
    """A line of the table."""
    run = plan.runs[0]
    hours = plan.device_hours
    assert hours is not None
    at_most = "at most " if run.full else ""
    cells = (
        experiment.title,
        str(len(plan.trainings)),
        at_most + " and on to ".join(format_count(each.length.tokens) for each in (*plan.firsts[:1], run)),
        format_count(run.parameters),
        f"{plan.flops:.2e}",
        at_most + format_hours(hours),
        at_most + format_hours(hours / plan.devices),
        format_size(plan.disk_bytes),
        "—" if run.memory is None else format_size(run.memory),
    )
    return f"| {' | '.join(cells)} |"


def total(plans: Sequence[Plan]) -> str:
    """All of them, a training that several share once."""
    unique = {run.training.key: run for plan in plans for run in plan.trainings}
    hours = sum(run.hours for run in unique.values() if run.hours is not None)
    flops = sum(run.length.flops_left for run in unique.values())
    shared = sum(len(plan.trainings) for plan in plans) - len(unique)
    return (
        f"All of them: {len(unique)} trainings ({shared} more are shared and counted once), {flops:.3g} FLOPs, "
        f"**{format_hours(hours)} device-hours**, {format_hours(hours / 128)} hours with all 128 devices always in use."
    )


def page() -> Iterator[str]:
    """The lines of docs/costs.md."""
    plans = [plan_of(experiment) for experiment in EXPERIMENTS]
    yield HEADER
    yield f"| {' | '.join(HEADINGS)} |"
    yield f"|---|{'---:|' * (len(HEADINGS) - 1)}"
    yield from (row(experiment, plan) for experiment, plan in zip(EXPERIMENTS, plans, strict=True))
    yield f"\n{total(plans)}\n"
    yield COMMANDS
    yield from (
        f"- {experiment.title}: `paribus plan {experiment.overrides} CLUSTER {experiment.layout}`"
        for experiment in EXPERIMENTS
    )


HEADER = f"""# What the papers' experiments cost

Made by `python benchmarks/paper_costs.py > docs/costs.md`. These are plans: none of it was trained at this scale.

16 nodes of 8 NVIDIA H800, that is `{CLUSTER}`. Models up to 1.5B parameters are whole on every device
(`{COPIES}`), so that gradients alone travel, once a step; those of 6.7B are divided among the devices of a
node, of which there are 16 copies (`{NODES}`). A pass has 8,192 tokens or more.

- **FLOPs**: 6 N + 12 · layers · width · context length a token, forward and backward (PaLM, arXiv 2204.02311,
  appendix B; [how-to.md](how-to.md#choose-the-model-and-the-budget)), N being all parameters but the input
  embedding. Attention is that over a full context, which at 8,192 tokens overstates what is computed under a causal
  mask: of the 7B model's FLOPs a quarter are attention.
- **Device-hours**: FLOPs / (0.4 · 989e12) / 3600. 989 TFLOP/s is the H800's dense bfloat16 peak, as the H100 SXM's
  (NVIDIA's data sheet: 1,979 with sparsity); what an H800 has less of is NVLink and float64.
- **40 %** is assumed. One H100 alone had 49 % at 468M and 55 % at 1.2B ([benchmarks.md](benchmarks.md#training));
  more than one were not measured. Llama 3 (arXiv 2407.21783, table 4) had 38 to 43 % on 8,192 and 16,384 H100 at
  405B parameters; PaLM 46 % on TPU v4. Small models, slow links and much reading give less: with
  `plan.utilisation=0.2` every hour here is two.
- **Hours on 128**: trainings of an experiment one after another, each on all 128 devices, as 128 divides every
  global batch. Data parallelism is taken to lose no more than the 40 % say.
- **Disk**: checkpoints kept, five a training, six of In-Context and ten of translation, and AdamW's moments. **GPU**:
  bytes of one process in that layout; an H800 has 80 GB, and a tenth more than these must be free.
- Not in it: reading, tokenizing, embedding, searching and scoring. [scale.md](scale.md) extrapolates what searching for
  neighbours takes.
- Rows of pairs are taken to be full, 256 tokens a side, so translation costs far less than is said, here and in the
  total: sentences have some 30. The numbers of its steps are ours, as the paper's own are not known here.
- The number of tokens of In-Context's ablation is not known either: here it is that of the other runs. The sizes of
  In-Context's models are those of [models.md](models.md).
- Models of 300B tokens go on from their own training of 100B, whose FLOPs and hours are counted once.
- LBPE's models that go on start from the 100B-token BPE model of its first row.
- Tables that score the same models share their trainings: at 7B all of In-Context's are the three of its first row of
  that size.
- Tables and figures of tokenizers train no language model (LBPE's II and VI, Scaffold-BPE's 6, 8 and figures 1, 2 and
  5, Entropy-Driven Pre-Tokenization's, arXiv 2506.15889): `paribus tokens` makes them on CPUs, in minutes
  or, of the whole Pile, hours, so they have no bill.
"""
COMMANDS = "The commands, where CLUSTER is what is written above:\n"


if __name__ == "__main__":
    sys.stdout.write("\n".join(page()) + "\n")
