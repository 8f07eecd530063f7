"""Put the file beside a saved tokenizer that lets transformers alone load it."""

import shutil
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING

from paribus.errors import ConfigurationError, DataError
from paribus.store.atomic import write_json
from paribus.store.json_file import read_object
from paribus.tokenization.interchange.huggingface_sample import TEXTS
from paribus.tokenization.pretokenize.patterns import PATTERNS
from paribus.tokenization.settings import Settings
from paribus.tokenization.text_tokenizer import TextTokenizer

if TYPE_CHECKING:
    from paribus.tokenization.interchange.standalone.tokenization_paribus import ParibusTokenizer

CODE = "tokenization_paribus.py"
_CLASSES = "unicode_classes.json"
_HELP = "read it with the package paribus, as the card of an exported model says"


def add_code(directory: Path) -> None:
    """Complete what a `ParibusTokenizer` saved: the file, Unicode's classes, and where AutoTokenizer finds the file.

    ConfigurationError for a tokenizer that the file cannot say; DataError where it gives other ids for a sample.
    """
    tok = TextTokenizer.load(directory / "tokenizer")
    if reasons := obstacles(tok.settings):
        raise ConfigurationError(f"--with-code: {CODE} does without {', '.join(reasons)}; {_HELP}")
    _copy("paribus.tokenization.interchange.standalone", CODE, directory)
    if tok.settings.pretokenizer in PATTERNS:
        _copy("paribus.tokenization.pretokenize", _CLASSES, directory / "tokenizer")
    where = {"AutoTokenizer": [f"{Path(CODE).stem}.ParibusTokenizer", None]}
    write_json(
        directory / "tokenizer_config.json", read_object(directory / "tokenizer_config.json") | {"auto_map": where}
    )
    _check(tok, directory)


def obstacles(settings: Settings) -> list[str]:
    """What of a tokenizer the file does without; empty where it can say it."""
    reasons = {
        "encoder=dropout, whose random numbers come from compiled code": settings.encoder == "dropout",
        f"pretokenizer={settings.pretokenizer}, which needs more than transformers": settings.pretokenizer
        not in (*PATTERNS, "spans"),
    }
    return [reason for reason, holds in reasons.items() if holds]


def _copy(package: str, name: str, directory: Path) -> None:
    with as_file(files(package) / name) as source:
        shutil.copyfile(source, directory / name)


def _check(tok: TextTokenizer, directory: Path) -> None:
    standalone = _loaded(directory)
    for text in TEXTS:
        try:
            expected: list[int] = tok.encode(text).tolist()
        except DataError:  # a character that this tokenizer refuses
            continue
        if standalone(text, split_special_tokens=True, verbose=False)["input_ids"] != expected:
            raise DataError(f"--with-code: {CODE} gives other ids for {text[:40]!r}; {_HELP}, and please report this")


def _loaded(directory: Path) -> "ParibusTokenizer":
    """The copy's own class; the code that runs is that of this package and not of the directory."""
    from paribus.tokenization.interchange.standalone.tokenization_paribus import ParibusTokenizer

    loaded: ParibusTokenizer = ParibusTokenizer.from_pretrained(directory)
    return loaded
