"""Files of what is scored without a prompt: sets of texts, test sets of translation, segmented corpora."""

import gzip
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import zstandard

from paribus.config.groups.evaluation import EvaluationConfig
from paribus.errors import DataError
from paribus.evaluation.data_files import TRANSLATIONS, read_texts, read_translations
from paribus.evaluation.heldout import TextPair
from paribus.evaluation.preflight import check_evaluation, tasks_fingerprint
from paribus.store.files import FileDigests

TEXTS = [{"text": "All else being equal."}, {"text": "Zürich\n"}]
PAIR = {"en": "a dog .", "de": "ein hund ."}


def write(path: Path, records: Iterable[Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    data = "".join(json.dumps(record) + "\n" for record in records).encode()
    pack = {".gz": gzip.compress, ".zst": zstandard.compress}.get(path.suffix, bytes)
    path.write_bytes(pack(data))
    return path


def of_texts(data: Path, *names: str) -> EvaluationConfig:
    return EvaluationConfig(tasks=(), texts=names, data=str(data))


@pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
def test_texts_are_read_plain_and_compressed_and_named_by_their_line(suffix: str, tmp_path: Path) -> None:
    path = write(tmp_path / f"test.jsonl{suffix}", TEXTS)
    assert list(read_texts(path)) == [("test/1", "All else being equal."), ("test/2", "Zürich\n")]


REFUSED = {
    "no text": ([TEXTS[0], {"body": "x"}], "line 2: field `text` is missing; the record has body"),
    "a number for a text": ([{"text": 3}], "line 1: field `text` must be text, not 3"),
    "an empty text": ([{"text": ""}], "line 1: the text is empty"),
    "half a surrogate pair": ([{"text": "\ud800"}], "line 1: the text, id or group has half a surrogate pair"),
    "an id twice": ([{"id": "a", "text": "x"}, {"id": "a", "text": "y"}], "line 2: the id 'a' occurred before"),
    "an id that is missing": ([{"id": "a", "text": "x"}, {"text": "y"}], "line 2: field `id` is missing"),
    "nothing": ([], "is empty; a set of texts needs its lines there, each a JSON object"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_set_of_texts_is_refused_by_file_and_line(case: str, tmp_path: Path) -> None:
    records, message = REFUSED[case]
    path = write(tmp_path / "books" / "test.jsonl.gz", records)
    with pytest.raises(DataError) as error:
        list(read_texts(path))
    assert str(path) in str(error.value) and message in str(error.value)
    with pytest.raises(DataError, match=r"books/test\.jsonl\.gz"):
        tasks_fingerprint(of_texts(tmp_path, "books"), FileDigests(tmp_path / "cache"))


def test_sets_that_are_missing_and_names_that_collide_are_named_at_once(tmp_path: Path) -> None:
    found = check_evaluation(of_texts(tmp_path, "books", "boolq", "../x", "books"))
    assert [path for path, _ in found] == ["evaluation.texts"] * 3 + ["evaluation.data"]
    said = [message for _, message in found]
    assert "'boolq' is the name of a task" in said[0]
    assert "'../x' must be letters" in said[1]
    assert said[2] == "names books 2 times"
    assert said[3] == (
        f"text set books needs {tmp_path}/books/test.jsonl or the same with .gz or .zst; or leave it out of "
        "evaluation.texts"
    )


@pytest.mark.parametrize("record", [PAIR, {"translation": PAIR}], ids=["flat", "as on the hub"])
def test_pairs_are_read_in_the_direction_of_the_name(record: dict[str, Any], tmp_path: Path) -> None:
    path = write(tmp_path / "test.jsonl.gz", [record])
    assert read_translations(path, TRANSLATIONS["wmt14_en_de"]) == [TextPair("test/1", "a dog .", "ein hund .")]
    assert read_translations(path, TRANSLATIONS["wmt14_de_en"]) == [TextPair("test/1", "ein hund .", "a dog .")]


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"en": "a", "fr": "b"}, "field `de` is missing; the record has en, fr"),
        ({"en": "a", "de": " "}, "field `de` must be text"),
        ({"translation": ["a", "b"]}, "field `translation` must hold the texts en and de, not \\["),
    ],
)
def test_a_pair_without_a_side_is_refused_by_file_line_and_field(record: Any, message: str, tmp_path: Path) -> None:
    path = write(tmp_path / "test.jsonl", [PAIR, record])
    with pytest.raises(DataError, match=rf"test\.jsonl, line 2: {message}"):
        read_translations(path, TRANSLATIONS["wmt14_en_de"])
