"""Existing tokenizers, found in whatever directory a person names; nothing heavy is imported to find one."""

from pathlib import Path
from typing import TYPE_CHECKING

from paribus.config.fields import proper_path
from paribus.config.groups.tokenization import ExistingTokenizer, PredictiveEntropyPretokenizer, PretokenizerConfig
from paribus.errors import DataError
from paribus.stage import JSON
from paribus.store.files import RUN_RECORD, FileDigests, read_object

if TYPE_CHECKING:
    from paribus.tokenization.tokenizer import Tokenizer


SETTINGS, TOKENIZER_JSON, VOCABULARY_TEXT, MODEL = "settings.json", "tokenizer.json", "vocab.txt", ".model"
_OURS = (SETTINGS, "vocabulary.json", "merges.json", "pretokenizer.json")
_CONFIG = "tokenizer_config.json"
_COMPANIONS = {TOKENIZER_JSON: (_CONFIG,), VOCABULARY_TEXT: (_CONFIG, "special_tokens_map.json")}
"""Files beside one of Hugging Face that, if present, decide ids or special tokens too."""
_FIRST_BYTE = b"\n"
"""First byte of a SentencePiece file: the tag of its first piece."""


def locate(path: Path) -> Path:
    """Our tokenizer directory, or the `.model` file, `tokenizer.json` or `vocab.txt` that `path` leads to.

    `path` is a tokenizer directory, a run, an artefact or a checkpoint with a tokenizer inside, or a directory or file
    of SentencePiece or Hugging Face, also within a directory `tokenizer` there; a directory's files are taken in the
    order above, but for a `.model` that is not SentencePiece's. DataError where it is none.
    """
    try:
        path = Path(proper_path(str(path))).expanduser()
    except ValueError as error:
        raise DataError(f"no tokenizer: {error}") from error
    if (path / RUN_RECORD).is_file():
        path = _tokens_of_run(path)
    if path.is_file() and _is_foreign(path):
        return path
    within = [*sorted(path.glob("step_*/tokenizer"), reverse=True)[:1], path / "tokenizer", path]
    ours = next((directory for directory in within if (directory / SETTINGS).is_file()), None)
    if ours is not None:
        return ours
    file = _foreign_file(path) or _foreign_file(path / "tokenizer")
    if file is None and not path.exists():
        raise DataError(f"{path}: there is no such file or directory, and so no tokenizer")
    if file is None and path.is_file():
        raise DataError(
            f"{path}: no name of a tokenizer's file, which tells its kind; call it {TOKENIZER_JSON} (Hugging Face), "
            f"*{MODEL} (SentencePiece) or {VOCABULARY_TEXT} (BERT), or name a directory of ours"
        )
    if file is None:
        raise DataError(
            f"{path}: no tokenizer: neither {SETTINGS} of ours nor {TOKENIZER_JSON} of Hugging Face is there, nor "
            f"*{MODEL} of SentencePiece, nor {VOCABULARY_TEXT}"
        )
    return file


def _foreign_file(path: Path) -> Path | None:
    """The file of another library's tokenizer in a directory, or None."""
    models = filter(_is_sentencepiece, sorted(path.glob(f"*{MODEL}")))
    return next((file for file in (*models, path / TOKENIZER_JSON, path / VOCABULARY_TEXT) if file.is_file()), None)


def _is_foreign(path: Path) -> bool:
    return path.name in (TOKENIZER_JSON, VOCABULARY_TEXT) or path.suffix == MODEL


def _is_sentencepiece(path: Path) -> bool:
    """True if a file begins as SentencePiece's do, with a piece; others, as of tiktoken, have the same suffix."""
    try:
        with path.open("rb") as file:
            return file.read(1) == _FIRST_BYTE
    except OSError:
        return False


def open_existing(path: Path) -> "Tokenizer":
    """The tokenizer at `path`, see `locate`; ConfigurationError for one that cannot be the same here."""
    from paribus.tokenization.tokenizer import Tokenizer

    source = locate(path)
    if source.suffix == MODEL and source.is_file():
        return Tokenizer.from_sentencepiece(source)
    return Tokenizer.from_huggingface(source) if _is_foreign(source) else Tokenizer.load(source)


def fingerprint(path: Path, digests: FileDigests) -> dict[str, JSON]:
    """SHA-256 of each file of the tokenizer by name."""
    source = locate(path)
    names = _OURS if source.is_dir() else (source.name, *_COMPANIONS.get(source.name, ()))
    directory = source if source.is_dir() else source.parent
    return {name: digests.of(directory / name) for name in names if (directory / name).is_file()}


def vocabulary_size(path: Path) -> int:
    """Number of tokens, special ones included, read from the files without building the tokenizer."""
    source = locate(path)
    if source.is_file() and source.suffix == MODEL:
        from paribus.tokenization.sentencepiece import read_model

        return len(read_model(source).pieces)
    if source.name == VOCABULARY_TEXT:
        from paribus.tokenization.huggingface import vocabulary_lines

        return len(vocabulary_lines(source))
    if source.is_dir():
        return int(read_object(source / SETTINGS)["vocab_size"])
    described = read_object(source)
    added = {token["content"] for token in described.get("added_tokens") or []}
    return len(described["model"]["vocab"].keys() | added)


def algorithm(path: Path) -> str:
    """Algorithm of the tokenizer, by the names of `tokenizer.kind`; for a file that opening refuses, any name."""
    source = locate(path)
    if source.is_dir():
        return str(read_object(source / SETTINGS).get("algorithm"))
    if source.suffix == MODEL:
        from paribus.tokenization.sentencepiece import UNIGRAM, read_model

        return "unigram" if read_model(source).kind == UNIGRAM else "bpe"
    if source.name == VOCABULARY_TEXT:
        return "wordpiece"
    model = read_object(source).get("model")
    return str(model.get("type", "bpe")).lower() if isinstance(model, dict) else "bpe"


def _tokens_of_run(path: Path) -> Path:
    """The artefact of a run that holds its tokenizer with its encoder."""
    stages = read_object(path / RUN_RECORD).get("stages")
    if not isinstance(stages, dict) or "tokens" not in stages:
        raise DataError(f"{path}: the run has encoded nothing yet (paribus status shows why)")
    return path.resolve().parents[1] / "artifacts" / "tokens" / str(stages["tokens"]["key"])


def vocabulary_fingerprint(config: PretokenizerConfig | ExistingTokenizer, digests: FileDigests) -> dict[str, JSON]:
    """Digests of the files that a configuration names, if any. DataError where they are no tokenizer or model."""
    if isinstance(config, ExistingTokenizer):
        return fingerprint(Path(config.path), digests)
    if not isinstance(config, PredictiveEntropyPretokenizer):
        return {}
    from paribus.tokenization.predictive import model_digest

    return {"model": model_digest(Path(config.model).expanduser())}
