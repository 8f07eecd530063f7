"""What an existing tokenizer says before anything runs: its natural encoder, and what cannot be wanted of it."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from paribus.checks.schedule import impossible_schedule, unscorable
from paribus.config.groups.tokenization import NATURAL, ExistingTokenizer, encoder_made_for
from paribus.config.schema import RunConfig
from paribus.errors import DataError, ParibusError
from paribus.modeling.problems import match_problems
from paribus.tokenization.interchange.existing import algorithm, locate


def with_natural_encoder(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """A configuration as plain data whose encoder, where it is `natural`, is the one an existing tokenizer is made for.

    As it is where there is no such tokenizer: who opens it says why.
    """
    tokenizer = data.get("tokenizer")
    if data.get("encoder") != NATURAL or not isinstance(tokenizer, Mapping) or tokenizer.get("kind") != "existing":
        return data
    try:
        made_by = algorithm(Path(str(tokenizer.get("path"))))
    except ParibusError:
        return data
    return {**data, "encoder": encoder_made_for(made_by)}


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
