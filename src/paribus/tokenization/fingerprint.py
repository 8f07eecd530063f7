"""What a vocabulary depends on that is not in the configuration: an existing tokenizer, a pre-tokenizer's model."""

from pathlib import Path

from paribus.config.groups.tokenization import ExistingTokenizer, PredictiveEntropyPretokenizer, PretokenizerConfig
from paribus.stage import JSON
from paribus.store.files import FileDigests


def fingerprint(config: PretokenizerConfig | ExistingTokenizer, digests: FileDigests) -> dict[str, JSON]:
    """Digests of the files; empty where there are none. DataError where the directory holds no tokenizer or model."""
    if isinstance(config, ExistingTokenizer):
        from paribus.tokenization.interchange import existing

        return existing.fingerprint(Path(config.path), digests)
    if not isinstance(config, PredictiveEntropyPretokenizer):
        return {}
    from paribus.tokenization.pretokenize.spans.model_files import model_digest

    return {"model": model_digest(Path(config.model).expanduser())}
