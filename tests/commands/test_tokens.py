"""`paribus tokens`: statistics of several tokenizers without a model, and the tokens that contain another."""

import csv
import itertools
import json
import re
import shutil
from pathlib import Path

import pytest

from paribus.commands.tokens import USAGE
from paribus.commands.tokens_encode import token_text
from paribus.corpus.artifact import CorpusArtifact
from paribus.evaluation.segmentation import tokenizer_scores
from paribus.pipeline.graph import STAGES
from paribus.tokenization import Tokenizer
from paribus.tokenization.statistics import corpus_statistics, count_tokens, only_in, spellings
from support.command_line import OVERRIDES, paribus, write_corpus

OPTIONS = (*OVERRIDES, "evaluation.data=benchmarks", "evaluation.tasks=[pku]")
SWEEP = ("-m", "tokenizer=bpe,scaffold_bpe", "encoder=merge_rank,longest_first")
ARMS = [
    f"tokenizer={tokenizer} encoder={encoder}"
    for tokenizer in ("bpe", "scaffold_bpe")
    for encoder in ("merge_rank", "longest_first")
]
GOLD = "河流 把 水 和 泥沙 带到 大海\n经过 石头 和 芦苇\n"


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory in which four arms were compared."""
    directory = tmp_path_factory.mktemp("tokens")
    write_corpus(directory)
    (directory / "benchmarks/pku").mkdir(parents=True)
    (directory / "benchmarks/pku/test.seg.txt").write_text(GOLD, encoding="utf-8")
    told = paribus(directory, "tokens", "statistics", *SWEEP, *OPTIONS)
    assert "scaffold_bpe · longest_first" in told.stdout and "tables, numbers and plots:" in told.stdout
    (directory / "progress.txt").write_text(told.stderr, encoding="utf-8")
    return directory


@pytest.fixture
def own(compared: Path, tmp_path: Path) -> Path:
    """A copy of that directory for a test that makes more."""
    shutil.copytree(compared, tmp_path, dirs_exist_ok=True)
    return tmp_path


def rows(directory: Path) -> dict[tuple[str, str], dict[str, str]]:
    (path,) = (directory / "paribus_runs/tokens").glob("*/statistics.csv")
    with path.open(encoding="utf-8", newline="") as file:
        return {(row["tokenizer"], row["encoder"]): row for row in csv.DictReader(file)}


def tokenizers(directory: Path) -> dict[tuple[str, str], Tokenizer]:
    found = [Tokenizer.load(path) for path in (directory / "paribus_runs/artifacts/tokens").glob("*/tokenizer")]
    return {(tok.settings.algorithm, tok.settings.encoder): tok for tok in found}


def texts(directory: Path, split: str) -> list[str]:
    (corpus,) = (directory / "paribus_runs/artifacts/corpus").iterdir()
    return list(CorpusArtifact(corpus).texts(split))  # type: ignore[arg-type]


def test_every_number_is_that_of_the_tokenizer_on_the_text(compared: Path) -> None:
    found, made = rows(compared), tokenizers(compared)
    assert found.keys() == made.keys() and len(found) == 4
    train, heldout = texts(compared, "train"), texts(compared, "heldout")
    gold = [line.split() for line in GOLD.splitlines()]
    for arm, row in found.items():
        expected = corpus_statistics(made[arm], train)
        assert int(row["tokens"]) == expected.tokens and int(row["bytes"]) == expected.bytes
        for name in ("bytes_per_token", "tokens_per_word", "entropy", "redundancy", "mean_token_length"):
            assert float(row[name]) == pytest.approx(getattr(expected, name))
        shares = {name: count / expected.tokens for name, count in expected.token_lengths.items()}
        assert float(row["tokens_1_3_share"]) == pytest.approx(shares["1-3"])
        assert float(row["tokens_4_6_share"]) == pytest.approx(shares["4-6"])
        longer = sum(share for name, share in shares.items() if int(name.split("-")[0]) >= 16)
        assert float(row["tokens_16_more_share"]) == pytest.approx(longer)
        assert float(row["heldout_bytes_per_token"]) == pytest.approx(
            corpus_statistics(made[arm], heldout).bytes_per_token
        )
        assert float(row["pku_f1"]) == pytest.approx(tokenizer_scores(made[arm], gold).f1)
        assert int(row["vocab_size"]) == made[arm].vocab_size


def test_progress_names_the_row_that_stages_are_made_for_while_some_are_missing(own: Path) -> None:
    said = (own / "progress.txt").read_text(encoding="utf-8").splitlines()
    places = [said.index(f"row {number} of 4  {arm}") for number, arm in enumerate(ARMS, start=1)]
    assert places == sorted(places)
    assert all("tokens" in "".join(said[place:after]) for place, after in itertools.pairwise([*places, len(said)]))
    assert "row 1 of 4" not in paribus(own, "tokens", "statistics", *SWEEP, *OPTIONS).stderr


def test_what_a_table_is_made_of_can_go_once_its_directory_has_gone(own: Path) -> None:
    (own / "paribus_runs/runs").mkdir()
    names = [name for name in STAGES if (own / "paribus_runs/artifacts" / name).is_dir()]
    made = {path for name in names for path in (own / "paribus_runs/artifacts" / name).iterdir()}
    tokenizers = {path for path in made if path.parent.name == "vocabulary"}
    assert tokenizers and len(made) >= 11
    assert "nothing can be removed" in paribus(own, "clean").stdout
    shutil.rmtree(own / "paribus_runs/tokens")
    going = f"artefacts that no record names ({len(made - tokenizers)})"
    assert going in paribus(own, "clean").stdout
    assert going in paribus(own, "clean", "--yes").stdout
    assert {path for path in made if path.exists()} == tokenizers


def test_the_numbers_keep_their_values(compared: Path) -> None:
    """Pinned with the `code_version` of the stage: output that changes without a higher one is a failing test."""
    row = rows(compared)["bpe", "merge_rank"]
    assert STAGES["token_statistics"].code_version == 4
    pinned = {
        "tokens": 14002, "words": 12148, "entropy": 5.144822, "redundancy": 0.428353, "own_share": 0.193053,
        "renyi_efficiency": 0.491993, "heldout_bytes_per_token": 6.553771, "pku_f1": 0.111111,
    }  # fmt: skip
    assert {name: float(row[name]) for name in pinned} == pytest.approx(pinned, rel=1e-5)


def test_the_numbers_of_a_vocabulary_of_characters_keep_their_values(own: Path) -> None:
    """Pinned as those above; it has bytes of what is no character of its, which one of bytes has not."""
    shutil.rmtree(own / "paribus_runs/tokens")
    paribus(own, "tokens", "statistics", *OPTIONS, "tokenizer.unit=character", "tokenizer.vocab_size=330")
    (path,) = (own / "paribus_runs/tokens").glob("*/statistics.csv")
    with path.open(encoding="utf-8", newline="") as file:
        (row,) = csv.DictReader(file)
    assert STAGES["token_statistics"].code_version == 4
    pinned = {"tokens": 62954, "own_share": 0.923659}
    assert {name: float(row[name]) for name in pinned} == pytest.approx(pinned, rel=1e-5)


def test_rows_are_compared_with_the_first_of_their_size(own: Path) -> None:
    unlike = rows(own)
    assert unlike["bpe", "merge_rank"]["vocab_size"] != unlike["scaffold_bpe", "merge_rank"]["vocab_size"]
    assert unlike["scaffold_bpe", "merge_rank"]["bytes_per_token_change"] == "", "its text had no more pairs"
    for name in ("tokens", "artifacts/tokens"):
        shutil.rmtree(own / "paribus_runs" / name)
    paribus(own, "tokens", "statistics", *SWEEP, *OPTIONS, "tokenizer.vocab_size=300")
    found, made, train = rows(own), tokenizers(own), texts(own, "train")
    first = ("bpe", "merge_rank")
    assert found[first]["bytes_per_token_change"] == "" == found[first]["gone"]
    for arm in found.keys() - {first}:
        expected = float(found[arm]["bytes_per_token"]) / float(found[first]["bytes_per_token"]) - 1
        assert float(found[arm]["bytes_per_token_change"]) == pytest.approx(expected)
    scaffold = ("scaffold_bpe", "merge_rank")
    gone = only_in(spellings(made[first]), spellings(made[scaffold]), count_tokens(made[first], train).ids)
    came = only_in(spellings(made[scaffold]), spellings(made[first]), count_tokens(made[scaffold], train).ids)
    assert gone.tokens and int(found[scaffold]["gone"]) == gone.tokens
    rise = came.mean_frequency / gone.mean_frequency - 1 if gone.mean_frequency else None
    shown = found[scaffold]["frequency_rise"]
    assert shown == "" if rise is None else float(shown) == pytest.approx(rise)
    assert found["bpe", "longest_first"]["gone"] == ""
    (text,) = (own / "paribus_runs/tokens").glob("*/statistics.md")
    assert "in place of others' tokens" in text.read_text(encoding="utf-8")


def test_a_baseline_that_no_row_has_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    write_corpus(tmp_path)
    (tmp_path / "conf/experiment").mkdir(parents=True)
    text = "# @package _global_\nexperiment: {title: T, table: {baseline: {arm: words}}}\n"
    (tmp_path / "conf/experiment/mine.yaml").write_text(text, encoding="utf-8")
    asked = ("--config-dir", "conf", "-m", "experiment=mine", "arm=bpe,unigram", *OVERRIDES)
    told = paribus(tmp_path, "tokens", "statistics", *asked, expect=2)
    assert "experiment.table.baseline: no row has arm: words; rows: bpe; unigram" in told.stderr
    assert list((tmp_path / "paribus_runs").glob("artifacts/*/*/record.json")) == []


def test_tables_and_pictures_are_written_and_no_model_is_trained(compared: Path) -> None:
    (text,) = (compared / "paribus_runs/tokens").glob("*/statistics.md")
    content = text.read_text(encoding="utf-8")
    pictures = re.findall(r"\((plots/\w+\.svg)\)", content)
    assert {Path(picture).stem for picture in pictures} == {
        "token_lengths", "token_frequencies", "own_shares", "vocabulary_overlap",
    }  # fmt: skip
    assert all((text.parent / picture).stat().st_size > 5000 for picture in pictures)
    assert "1-3 characters" in content
    stages = {path.name for path in (compared / "paribus_runs/artifacts").iterdir()}
    assert stages - {"claims", "partial", "verified"} == {"corpus", "vocabulary", "tokens", "tasks", "token_statistics"}


def test_words_are_those_of_the_text_whatever_the_tokenizer_knows(own: Path) -> None:
    words = ("tokenizer=words", "encoder=whole", "tokenizer.unit=character", "tokenizer.unknown=token")
    shutil.rmtree(own / "paribus_runs/tokens")
    options = [option for option in OPTIONS if not option.startswith(("tokenizer", "evaluation.tasks"))]
    paribus(own, "tokens", "statistics", *options, *words, "tokenizer.lossless=false", "tokenizer.vocab_size=40")
    (path,) = (own / "paribus_runs/tokens").glob("*/statistics.csv")
    with path.open(encoding="utf-8", newline="") as file:
        (row,) = csv.DictReader(file)
    assert int(row["words"]) == sum(len(text.encode().split()) for text in texts(own, "train"))


def test_held_out_text_is_encoded_with_all_merges_as_models_are_scored(own: Path) -> None:
    shutil.rmtree(own / "paribus_runs/tokens")
    told = paribus(own, "tokens", "statistics", "-m", "encoder=merge_rank,dropout", *OPTIONS, "tokenizer=bpe")
    (path,) = (own / "paribus_runs/tokens").glob("*/statistics.csv")
    with path.open(encoding="utf-8", newline="") as file:
        plain, dropped = csv.DictReader(file)
    assert plain["heldout_bytes_per_token"] == dropped["heldout_bytes_per_token"], told.stdout
    assert float(dropped["bytes_per_token"]) < float(plain["bytes_per_token"])


def test_another_order_of_arms_is_another_report(own: Path) -> None:
    shutil.rmtree(own / "paribus_runs/tokens")
    for arms in ("merge_rank,longest_first", "longest_first,merge_rank"):
        told = paribus(own, "tokens", "statistics", "-m", f"encoder={arms}", *OPTIONS, "tokenizer=bpe")
    assert len(list((own / "paribus_runs/tokens").glob("*/statistics.csv"))) == 2
    told = paribus(
        own, "tokens", "statistics", "-m", "budget.tokens=1M,2M", *OPTIONS, "tokenizer=bpe", "encoder=merge_rank"
    )
    assert "2 configurations have 1 different tokens: those alike are one row" in told.stdout


def test_an_arm_that_fails_leaves_the_table_of_the_others(own: Path) -> None:
    sizes = ("-m", "tokenizer.vocab_size=400,270", "tokenizer.unit=character", "tokenizer=bpe", "encoder=merge_rank")
    told = paribus(own, "tokens", "statistics", *sizes, *OPTIONS, expect=1).stdout
    assert "tables, numbers and plots:" in told
    left_out = " ".join(told.partition("left out, ")[2].split())
    assert "tokenizer.vocab_size=270" in left_out and "below the alphabet" in left_out
    assert "tokenizer.vocab_size=400" not in left_out
    one = (*OPTIONS, "tokenizer=bpe", "encoder=merge_rank", "tokenizer.unit=character", "tokenizer.vocab_size=270")
    assert "below the alphabet" in paribus(own, "tokens", "statistics", *one, expect=2).stderr


def test_asked_again_nothing_is_made(own: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in (own / "paribus_runs/artifacts").glob("*/*/record.json")}
    told = paribus(own, "tokens", "statistics", *SWEEP, *OPTIONS)
    assert "token_statistics:" not in told.stderr
    assert before == {path: path.stat().st_mtime_ns for path in before}


def test_a_run_shares_what_the_statistics_were_made_of(own: Path) -> None:
    run = (*OPTIONS, "tokenizer=bpe", "encoder=merge_rank", "until=tokens")
    before = set((own / "paribus_runs/artifacts").glob("*/*/record.json"))
    paribus(own, "run", *run)
    assert set((own / "paribus_runs/artifacts").glob("*/*/record.json")) == before


def test_the_row_of_one_tokenizer_is_named_by_it(own: Path) -> None:
    shutil.rmtree(own / "paribus_runs/tokens")
    told = paribus(own, "tokens", "statistics", *OPTIONS, "tokenizer=bytes").stdout
    (path,) = (own / "paribus_runs/tokens").glob("*/statistics.csv")
    with path.open(encoding="utf-8", newline="") as file:
        (row,) = csv.DictReader(file)
    assert row["tokenizer"] == "bytes" and float(row["bytes_per_token"]) == 1
    assert "bytes" in told and "1.0000" in told


def test_the_tokens_that_contain_another_add_up(compared: Path) -> None:
    told = paribus(
        compared, "tokens", "statistics", "--containing", "er", *OPTIONS, "tokenizer=bpe", "encoder=merge_rank"
    ).stdout
    tok = tokenizers(compared)["bpe", "merge_rank"]
    counts = count_tokens(tok, texts(compared, "train")).ids
    assert "tokens contain 'er'" in told
    shares = [float(share) for share in re.findall(r"^ +([\d.]+) %", told, re.MULTILINE)]
    assert sum(shares) == pytest.approx(100, abs=0.3)
    line = re.search(r"([\d,]+)  '(.+)'", told)
    assert line and int(line[1].replace(",", "")) in counts.tolist()


def test_a_text_is_shown_in_the_tokens_of_each_arm(compared: Path) -> None:
    told = paribus(compared, "tokens", "encode", "--text", "silt and\n", *SWEEP, *OPTIONS).stdout
    for (algorithm, encoder), tok in tokenizers(compared).items():
        line = next(line for line in told.splitlines() if line.lstrip().startswith(f"{algorithm} · {encoder}"))
        tokens = tok.tokenize("silt and\n")
        assert line.split()[3] == str(len(tokens))
        assert "|".join(map(token_text, tokens)) in line
    assert "silt|·and|\\n" in told, "the pre-tokens stand below"


@pytest.mark.parametrize(
    ("token", "expected"),
    [(b" a\n", "·a\\n"), ("河".encode()[:2], "\\xe6\\xb2"), (b"\t\r", "\\t\\r"), ("é".encode(), "é")],
)
def test_what_is_no_character_is_shown_as_an_escape(token: bytes, expected: str) -> None:
    assert token_text(token) == expected


def test_a_token_of_chinese_text_and_one_that_is_nowhere(compared: Path) -> None:
    one = ("tokenizer=bpe", "encoder=merge_rank")
    asked = ("tokens", "statistics", "--containing")
    assert "河" in paribus(compared, *asked, "河", *OPTIONS, *one).stdout
    assert "no token contains '--'" in paribus(compared, *asked, "--", *OPTIONS, *one).stdout


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("sstatistics",), "unknown action 'sstatistics'; known: statistics, encode, entropy"),
        (("statistics", "--containing"), "--containing needs a text after it"),
        (("encode", "--text"), "--text needs a text after it"),
        (("entropy", "--text", "a", "pretokenizer=spans"), "--text is for pretokenizer=predictive_entropy"),
        (("entropy", "-m", "tokenizer=bpe,bytes"), "take one configuration, not 2"),
        (("entropy", "pretokenizer=gpt2"), "pretokenizer.kind: 'gpt2' uses no entropy; give pretokenizer=spans"),
        (("statistics", "--containing", "a", "-m", "tokenizer=bpe,bytes"), "take one configuration, not 2"),
        (("statistics", "tokeniser=bpe"), "tokeniser"),
        (("statistics", "evaluation.tasks=[msr]", "evaluation.data=benchmarks"), "msr"),
    ],
)
def test_what_cannot_be_asked_is_refused(compared: Path, arguments: tuple[str, ...], told: str) -> None:
    overrides = () if arguments[-1].startswith("--") or len(arguments) == 1 else OVERRIDES
    done = paribus(compared, "tokens", *arguments, *overrides, expect=2 if "msr" not in told else 1)
    assert told in done.stderr


def test_the_help_is_the_usage(tmp_path: Path) -> None:
    assert paribus(tmp_path, "tokens", "--help").stdout == USAGE
    assert paribus(tmp_path, "tokens", expect=2).stdout == USAGE


def test_statistics_are_plain_data(compared: Path) -> None:
    paths = list((compared / "paribus_runs/artifacts/token_statistics").glob("*/statistics.json"))
    assert len(paths) == 4
    for path in paths:
        content = json.loads(path.read_text(encoding="utf-8"))
        assert sum(content["own_shares"]) > 70 and set(content["words"]) == {"pku_precision", "pku_recall", "pku_f1"}
