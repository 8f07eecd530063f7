"""The stages `vocabulary` and `tokens`."""

from collections.abc import Mapping
from typing import Any

from paribus.config.groups.tokenization import ExistingTokenizer, PredictiveEntropyPretokenizer
from paribus.config.schema import RunConfig
from paribus.config.units import format_number
from paribus.stage import JSON, Device, ExternalFiles, Stage, StageContext, always, fields, together
from paribus.store.files import FileDigests


def _named_files(config: RunConfig) -> Any:
    return config.tokenizer if isinstance(config.tokenizer, ExistingTokenizer) else config.pretokenizer


def _build_vocabulary(context: StageContext) -> dict[str, JSON]:
    from paribus.tokenization.build import build_vocabulary

    return build_vocabulary(context)


def _build_tokens(context: StageContext) -> dict[str, JSON]:
    from paribus.tokenization.build import build_tokens

    return build_tokens(context)


def _fingerprint(config: Any, digests: FileDigests) -> dict[str, JSON]:
    from paribus.tokenization.existing import vocabulary_fingerprint

    return vocabulary_fingerprint(config, digests)


def _online(config: RunConfig) -> bool:
    """A pre-tokenizer's language model may be named as on a hub."""
    return isinstance(config.pretokenizer, PredictiveEntropyPretokenizer)


def _device(config: RunConfig) -> Device | None:
    """Only a pre-tokenizer's language model has one."""
    if not isinstance(config.pretokenizer, PredictiveEntropyPretokenizer):
        return None
    return Device("pretokenizer.device", config.pretokenizer.device)


def _facts_of_vocabulary(result: Mapping[str, Any]) -> list[str]:
    return [f"{format_number(result['vocab_size'])} tokens"]


def _facts_of_tokens(result: Mapping[str, Any]) -> list[str]:
    return [f"{format_number(result['tokens'])} tokens", f"{result['bytes_per_token']:.3g} bytes a token"]


VOCABULARY = Stage(
    "vocabulary",
    code_version=5,
    inputs=lambda config: () if isinstance(config.tokenizer, ExistingTokenizer) else ("corpus",),
    identity=together(fields("pretokenizer"), fields("tokenizer")),
    build=_build_vocabulary,
    imports=("paribus.tokenization.build",),
    online=_online,
    outside=ExternalFiles(_named_files, _fingerprint),
    device=_device,
    facts=_facts_of_vocabulary,
)
TOKENS = Stage(
    "tokens",
    code_version=2,
    inputs=always("corpus", "vocabulary"),
    identity=fields("encoder"),
    build=_build_tokens,
    imports=("paribus.tokenization.build",),
    online=_online,
    device=_device,
    facts=_facts_of_tokens,
)
