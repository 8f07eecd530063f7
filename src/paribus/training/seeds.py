"""Which seeds a training draws by: no other belongs into its key, lest one training pass for several."""

from paribus.config.groups.model import EncoderDecoderModel, Part, ScratchStart
from paribus.config.schema import RunConfig


def training_seeds(config: RunConfig) -> dict[Part, int]:
    """By part: weights that begin at random, contexts that are shuffled, dropout of a model that has any."""
    parts: list[Part] = ["weights"] if isinstance(config.start, ScratchStart) else []
    parts += ["contexts"] if config.packing.shuffle != "none" else []
    return {part: config.seed_of(part) for part in [*parts, *_dropout(config)]}


def finetuning_seeds(config: RunConfig) -> dict[Part, int]:
    """By part: examples are always shuffled."""
    parts: list[Part] = ["contexts", *_dropout(config)]
    return {part: config.seed_of(part) for part in parts}


def _dropout(config: RunConfig) -> list[Part]:
    model = config.model
    drops = isinstance(model, EncoderDecoderModel) and bool(model.dropout or model.attention_dropout)
    return ["dropout"] if drops else []
