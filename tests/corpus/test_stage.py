"""The fingerprint of a corpus: the contents' identity, cheap when asked again."""

import hashlib
import importlib.metadata
import os
import sys
import time
from pathlib import Path

import pytest

from paribus.config.groups.corpus import HuggingFaceCorpus, PydocsCorpus
from paribus.corpus.stage import fingerprint
from paribus.errors import DataError
from paribus.store.files import FileDigests
from support.corpora import files_corpus, write_jsonl


def settled(path: Path, content: bytes) -> Path:
    """A file with this content that was last changed a minute ago."""
    path.write_bytes(content)
    moment = time.time_ns() - 60 * 10**9
    os.utime(path, ns=(moment, moment))
    return path


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def test_packages_are_known_by_their_versions(tmp_path: Path) -> None:
    version = importlib.metadata.version("numpy")
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    expected = {"packages": {"numpy": version}, "python": python}
    assert fingerprint(PydocsCorpus(packages=("numpy",)), FileDigests(tmp_path)) == expected


def test_files_are_known_by_their_names_and_contents_in_whatever_folder(tmp_path: Path) -> None:
    def known(folder: str) -> object:
        return fingerprint(files_corpus(tmp_path / folder / "*.jsonl"), FileDigests(tmp_path / "cache"))

    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        for name in "ab":
            write_jsonl(tmp_path / folder / f"{name}.jsonl", [{"text": name}])
    digests = [sha256((tmp_path / "one" / f"{name}.jsonl").read_bytes()) for name in "ab"]
    expected = {"files": [["a.jsonl", 14, digests[0]], ["b.jsonl", 14, digests[1]]]}
    assert known("one") == known("two") == expected
    (tmp_path / "one" / "b.jsonl").rename(tmp_path / "one" / "c.jsonl")
    write_jsonl(tmp_path / "two" / "b.jsonl", [{"text": "c"}])
    assert expected not in (known("one"), known("two"))
    with pytest.raises(DataError, match=r"a\.jsonl: no such file.*b\.jsonl: no such file"):
        fingerprint(files_corpus(tmp_path / "a.jsonl", tmp_path / "b.jsonl"), FileDigests(tmp_path / "cache"))


def test_settled_file_is_hashed_once_and_again_when_it_or_the_memory_changes(tmp_path: Path) -> None:
    path, cache = settled(tmp_path / "big.txt", b"x" * 1000), tmp_path / "cache"
    digest = FileDigests(cache).of(path)
    (entry,) = cache.iterdir()
    entry.write_text(entry.read_text().replace(digest, "remembered"))
    assert FileDigests(cache).of(path) == "remembered"
    for broken in ("", "[]", '{"state": 3}', '"text"'):
        entry.write_text(broken)
        assert FileDigests(cache).of(path) == digest == sha256(b"x" * 1000), broken
    path.write_bytes(b"y" * 1000)
    assert FileDigests(cache).of(path) == sha256(b"y" * 1000)
    young = tmp_path / "young.txt"
    young.write_bytes(b"x")
    FileDigests(tmp_path / "young").of(young)
    assert not (tmp_path / "young").exists(), "a file that changed just now is not remembered"


def test_other_contents_of_one_size_and_time_are_hashed_whatever_put_them_there(tmp_path: Path) -> None:
    """As `mv`, `rsync -t`, `cp -p`, archives and links that lead elsewhere put them."""
    digests, first, second, link = FileDigests(tmp_path / "cache"), *(tmp_path / name for name in ("a", "b", "link"))
    for path, content in ((first, b"x" * 100), (second, b"y" * 100)):
        path.write_bytes(content)
        os.utime(path, ns=(10**18, 10**18))
    link.symlink_to(first)
    assert digests.of(first) == digests.of(link) == sha256(b"x" * 100)
    link.unlink()
    link.symlink_to(second)
    assert digests.of(link) == sha256(b"y" * 100)
    second.replace(first)
    assert digests.of(first) == sha256(b"y" * 100)
    first.write_bytes(b"z" * 100)
    os.utime(first, ns=(10**18, 10**18))
    assert digests.of(first) == sha256(b"z" * 100)


def test_data_sets_are_known_by_their_files_or_their_revision(tmp_path: Path) -> None:
    hub = HuggingFaceCorpus(name="owner/name", revision="0123abc")
    assert fingerprint(hub, FileDigests(tmp_path / "cache")) == {"name": "owner/name", "revision": "0123abc"}
    (tmp_path / "data" / "train").mkdir(parents=True)
    write_jsonl(tmp_path / "data" / "train" / "a.jsonl", [{"text": "a"}])
    (tmp_path / "data" / ".hidden").touch()
    digest = sha256((tmp_path / "data" / "train" / "a.jsonl").read_bytes())
    local = fingerprint(HuggingFaceCorpus(name=str(tmp_path / "data")), FileDigests(tmp_path / "cache"))
    assert local == {"files": [["train/a.jsonl", 14, digest]]}
    (tmp_path / "none").mkdir()
    with pytest.raises(DataError, match="the directory has no files"):
        fingerprint(HuggingFaceCorpus(name=str(tmp_path / "none")), FileDigests(tmp_path / "cache"))
