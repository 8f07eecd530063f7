"""`paribus tokens statistics` and `tokens encode`: several tokenizers without a model, and one of standard input."""

import csv
import io
import json
import shutil
import sys
from pathlib import Path

import pytest

from paribus.cli import main
from paribus.commands.tokens_encode import encode_command, token_text
from paribus.corpus.artifact import CorpusArtifact
from paribus.evaluation.segmentation import tokenizer_scores
from paribus.pipeline.graph import STAGES
from paribus.tokenization import Tokenizer
from paribus.tokenization.statistics import corpus_statistics, count_tokens, only_in, spellings
from support.command_line import OVERRIDES, paribus, write_text_files

OPTIONS = (*OVERRIDES, "evaluation.data=benchmarks", "evaluation.tasks=[pku]")
SWEEP = ("-m", "tokenizer=bpe,scaffold_bpe", "encoder=merge_rank,longest_first")
BPE = ("tokenizer=bpe", "encoder=merge_rank")
GOLD = "河流 把 水 和 泥沙 带到 大海\n经过 石头 和 芦苇\n"


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory in which four arms were compared."""
    directory = tmp_path_factory.mktemp("tokens")
    write_text_files(directory)
    (directory / "benchmarks/pku").mkdir(parents=True)
    (directory / "benchmarks/pku/test.seg.txt").write_text(GOLD, encoding="utf-8")
    printed = paribus(directory, "tokens", "statistics", *SWEEP, *OPTIONS)
    assert "scaffold_bpe · longest_first" in printed.stdout and "tables, numbers and plots:" in printed.stdout
    assert "row 4 of 4  tokenizer=scaffold_bpe encoder=longest_first" in printed.stderr
    return directory


@pytest.fixture
def own(compared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of that directory, in which commands are given."""
    shutil.copytree(compared, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def table_of(directory: Path, *words: str) -> list[dict[str, str]]:
    """Rows of the only table of that directory, after a command with these words if there are any."""
    if words:
        shutil.rmtree(directory / "paribus_runs/tokens")
        assert main(["tokens", "statistics", *words]) == 0
    (path,) = (directory / "paribus_runs/tokens").glob("*/statistics.csv")
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def rows(directory: Path) -> dict[tuple[str, str], dict[str, str]]:
    return {(row["tokenizer"], row["encoder"]): row for row in table_of(directory)}


def tokenizers(directory: Path) -> dict[tuple[str, str], Tokenizer]:
    loaded = [Tokenizer.load(path) for path in (directory / "paribus_runs/artifacts/tokens").glob("*/tokenizer")]
    return {(tok.settings.algorithm, tok.settings.encoder): tok for tok in loaded}


def texts(directory: Path, split: str) -> list[str]:
    (corpus,) = (directory / "paribus_runs/artifacts/corpus").iterdir()
    return list(CorpusArtifact(corpus).texts(split))  # type: ignore[arg-type]


def test_every_number_is_that_of_the_tokenizer_on_the_text(compared: Path) -> None:
    table, tokenizer = rows(compared), tokenizers(compared)
    assert table.keys() == tokenizer.keys() and len(table) == 4
    train, heldout = texts(compared, "train"), texts(compared, "heldout")
    gold = [line.split() for line in GOLD.splitlines()]
    for arm, row in table.items():
        expected = corpus_statistics(tokenizer[arm], train)
        assert int(row["tokens"]) == expected.tokens and int(row["bytes"]) == expected.bytes
        for name in ("bytes_per_token", "tokens_per_word", "entropy", "redundancy", "mean_token_length"):
            assert float(row[name]) == pytest.approx(getattr(expected, name))
        shares = {name: count / expected.tokens for name, count in expected.token_lengths.items()}
        assert float(row["tokens_1_3_share"]) == pytest.approx(shares["1-3"])
        assert float(row["tokens_4_6_share"]) == pytest.approx(shares["4-6"])
        longer = sum(share for name, share in shares.items() if int(name.split("-")[0]) >= 16)
        assert float(row["tokens_16_more_share"]) == pytest.approx(longer)
        assert float(row["heldout_bytes_per_token"]) == pytest.approx(
            corpus_statistics(tokenizer[arm], heldout).bytes_per_token
        )
        assert float(row["pku_f1"]) == pytest.approx(tokenizer_scores(tokenizer[arm], gold).f1)
        assert int(row["vocab_size"]) == tokenizer[arm].vocab_size


def test_the_numbers_keep_their_values(own: Path) -> None:
    """Pinned with the `code_version` of the stage: output that changes without a higher one is a failing test."""
    assert STAGES["token_statistics"].code_version == 4
    pinned = {
        "tokens": 14002, "words": 12148, "entropy": 5.144822, "redundancy": 0.428353, "own_share": 0.193053,
        "renyi_efficiency": 0.491993, "heldout_bytes_per_token": 6.553771, "pku_f1": 0.111111,
    }  # fmt: skip
    row = rows(own)["bpe", "merge_rank"]
    assert {name: float(row[name]) for name in pinned} == pytest.approx(pinned, rel=1e-5)
    # A vocabulary of characters has bytes of what is no character of its, which one of bytes has not.
    (row,) = table_of(own, *OPTIONS, "tokenizer.unit=character", "tokenizer.vocab_size=330")
    assert (int(row["tokens"]), float(row["own_share"])) == (62954, pytest.approx(0.923659, rel=1e-5))


def test_rows_are_compared_with_the_first_of_their_size(own: Path) -> None:
    unlike = rows(own)
    assert unlike["bpe", "merge_rank"]["vocab_size"] != unlike["scaffold_bpe", "merge_rank"]["vocab_size"]
    assert unlike["scaffold_bpe", "merge_rank"]["bytes_per_token_change"] == "", "its text had no more pairs"
    shutil.rmtree(own / "paribus_runs/artifacts/tokens")
    table_of(own, *SWEEP, *OPTIONS, "tokenizer.vocab_size=300")
    table, tokenizer, train = rows(own), tokenizers(own), texts(own, "train")
    first, scaffold = ("bpe", "merge_rank"), ("scaffold_bpe", "merge_rank")
    assert table[first]["bytes_per_token_change"] == "" == table[first]["gone"]
    for arm in table.keys() - {first}:
        expected = float(table[arm]["bytes_per_token"]) / float(table[first]["bytes_per_token"]) - 1
        assert float(table[arm]["bytes_per_token_change"]) == pytest.approx(expected)
    gone, came = (
        only_in(spellings(tokenizer[arm]), spellings(tokenizer[other]), count_tokens(tokenizer[arm], train).ids)
        for arm, other in ((first, scaffold), (scaffold, first))
    )
    assert gone.tokens and int(table[scaffold]["gone"]) == gone.tokens
    rise = came.mean_frequency / gone.mean_frequency - 1
    assert float(table[scaffold]["frequency_rise"]) == pytest.approx(rise)
    assert table["bpe", "longest_first"]["gone"] == ""


def test_words_are_those_of_the_text_whatever_the_tokenizer_knows(own: Path) -> None:
    words = ("tokenizer=words", "encoder=whole", "tokenizer.unit=character", "tokenizer.unknown=token")
    (row,) = table_of(own, *OVERRIDES, *words, "tokenizer.lossless=false", "tokenizer.vocab_size=40")
    assert int(row["words"]) == sum(len(text.encode().split()) for text in texts(own, "train"))


def test_held_out_text_is_encoded_with_all_merges_as_models_are_scored(own: Path) -> None:
    plain, dropped = table_of(own, "-m", "encoder=merge_rank,dropout", *OPTIONS, "tokenizer=bpe")
    assert plain["heldout_bytes_per_token"] == dropped["heldout_bytes_per_token"]
    assert float(dropped["bytes_per_token"]) < float(plain["bytes_per_token"])


def test_an_arm_that_fails_leaves_the_table_of_the_others(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sizes = (*OPTIONS, *BPE, "tokenizer.unit=character")
    assert main(["tokens", "statistics", "-m", "tokenizer.vocab_size=400,270", *sizes]) == 1
    printed = capsys.readouterr().out
    assert "tables, numbers and plots:" in printed
    left_out = " ".join(printed.partition("left out, ")[2].split())
    assert "tokenizer.vocab_size=270" in left_out and "below the alphabet" in left_out
    assert "tokenizer.vocab_size=400" not in left_out
    assert main(["tokens", "statistics", *sizes, "tokenizer.vocab_size=270"]) == 2


def test_asked_again_nothing_is_made_and_runs_share_what_was(own: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in (own / "paribus_runs/artifacts").glob("*/*/record.json")}
    assert main(["tokens", "statistics", *SWEEP, *OPTIONS]) == 0
    assert main(["run", *OPTIONS, *BPE, "until=tokens"]) == 0
    after = {path: path.stat().st_mtime_ns for path in (own / "paribus_runs/artifacts").glob("*/*/record.json")}
    assert after == before


def test_a_text_is_shown_in_the_tokens_of_each_arm(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tokens", "encode", "--text", "silt and\n", *SWEEP, *OPTIONS]) == 0
    printed = capsys.readouterr().out
    for (algorithm, encoder), tokenizer in tokenizers(own).items():
        line = next(line for line in printed.splitlines() if line.lstrip().startswith(f"{algorithm} · {encoder}"))
        tokens = tokenizer.tokenize("silt and\n")
        assert line.split()[3] == str(len(tokens))
        assert "|".join(map(token_text, tokens)) in line
    assert "silt|·and|\\n" in printed, "the pre-tokens stand below"
    shown = {b" a\n": "·a\\n", "河".encode()[:2]: "\\xe6\\xb2", b"\t\r": "\\t\\r", "é".encode(): "é"}
    assert {token: token_text(token) for token in shown} == shown


# Standard input


class Input(io.TextIOWrapper):
    def __init__(self, content: bytes) -> None:
        super().__init__(io.BytesIO(content), encoding="utf-8")


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    Tokenizer.train(["the cat sat on the mat"] * 3, vocab_size=264).save(tmp_path / "tokenizer")
    return tmp_path / "tokenizer"


def encode(monkeypatch: pytest.MonkeyPatch, content: bytes, *argv: str) -> int:
    monkeypatch.setattr(sys, "stdin", Input(content))
    return encode_command(list(argv))


def test_ids_tokens_and_statistics_are_written(
    saved: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert encode(monkeypatch, b"the cat\n", str(saved)) == 0
    expected = Tokenizer.load(saved).encode("the cat\n").tolist()
    assert capsys.readouterr().out == " ".join(map(str, expected)) + "\n"
    artefact = saved.parent
    assert encode(monkeypatch, "é\n".encode(), str(artefact), "output=tokens", "encoder=longest_first") == 0
    assert capsys.readouterr().out == '\\xc3\n\\xa9\n"\\n"\n'
    encode(monkeypatch, b"the cat", str(saved), "output=statistics")
    assert json.loads(capsys.readouterr().out)["bytes"] == 7


def test_every_setting_of_an_encoder_is_an_option(
    saved: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tok = Tokenizer.load(saved)
    options = ["encoder=dropout", "probability=0.5", "seed=3"]
    encode(monkeypatch, b"the cat sat on the mat", str(saved), *options)
    expected = tok.with_encoder("dropout", dropout=0.5, seed=3).encode("the cat sat on the mat")
    assert capsys.readouterr().out.split() == [str(identity) for identity in expected]


def test_a_hugging_face_directory_is_read_as_it_is(
    saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Tokenizer.load(saved).to_huggingface().save_pretrained(tmp_path / "exported")
    assert encode(monkeypatch, b"the mat", str(tmp_path / "exported"), "encoder=longest_first") == 0
    expected = Tokenizer.load(saved).with_encoder("longest_first").encode("the mat")
    assert capsys.readouterr().out.split() == [str(identity) for identity in expected]
