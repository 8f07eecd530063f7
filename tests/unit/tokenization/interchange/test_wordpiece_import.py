"""BERT's tokenizers, from `tokenizer.json` and from `vocab.txt`: the ids of `tokenizers`, or a refusal."""

import json
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from tokenizers import BertWordPieceTokenizer

from paribus.errors import ConfigurationError, DataError
from paribus.tokenization import Tokenizer
from paribus.tokenization.existing import open_existing, vocabulary_size
from paribus.tokenization.settings import check_lossless
from support.foreign_texts import LINES, TEXTS


@pytest.fixture(scope="module", params=[True, False], ids=["uncased", "cased"])
def directory(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`tokenizer.json`, and below `text` the same as `vocab.txt`."""
    root: Path = tmp_path_factory.mktemp("bert")
    made = BertWordPieceTokenizer(lowercase=request.param)
    made.train_from_iterator(LINES, vocab_size=250, limit_alphabet=60)
    made.save(str(root / "tokenizer.json"))
    (root / "text").mkdir()
    vocabulary = made.get_vocab()
    (root / "text" / "vocab.txt").write_text("\n".join(sorted(vocabulary, key=vocabulary.__getitem__)) + "\n")
    (root / "text" / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": request.param}))
    return root


def theirs(directory: Path) -> tokenizers.Tokenizer:
    found = tokenizers.Tokenizer.from_file(str(directory / "tokenizer.json"))
    found.encode_special_tokens = True
    return found


@pytest.mark.parametrize("below", ["", "tokenizer.json", "text", "text/vocab.txt"])
def test_ids_are_those_of_the_library(directory: Path, below: str) -> None:
    ours, library = open_existing(directory / below), theirs(directory)
    assert Tokenizer.from_huggingface(directory / below).vocabulary == ours.vocabulary
    assert ours.vocab_size == library.get_vocab_size() == vocabulary_size(directory / below)
    for text in TEXTS:
        assert ours.encode(text).tolist() == library.encode(text, add_special_tokens=False).ids, text


def test_words_are_joined_by_spaces_and_the_separator_ends_a_document(directory: Path) -> None:
    ours = Tokenizer.from_huggingface(directory)
    assert ours.decode(ours.encode("the  tokens, trained")) == "the tokens , trained"
    assert ours.eos_id == ours.special_tokens["[SEP]"]


def test_it_is_stored_and_exported(directory: Path, tmp_path: Path) -> None:
    ours = Tokenizer.from_huggingface(directory)
    ours.save(tmp_path / "saved")
    loaded, exported = Tokenizer.load(tmp_path / "saved"), ours.to_huggingface(split_special_tokens=True)
    assert exported.unk_token == "[UNK]"
    for text in TEXTS[:200]:
        assert loaded.encode(text).tolist() == ours.encode(text).tolist()
        assert exported(text)["input_ids"] == ours.encode(text).tolist()


def test_that_text_is_lost_must_be_wanted_and_other_encoders_are_refused(directory: Path) -> None:
    ours = Tokenizer.from_huggingface(directory)
    with pytest.raises(ConfigurationError, match="case and accents"):
        check_lossless(ours.settings)
    for encoder in ("longest_first", "fewest", "merge_rank"):
        with pytest.raises(ConfigurationError, match="needs every character as a token"):
            ours.with_encoder(encoder)  # type: ignore[arg-type]


def renamed(directory: Path, root: Path, **options: Any) -> Path:
    """The `vocab.txt` with special tokens of other names, and `options` beside it."""
    root.mkdir(exist_ok=True)
    text = (directory / "text" / "vocab.txt").read_text()
    (root / "vocab.txt").write_text(text.replace("[UNK]", "<unk>").replace("[SEP]", "<end>"))
    config = json.loads((directory / "text" / "tokenizer_config.json").read_text())
    named = {"unk_token": {"content": "<unk>"}, "sep_token": "<end>"}
    (root / "tokenizer_config.json").write_text(json.dumps(config | named | options))
    return root


def test_special_tokens_of_a_vocabulary_text_are_those_of_its_configuration(directory: Path, tmp_path: Path) -> None:
    from transformers import BertTokenizer

    root = renamed(directory, tmp_path / "renamed", pad_token=None, do_basic_tokenize=True, never_split=["<unk>"])
    lowercase = json.loads((root / "tokenizer_config.json").read_text())["do_lower_case"]
    named = {"unk_token": "<unk>", "sep_token": "<end>"}
    library = BertTokenizer(vocab=str(root / "vocab.txt"), do_lower_case=lowercase, **named)
    ours = open_existing(root)
    assert ours.eos_id == library.convert_tokens_to_ids("<end>")
    assert "[PAD]" not in ours.special_tokens
    unknown = 0
    for text in TEXTS:
        ids = ours.encode(text).tolist()
        assert ids == library(text, add_special_tokens=False, split_special_tokens=True)["input_ids"], text
        unknown += ids.count(library.unk_token_id)
    assert unknown


@pytest.mark.parametrize(
    ("options", "error", "reason"),
    [
        ({"do_basic_tokenize": False}, ConfigurationError, "tokenizer_config.json: .* do_basic_tokenize=false"),
        ({"never_split": ["<unk>", "the"]}, ConfigurationError, "never_split keeps 'the' whole"),
        ({"unk_token": None}, DataError, "unk_token is None, which names no token"),
        ({"sep_token": "</s>"}, ConfigurationError, "sep_token is '</s>', which is no line of it"),
    ],
)
def test_options_of_a_vocabulary_text_that_cut_otherwise_are_refused(
    directory: Path, options: dict[str, Any], error: type[Exception], reason: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=reason):
        open_existing(renamed(directory, tmp_path, **options))


def test_the_end_of_documents_is_the_separator_wherever_it_is_named(directory: Path, tmp_path: Path) -> None:
    root = renamed(directory, tmp_path / "map", cls_token=None)
    config = json.loads((root / "tokenizer_config.json").read_text())
    del config["sep_token"]
    (root / "tokenizer_config.json").write_text(json.dumps(config))
    with pytest.raises(ConfigurationError, match=r"sep_token is '\[SEP\]', which is no line of it"):
        open_existing(root)
    (root / "special_tokens_map.json").write_text(json.dumps({"sep_token": "<end>", "unk_token": "[NONE]"}))
    ours = open_existing(root)
    assert ours.eos_id == ours.special_tokens["<end>"]
    plain = tmp_path / "plain"
    plain.mkdir()
    (plain / "vocab.txt").write_text((directory / "text" / "vocab.txt").read_text())
    (plain / "tokenizer_config.json").write_text(json.dumps({"sep_token": None}))
    kept = open_existing(plain)
    assert kept.eos_id == kept.special_tokens["[SEP]"]
