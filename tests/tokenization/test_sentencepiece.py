"""Models of SentencePiece, trained here with the options of well-known ones: the library's ids, or a refusal."""

import io
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sentencepiece import SentencePieceProcessor, SentencePieceTrainer, sentencepiece_model_pb2

from paribus.errors import ConfigurationError
from paribus.tokenization import Tokenizer
from paribus.tokenization.existing import open_existing, vocabulary_size
from paribus.tokenization.settings import check_lossless
from support.foreign_texts import LINES, TEXTS

MODELS: dict[str, dict[str, Any]] = {
    "llama_2": {
        "model_type": "bpe", "vocab_size": 700, "byte_fallback": True, "normalization_rule_name": "identity",
        "split_digits": True, "remove_extra_whitespaces": False, "allow_whitespace_only_pieces": True,
    },
    "t5": {
        "model_type": "unigram", "vocab_size": 200, "normalization_rule_name": "nmt_nfkc", "character_coverage": 0.99,
        "pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1,
    },
    "xlnet": {
        "model_type": "unigram", "vocab_size": 230, "control_symbols": ["<cls>", "<sep>", "<pad>", "<mask>", "<eod>"],
        "user_defined_symbols": ["<eop>", ".", "(", ")", '"', "-", "–", "£", "€"],
    },
    "unigram_fallback": {
        "model_type": "unigram", "vocab_size": 480, "byte_fallback": True, "normalization_rule_name": "nmt_nfkc_cf",
        "character_coverage": 0.98,
    },
    "gemma": {
        "model_type": "bpe", "vocab_size": 700, "byte_fallback": True, "normalization_rule_name": "identity",
        "add_dummy_prefix": False, "remove_extra_whitespaces": False,
        "user_defined_symbols": ["<eop>", "\u2581\u2581", "\u2581\u2581\u2581", ".", "train", "ain", "\n"],
    },
    "bpe_unknown": {
        "model_type": "bpe", "vocab_size": 300, "normalization_rule_name": "nfkc", "character_coverage": 0.98,
        "add_dummy_prefix": False,
    },
}  # fmt: skip


def trained(**options: Any) -> bytes:
    written = io.BytesIO()
    options = {"sentence_iterator": iter(LINES), "minloglevel": 2, "hard_vocab_limit": False, **options}
    SentencePieceTrainer.train(model_writer=written, **options)
    return written.getvalue()


def write(path: Path, rescore: Callable[[str, float], float] | None = None, **options: Any) -> Path:
    data = trained(**options)
    path.write_bytes(data if rescore is None else rescored(data, rescore))
    return path


def rescored(data: bytes, score: Callable[[str, float], float]) -> bytes:
    """The model with other scores of its learned pieces."""
    proto = sentencepiece_model_pb2.ModelProto.FromString(data)
    for piece in proto.pieces:
        if piece.type == piece.NORMAL:
            piece.score = score(piece.piece, piece.score)
    return proto.SerializeToString()


# As in the model of Llama 2, whose runs of spaces merge last and share a score; and as in vocabularies that were put
# together from two, where pieces of either share scores.
TIES: dict[str, Callable[[str, float], float]] = {
    "runs_of_spaces": lambda text, score: -1e9 if set(text) == {"\u2581"} else score,
    "five_of_a_score": lambda _, score: score // 5,
    "all_alike": lambda _, score: 0.0,
    "zeros_of_both_signs": lambda text, _: -0.0 if len(text) % 2 else 0.0,
}


@pytest.fixture(scope="module", params=[*MODELS, *TIES])
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    options, rescore = MODELS.get(request.param, MODELS["llama_2"]), TIES.get(request.param)
    return write(tmp_path_factory.mktemp("models") / f"{request.param}.model", rescore, **options)


def test_ids_are_those_of_the_library(model: Path) -> None:
    theirs = SentencePieceProcessor(model_file=str(model))
    ours = open_existing(model)
    assert ours.vocab_size == theirs.get_piece_size() == vocabulary_size(model.parent)
    for text in TEXTS:
        assert ours.encode(text).tolist() == theirs.encode(text), text


