"""Stage contexts of the ordering stages on a small corpus."""

from collections.abc import Sequence
from pathlib import Path

from paribus.config.groups.corpus import PydocsCorpus
from paribus.config.groups.evaluation import EvaluationConfig
from paribus.config.groups.execution import EngineConfig, ScaleConfig, TrackingConfig
from paribus.config.groups.ordering import InContextOrdering, OrderingConfig, TfidfEmbedder
from paribus.config.groups.tokenization import BytesTokenizer, MergeRankEncoder, PatternPretokenizer
from paribus.config.groups.training import EqualTokensBudget, ModelConfig, TrainingConfig
from paribus.config.schema import RunConfig
from paribus.corpus.artifact import CorpusWriter
from paribus.engine.local import LocalEngine
from paribus.pipeline.context import SilentReporter, StageContext

IN_CONTEXT = InContextOrdering(
    embedder=TfidfEmbedder(dimensions=64), retrieved_neighbours=10, path_neighbours=5, duplicate_threshold=0.95
)


def topics(count: int) -> list[str]:
    """Documents about five topics in turn, no two of them equal."""
    words = ["matrix vector rank", "whale sea ship", "bread yeast oven", "court law judge", "star orbit planet"]
    return [
        f"{words[i % 5]} {words[i % 5].split()[i // 5 % 3]} number{i} common words of every document"
        for i in range(count)
    ]


def write_corpus(path: Path, texts: Sequence[str]) -> Path:
    """A corpus artefact whose training split is `texts`."""
    with CorpusWriter(path, heldout=0.0) as writer:
        for number, text in enumerate(texts):
            writer.add(str(number), text, "test")
    return path


def stage_context(root: Path, stage: str, ordering: OrderingConfig, *, seed: int = 0, **inputs: Path) -> StageContext:
    """A context that writes to `root`/`stage`."""
    output, work = root / stage, root / f"{stage}.work"
    output.mkdir(parents=True)
    work.mkdir(exist_ok=True)
    config = RunConfig(
        corpus=PydocsCorpus(),
        pretokenizer=PatternPretokenizer(),
        tokenizer=BytesTokenizer(),
        encoder=MergeRankEncoder(),
        ordering=ordering,
        model=ModelConfig(width=8, layers=1, heads=1, ffn_width=8),
        budget=EqualTokensBudget(tokens=1),
        training=TrainingConfig(),
        evaluation=EvaluationConfig(),
        tracking=TrackingConfig(),
        engine=EngineConfig(),
        scale=ScaleConfig(),
        seed=seed,
    )
    return StageContext(config, inputs, output, work, SilentReporter(), LocalEngine())
