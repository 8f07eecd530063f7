"""What a vocabulary depends on that is not in the configuration: the language model of its pre-tokenizer."""

from pathlib import Path

from paribus.config.groups.tokenization import PredictiveEntropyPretokenizer, PretokenizerConfig
from paribus.pipeline.context import JSON


def fingerprint(config: PretokenizerConfig, cache: Path) -> dict[str, JSON]:
    """Digest of the model's files; empty where there is no model. DataError where the directory is no model."""
    if not isinstance(config, PredictiveEntropyPretokenizer):
        return {}
    from paribus.tokenization.spans.model_files import model_digest

    return {"model": model_digest(Path(config.model).expanduser())}
