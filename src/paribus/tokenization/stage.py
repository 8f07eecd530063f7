"""The stages `vocabulary` and `tokens`."""

from typing import Any

from paribus.config.groups.tokenization import ExistingTokenizer, PredictiveEntropyPretokenizer
from paribus.config.schema import RunConfig
from paribus.config.units import format_number
from paribus.stage import Device, ExternalFiles, Stage, always, fields, late, together


def _config_with_files(config: RunConfig) -> Any:
    return config.tokenizer if isinstance(config.tokenizer, ExistingTokenizer) else config.pretokenizer


def _reads_language_model(config: RunConfig) -> bool:
    """True if a pre-tokenizer reads a language model, whose libraries may ask a hub."""
    return isinstance(config.pretokenizer, PredictiveEntropyPretokenizer)


def _device(config: RunConfig) -> Device | None:
    """Device of a pre-tokenizer's language model; nothing else here has one."""
    if not isinstance(config.pretokenizer, PredictiveEntropyPretokenizer):
        return None
    return Device("pretokenizer.device", config.pretokenizer.device)


VOCABULARY = Stage(
    "vocabulary",
    code_version=5,
    inputs=lambda config: () if isinstance(config.tokenizer, ExistingTokenizer) else ("corpus",),
    identity=together(fields("pretokenizer"), fields("tokenizer")),
    build=late("paribus.tokenization.build:build_vocabulary"),
    imports=("paribus.tokenization.build",),
    online=_reads_language_model,
    outside=ExternalFiles(_config_with_files, late("paribus.tokenization.existing:vocabulary_fingerprint")),
    device=_device,
    facts=lambda result: [f"{format_number(result['vocab_size'])} tokens"],
)
TOKENS = Stage(
    "tokens",
    code_version=2,
    inputs=always("corpus", "vocabulary"),
    identity=fields("encoder"),
    build=late("paribus.tokenization.build:build_tokens"),
    imports=("paribus.tokenization.build",),
    online=_reads_language_model,
    device=_device,
    facts=lambda result: [
        f"{format_number(result['tokens'])} tokens",
        f"{result['bytes_per_token']:.3g} bytes a token",
    ],
)