def test_ids_of_a_text_as_long_as_a_book_are_those_of_the_library(model: Path) -> None:
    """Sums of 32 bits would have no bits left for differences of scores: the library begins them anew."""
    theirs, ours = SentencePieceProcessor(model_file=str(model)), Tokenizer.from_sentencepiece(model)
    text = " ".join(LINES + TEXTS[-1000:]) * 40
    assert len(text) > 1_000_000
    assert ours.encode(text).tolist() == theirs.encode(text)


def test_text_comes_back_as_the_library_gives_it(model: Path) -> None:
    theirs = SentencePieceProcessor(model_file=str(model))
    ours = Tokenizer.from_sentencepiece(model)
    for text in LINES:
        # An unknown token is another character there.
        assert ours.decode(ours.encode(text)).replace("\ufffd", " \u2047 ") == theirs.decode(theirs.encode(text))


def test_it_is_stored_copied_and_encodes_in_batches_like_any_other(model: Path, tmp_path: Path) -> None:
    ours = Tokenizer.from_sentencepiece(model)
    ours.save(tmp_path / "saved")
    flat, offsets = ours.encode_batch(TEXTS[:200], threads=2)
    for other in (Tokenizer.load(tmp_path / "saved"), pickle.loads(pickle.dumps(ours))):
        assert other.settings == ours.settings
        for place, text in enumerate(TEXTS[:200]):
            assert other.encode(text).tolist() == flat[offsets[place] : offsets[place + 1]].tolist()
    fast = ours.to_huggingface()
    assert fast(TEXTS[0])["input_ids"] == ours.encode(TEXTS[0]).tolist()


@pytest.mark.parametrize("rescore", TIES.values(), ids=TIES)
def test_leftmost_of_pieces_of_one_score_merges_first(rescore: Callable[[str, float], float], tmp_path: Path) -> None:
    """Runs of up to 40 spaces, the lengths in which whole texts of code have them, with words between."""
    lines = [" " * place + "a" * (place % 5) + " " * (place // 3) for place in range(40)] * 4
    model = write(tmp_path / "m.model", rescore, **MODELS["llama_2"] | {"sentence_iterator": iter(LINES + lines)})
    theirs, ours = SentencePieceProcessor(model_file=str(model)), Tokenizer.from_sentencepiece(model)
    assert sum(set(theirs.id_to_piece(place)) == {"\u2581"} for place in range(len(theirs))) > 5
    for text in [*lines, "".join(lines), "\n".join(lines)]:
        assert ours.encode(text).tolist() == theirs.encode(text)


def test_the_end_of_a_sentence_ends_a_document_and_text_never_becomes_it(model: Path) -> None:
    ours = Tokenizer.from_sentencepiece(model)
    theirs = SentencePieceProcessor(model_file=str(model))
    assert ours.eos_id == theirs.eos_id()
    assert ours.eos_id not in ours.encode("</s>").tolist()


def test_that_text_is_normalized_must_be_wanted(model: Path) -> None:
    with pytest.raises(ConfigurationError, match="U\\+2581"):
        check_lossless(Tokenizer.from_sentencepiece(model).settings)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"model_type": "word", "vocab_size": 80}, "model_type 3"),
        ({"model_type": "char", "vocab_size": 80}, "model_type 4"),
        ({"model_type": "bpe", "vocab_size": 200, "treat_whitespace_as_suffix": True}, "whitespace after words"),
        ({"model_type": "unigram", "vocab_size": 200, "user_defined_symbols": ["<§>"]}, "no pieces, such as '§'"),
    ],
)
def test_what_would_not_be_the_same_is_refused_by_name(options: dict[str, Any], reason: str, tmp_path: Path) -> None:
    file = write(tmp_path / "m.model", **options)
    with pytest.raises(ConfigurationError, match=f"cannot be the same tokenizer here: .*{reason}"):
        Tokenizer.from_sentencepiece(file)
