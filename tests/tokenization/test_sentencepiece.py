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


def write(path: Path, rescore: Callable[[str, float], float] | None = None, **options: Any) -> Path:
    """Train a model, and give its learned pieces other scores."""
    written = io.BytesIO()
    options = {"sentence_iterator": iter(LINES), "minloglevel": 2, "hard_vocab_limit": False, **options}
    SentencePieceTrainer.train(model_writer=written, **options)
    proto = sentencepiece_model_pb2.ModelProto.FromString(written.getvalue())
    for piece in proto.pieces if rescore is not None else ():
        if piece.type == piece.NORMAL:
            piece.score = rescore(piece.piece, piece.score)
    path.write_bytes(proto.SerializeToString())
    return path


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


def test_ids_and_texts_are_those_of_the_library(model: Path) -> None:
    library, tok = SentencePieceProcessor(model_file=str(model)), open_existing(model)
    assert tok.vocab_size == library.get_piece_size() == vocabulary_size(model.parent)
    for text in TEXTS:
        assert tok.encode(text).tolist() == library.encode(text), text
    for text in LINES:
        # An unknown token is another character there.
        assert tok.decode(tok.encode(text)).replace("\ufffd", " \u2047 ") == library.decode(library.encode(text))
    assert tok.eos_id == library.eos_id() not in tok.encode("</s>").tolist()
    with pytest.raises(ConfigurationError, match="U\\+2581"):
        check_lossless(tok.settings)


def test_ids_of_a_text_as_long_as_a_book_are_those_of_the_library(model: Path) -> None:
    """Sums of 32 bits would have no bits left for differences of scores: the library begins them anew."""
    library, tok = SentencePieceProcessor(model_file=str(model)), Tokenizer.from_sentencepiece(model)
    text = " ".join(LINES + TEXTS[-1000:]) * 40
    assert len(text) > 1_000_000
    assert tok.encode(text).tolist() == library.encode(text)


def test_a_model_is_stored_pickled_exported_and_encodes_in_batches(model: Path, tmp_path: Path) -> None:
    tok = Tokenizer.from_sentencepiece(model)
    tok.save(tmp_path / "saved")
    flat, offsets = tok.encode_batch(TEXTS[:200], threads=2)
    for copy in (Tokenizer.load(tmp_path / "saved"), pickle.loads(pickle.dumps(tok))):
        assert copy.settings == tok.settings
        for place, text in enumerate(TEXTS[:200]):
            assert copy.encode(text).tolist() == flat[offsets[place] : offsets[place + 1]].tolist()
    assert tok.to_huggingface()(TEXTS[0])["input_ids"] == tok.encode(TEXTS[0]).tolist()


@pytest.mark.parametrize("rescore", TIES.values(), ids=TIES)
def test_of_pieces_of_one_score_the_leftmost_merges_first(
    rescore: Callable[[str, float], float], tmp_path: Path
) -> None:
    """Runs of up to 40 spaces, the lengths in which whole texts of code have them, with words between."""
    lines = [" " * place + "a" * (place % 5) + " " * (place // 3) for place in range(40)] * 4
    model = write(tmp_path / "m.model", rescore, **MODELS["llama_2"] | {"sentence_iterator": iter(LINES + lines)})
    library, tok = SentencePieceProcessor(model_file=str(model)), Tokenizer.from_sentencepiece(model)
    assert sum(set(library.id_to_piece(place)) == {"\u2581"} for place in range(len(library))) > 5
    for text in [*lines, "".join(lines), "\n".join(lines)]:
        assert tok.encode(text).tolist() == library.encode(text)


def test_models_that_cannot_be_the_same_are_refused_by_name(tmp_path: Path) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"model_type": "word", "vocab_size": 80}, "model_type 3"),
        ({"model_type": "bpe", "vocab_size": 200, "treat_whitespace_as_suffix": True}, "whitespace after words"),
        ({"model_type": "unigram", "vocab_size": 200, "user_defined_symbols": ["<§>"]}, "no pieces, such as '§'"),
    ]
    for options, reason in cases:
        with pytest.raises(ConfigurationError, match=f"cannot be the same tokenizer here: .*{reason}"):
            Tokenizer.from_sentencepiece(write(tmp_path / "m.model", **options))
