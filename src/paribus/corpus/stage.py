"""The stage `corpus`."""

from typing import Any

from paribus.stage.context import JSON, StageContext
from paribus.stage.spec import Outside, Stage, always, fields
from paribus.store.file_digests import FileDigests


def _build(context: StageContext) -> dict[str, JSON]:
    from paribus.corpus.build import build

    return build(context)


def _fingerprint(config: Any, digests: FileDigests) -> dict[str, JSON]:
    from paribus.corpus.fingerprint import fingerprint

    return fingerprint(config, digests)


CORPUS = Stage(
    "corpus",
    code_version=3,
    inputs=always(),
    identity=fields("corpus"),
    build=_build,
    imports=("paribus.corpus.build",),
    outside=Outside(lambda config: config.corpus, _fingerprint),
)
