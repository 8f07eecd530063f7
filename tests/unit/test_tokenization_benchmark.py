"""The benchmark of tokenization: what it shares among contestants, what it says of their results, and a quick run."""

import importlib
import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
PEERS = ("tiktoken", "fastokens", "gigatoken", "sentencepiece", "rustbpe", "bpeasy", "gigabpe")
TEXTS = ["First\r\n\r\n second  line\n", "größer 中文 🙂", "last"]


@pytest.fixture
def peers(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Imports a module of the benchmark."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))

    def load(name: str) -> ModuleType:
        return importlib.import_module(f"peers.{name}")

    return load


def series(peers: Any, name: str, **values: Any) -> Any:
    contestant = next(one for one in peers("contestants").ENCODERS if one.name == name)
    outcome = peers("job").Outcome(values, None, 1.0, 1.0)
    return peers("rounds").Series(contestant, 1, outcomes=[outcome])


def test_documents_come_back_as_they_were_and_only_so_far_as_asked(peers: Any, tmp_path: Path) -> None:
    text = peers("text").write(TEXTS, tmp_path / "text")
    assert list(text.documents()) == TEXTS
    assert list(text.documents(limit=1e-6)) == TEXTS[:1]
    assert text.megabytes() == pytest.approx(sum(len(item.encode()) for item in TEXTS) / 1e6)
    assert list(text.lines()) == ["First\r\n", "\r\n", " second  line\n", "\n", "größer 中文 🙂\n", "last\n"]
    assert text.separated.read_text(encoding="utf-8").count("<|end of document|>") == 2


def test_short_strings_are_pieces_of_the_documents(peers: Any, tmp_path: Path) -> None:
    document = "".join(chr(0x4E00 + number) for number in range(1000))
    drawn = peers("text").write([document], tmp_path / "text").strings(50)
    assert len(drawn) == 50
    assert all(item in document and 1 <= len(item) <= 200 for item in drawn)
    assert drawn == peers("text").Text(tmp_path / "text").strings(50)


def test_characters_stand_for_bytes_as_in_gpt2(peers: Any) -> None:
    from tokenizers.pre_tokenizers import ByteLevel

    values = peers("vocabularies").byte_values()
    assert sorted(values.values()) == list(range(256))
    spelled = ByteLevel(add_prefix_space=False, use_regex=False).pre_tokenize_str("é\n 中")[0][0]
    assert bytes(values[character] for character in spelled) == "é\n 中".encode()


def test_ids_that_differ_are_said_to_differ(peers: Any) -> None:
    verdict = peers("encoding").verdict
    ours = series(peers, "paribus merge_rank", digest="a", digests=["c"], decodes=True)
    same = series(peers, "gigatoken", digest="a", digests=["c"])
    other = series(peers, "tiktoken", digest="b", digests=["c"])
    broken = series(peers, "paribus longest_first", digest="b", digests=["c"], decodes=False)
    restless = series(peers, "fastokens", digest="a", digests=["c", "d"])
    everyone = [ours, same, other, broken, restless]
    assert verdict(same, everyone) == ("equal", True)
    assert verdict(other, everyone) == ("**differ**", False)
    assert verdict(broken, everyone) == ("**do not decode to the text**", False)
    assert verdict(restless, everyone) == ("**differ from pass to pass**", False)


def test_merges_are_compared_as_far_as_the_shorter_list_goes(peers: Any) -> None:
    merges = {"x": [["61", "62"], ["63", "64"]]}
    compared = peers("learning").compared
    assert compared(merges["x"][:1], merges, "x") == ("1, those of x", True)
    assert compared([["61", "62"], ["64", "63"]], merges, "x") == ("**the first 1 of 2 those of x**", False)
    assert compared([], {}, "x") == ("nothing to compare with (x)", True)


def test_a_warm_time_is_that_of_later_passes_over_one_copy(peers: Any) -> None:
    one = series(peers, "gigatoken", seconds=[9.0, 5.0, 2.0, 4.0, 3.0])
    assert one.cold() == [9.0]
    assert one.warm(copies=2) == [1.5]
    assert series(peers, "gigatoken", seconds=[9.0, 5.0]).warm() == [5.0]


@pytest.mark.slow
@pytest.mark.parametrize("part", ["encoding", "training", "strings"])
def test_a_quick_run_finds_the_ids_and_merges_of_all_peers_equal(part: str, tmp_path: Path) -> None:
    absent = [name for name in PEERS if importlib.util.find_spec(name) is None]
    if absent:
        pytest.skip(f"needs pip install -r benchmarks/requirements.txt: {', '.join(absent)} not installed")
    corpus, output = tmp_path / "mixed.jsonl", tmp_path / "table.md"
    source = (Path(json.__file__).parent / "decoder.py").read_text(encoding="utf-8")
    texts = [source[start : start + 4000] + TEXTS[1] for start in range(0, len(source), 3000)] * 3
    corpus.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts), encoding="utf-8")
    command = [sys.executable, BENCHMARKS / "tokenization.py", "--quick", "--cores", "1", "--parts", part]
    done = subprocess.run(
        [*command, "--corpus", f"mixed={corpus}", "--output", output], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert output.read_text(encoding="utf-8") == done.stdout
    rows = {line.split(" | ")[0].lstrip("| "): line for line in done.stdout.splitlines() if line.startswith("| ")}
    if part == "training":
        assert "those of tokenizers" in rows["paribus BPE"]
        assert {"paribus Scaffold-BPE", "gigabpe", "gigatoken", "rustbpe", "bpeasy", "sentencepiece bpe"} <= set(rows)
    else:
        equal = ("paribus merge_rank", "gigatoken", "fastokens", "tiktoken", "tokenizers")
        assert all(rows[name].endswith("| equal |") for name in equal)
