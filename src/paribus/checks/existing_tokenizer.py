"""What of an existing tokenizer can be refused before anything runs: what it is, and what the run wants of it."""

from collections.abc import Iterator
from pathlib import Path

from paribus.checks.schedule import impossible_schedule, unscorable
from paribus.config.groups.tokenization import ExistingTokenizer
from paribus.config.schema import RunConfig
from paribus.errors import DataError, ParibusError
from paribus.modeling.problems import match_problems
from paribus.tokenization.interchange.existing import locate


def problems(config: RunConfig) -> list[tuple[str, str]]:
    """(config path, what is wrong) of every disagreement; that there is no tokenizer, its fingerprint tells."""
    if not isinstance(config.tokenizer, ExistingTokenizer):
        return []
    path = Path(config.tokenizer.path)
    try:
        locate(path)
    except DataError:
        return []
    return list(_disagreements(config, path, lossless=config.tokenizer.lossless))


def _disagreements(config: RunConfig, path: Path, *, lossless: bool) -> Iterator[tuple[str, str]]:
    from paribus.tokenization.build import with_encoder
    from paribus.tokenization.interchange.existing import open_existing
    from paribus.tokenization.settings import check_lossless

    field = "tokenizer.path"
    try:
        tokenizer = open_existing(path)
        _ = tokenizer.eos_id
        if lossless:
            field = "tokenizer.lossless"
            check_lossless(tokenizer.settings)
        field = "encoder.kind"
        with_encoder(tokenizer, config.encoder)
    except ParibusError as error:
        yield field, str(error)
        return
    yield from match_problems(config.model, tokenizer.vocab_size)
    yield from impossible_schedule(config, tokenizer.vocab_size)
    yield from unscorable(config, tokenizer.vocab_size)
