"""Fields that nothing reads beside the other choices of a run, such as how a cosine ends where the schedule is none."""

from collections.abc import Iterator

from paribus.config.groups.model import EncoderDecoderModel
from paribus.config.schema import RunConfig


def idle_fields(config: RunConfig) -> Iterator[str]:
    """Their config paths, of identity fields; what they are set to is part of keys and tables all the same."""
    if config.training.schedule != "cosine":
        yield "training.min_learning_rate_ratio"
    if config.training.warmup_steps is not None:
        yield "training.warmup_share"
    if not isinstance(config.model, EncoderDecoderModel):
        yield from (f"evaluation.{name}" for name in ("translations", "beams", "length_penalty"))
