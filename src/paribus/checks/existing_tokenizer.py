"""What an existing tokenizer says before anything runs: its natural encoder, and what cannot be wanted of it."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paribus.checks.schedule import impossible_schedule, unscorable
from paribus.config.groups.tokenization import NATURAL, ExistingTokenizer, encoder_made_for
from paribus.config.schema import RunConfig
from paribus.errors import DataError, ParibusError
from paribus.modeling.parameters import match_problems
from paribus.tokenization.existing import algorithm, locate

if TYPE_CHECKING:
    from paribus.tokenization.tokenizer import Tokenizer


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
    tokenizer, found = _opened(config)
    if tokenizer is None:
        return found
    return [
        *match_problems(config.model, tokenizer.vocab_size),
        *impossible_schedule(config, tokenizer.vocab_size),
        *unscorable(config, tokenizer.vocab_size),
    ]


def encoding_problems(config: RunConfig) -> list[tuple[str, str]]:
    """Those of `problems` that do not depend on what is trained with it."""
    return _opened(config)[1]


def _opened(config: RunConfig) -> tuple["Tokenizer | None", list[tuple[str, str]]]:
    """The tokenizer with the run's encoder, or why there is none; neither where no file is there."""
    if not isinstance(config.tokenizer, ExistingTokenizer):
        return None, []
    path = Path(config.tokenizer.path)
    try:
        locate(path)
    except DataError:
        return None, []
    from paribus.tokenization.build import with_encoder
    from paribus.tokenization.existing import open_existing
    from paribus.tokenization.settings import check_lossless

    field = "tokenizer.path"
    try:
        tokenizer = open_existing(path)
        _ = tokenizer.eos_id
        if config.tokenizer.lossless:
            field = "tokenizer.lossless"
            check_lossless(tokenizer.settings)
        field = "encoder.kind"
        return with_encoder(tokenizer, config.encoder), []
    except ParibusError as error:
        return None, [(field, str(error))]
