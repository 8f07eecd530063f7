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
from paribus.errors import ConfigurationError, DataError
from paribus.store.files import FileDigests
from support.corpora import files_corpus, write_jsonl


def settled(path: Path, seconds_ago: float = 60) -> Path:
    """`path`, last changed some time ago."""
    moment = time.time_ns() - int(seconds_ago * 1e9)
    os.utime(path, ns=(moment, moment))
    return path


def test_packages_are_known_by_their_versions(tmp_path: Path) -> None:
    version = importlib.metadata.version("numpy")
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    wanted = {"packages": {"numpy": version}, "python": python}
    assert fingerprint(PydocsCorpus(packages=("numpy",)), FileDigests(tmp_path)) == wanted
    with pytest.raises(ConfigurationError, match=r"corpus.packages: the package 'no-such-package' is not installed"):
        fingerprint(PydocsCorpus(packages=("no-such-package",)), FileDigests(tmp_path))


def test_files_are_known_by_their_names_and_contents_in_whatever_folder(tmp_path: Path) -> None:
    for folder in ("here", "there"):
        (tmp_path / folder).mkdir()
        for name in "ab":
            write_jsonl(tmp_path / folder / f"{name}.jsonl", [{"text": name}])
    here, there = (
        fingerprint(files_corpus(tmp_path / f / "*.jsonl"), FileDigests(tmp_path / "cache")) for f in ("here", "there")
    )
    content = [(tmp_path / "here" / f"{name}.jsonl").read_bytes() for name in "ab"]
    digests = [hashlib.sha256(data).hexdigest() for data in content]
    assert here == there == {"files": [["a.jsonl", 14, digests[0]], ["b.jsonl", 14, digests[1]]]}
    (tmp_path / "here" / "b.jsonl").rename(tmp_path / "here" / "c.jsonl")
    assert fingerprint(files_corpus(tmp_path / "here" / "*.jsonl"), FileDigests(tmp_path / "cache")) != here
    write_jsonl(tmp_path / "there" / "b.jsonl", [{"text": "c"}])
    assert fingerprint(files_corpus(tmp_path / "there" / "*.jsonl"), FileDigests(tmp_path / "cache")) != here


def test_a_settled_file_is_hashed_once_and_again_when_it_changes(tmp_path: Path) -> None:
    path = tmp_path / "big.txt"
    path.write_bytes(b"x" * 1000)
    settled(path)
    digest = FileDigests(tmp_path / "cache").of(path)
    (entry,) = (tmp_path / "cache").iterdir()
    entry.write_text(entry.read_text().replace(digest, "remembered"))
    assert FileDigests(tmp_path / "cache").of(path) == "remembered"
    path.write_bytes(b"y" * 1000)
    assert FileDigests(tmp_path / "cache").of(path) == hashlib.sha256(b"y" * 1000).hexdigest()


def test_other_contents_of_one_size_and_time_are_hashed_whatever_put_them_there(tmp_path: Path) -> None:
    """As `mv`, `rsync -t`, `cp -p`, archives and links that lead elsewhere put them."""
    cache, first, second, link = tmp_path / "cache", tmp_path / "a", tmp_path / "b", tmp_path / "link"
    for path, content in ((first, b"x" * 100), (second, b"y" * 100)):
        path.write_bytes(content)
        os.utime(path, ns=(10**18, 10**18))
    link.symlink_to(first)
    before = [FileDigests(cache).of(path) for path in (first, link)]
    link.unlink()
    link.symlink_to(second)
    assert FileDigests(cache).of(link) == hashlib.sha256(b"y" * 100).hexdigest() != before[1]
    second.replace(first)
    assert FileDigests(cache).of(first) == hashlib.sha256(b"y" * 100).hexdigest() != before[0]
    first.write_bytes(b"z" * 100)
    os.utime(first, ns=(10**18, 10**18))
    assert FileDigests(cache).of(first) == hashlib.sha256(b"z" * 100).hexdigest()


def test_a_file_that_changed_just_now_is_not_remembered(tmp_path: Path) -> None:
    path = tmp_path / "young.txt"
    path.write_bytes(b"x")
    FileDigests(tmp_path / "cache").of(path)
    assert not (tmp_path / "cache").exists()


def test_a_broken_memory_is_forgotten(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"x")
    digest = FileDigests(tmp_path / "cache").of(settled(path))
    (entry,) = (tmp_path / "cache").iterdir()
    for content in ("", "[]", '{"state": 3}', '"text"'):
        entry.write_text(content)
        assert FileDigests(tmp_path / "cache").of(path) == digest


def test_all_missing_files_are_named_at_once_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"a\.jsonl: no such file.*b\.jsonl: no such file"):
        fingerprint(files_corpus(tmp_path / "a.jsonl", tmp_path / "b.jsonl"), FileDigests(tmp_path / "cache"))


def test_data_sets_are_known_by_their_files_or_their_revision(tmp_path: Path) -> None:
    hub = HuggingFaceCorpus(name="owner/name", revision="0123abc")
    assert fingerprint(hub, FileDigests(tmp_path / "cache")) == {"name": "owner/name", "revision": "0123abc"}
    with pytest.raises(ConfigurationError, match=r"corpus.revision: required"):
        fingerprint(HuggingFaceCorpus(name="owner/name"), FileDigests(tmp_path / "cache"))
    (tmp_path / "data" / "train").mkdir(parents=True)
    write_jsonl(tmp_path / "data" / "train" / "a.jsonl", [{"text": "a"}])
    (tmp_path / "data" / ".hidden").touch()
    digest = hashlib.sha256((tmp_path / "data" / "train" / "a.jsonl").read_bytes()).hexdigest()
    local = fingerprint(HuggingFaceCorpus(name=str(tmp_path / "data")), FileDigests(tmp_path / "cache"))
    assert local == {"files": [["train/a.jsonl", 14, digest]]}
    (tmp_path / "none").mkdir()
    with pytest.raises(DataError, match="the directory has no files"):
        fingerprint(HuggingFaceCorpus(name=str(tmp_path / "none")), FileDigests(tmp_path / "cache"))
