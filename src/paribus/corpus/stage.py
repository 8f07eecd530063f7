"""The stage `corpus`."""

from collections.abc import Mapping
from typing import Any

from paribus.config.groups.corpus import HuggingFaceCorpus
from paribus.config.units import format_number, format_size
from paribus.stage import JSON, Outside, Stage, StageContext, always, fields
from paribus.store.files import FileDigests


def _build(context: StageContext) -> dict[str, JSON]:
    from paribus.corpus.build import build

    return build(context)


def _fingerprint(config: Any, digests: FileDigests) -> dict[str, JSON]:
    from paribus.corpus.fingerprint import fingerprint

    return fingerprint(config, digests)


def _facts(result: Mapping[str, Any]) -> list[str]:
    train, heldout = result["train"], result["heldout"]
    skipped, moved = sum(result["skipped"].values()), result["moved"]["documents"]
    return [
        f"{format_number(train['documents'])} documents, {format_size(train['bytes'])}",
        f"{format_number(heldout['documents'])} held out",
        *([f"{format_number(skipped)} skipped"] if skipped else []),
        *([f"{format_number(moved)} near copies moved to training"] if moved else []),
    ]


CORPUS = Stage(
    "corpus",
    code_version=3,
    inputs=always(),
    identity=fields("corpus"),
    build=_build,
    imports=("paribus.corpus.build",),
    online=lambda config: isinstance(config.corpus, HuggingFaceCorpus),
    outside=Outside(lambda config: config.corpus, _fingerprint),
    facts=_facts,
)
