"""The stages `vocabulary` and `tokens`."""

from typing import Any

from paribus.config.groups.tokenization import ExistingTokenizer, PredictiveEntropyPretokenizer
from paribus.config.schema import RunConfig
from paribus.config.units import format_number
from paribus.stage import Device, ExternalFiles, Stage, always, fields, late, together


def _named_files(config: RunConfig) -> Any:
    return config.tokenizer if isinstance(config.tokenizer, ExistingTokenizer) else config.pretokenizer


def _online(config: RunConfig) -> bool:
    """A pre-tokenizer's language model may be named as on a hub."""
    return isinstance(config.pretokenizer, PredictiveEntropyPretokenizer)


def _device(config: RunConfig) -> Device | None:
    """Only a pre-tokenizer's language model has one."""
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
    online=_online,
    outside=ExternalFiles(_named_files, late("paribus.tokenization.existing:vocabulary_fingerprint")),
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
    online=_online,
    device=_device,
    facts=lambda result: [
        f"{format_number(result['tokens'])} tokens",
        f"{result['bytes_per_token']:.3g} bytes a token",
    ],
)
