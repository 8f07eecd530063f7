"""Damage to an artefact of any kind: detected, named, never loaded, and made again with the same bytes."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from paribus.errors import InfrastructureError
from paribus.pipeline.graph import STAGES
from paribus.store.artifacts import RECORD, Artifact
from support.artefacts import Maker, small_maker


def truncate(path: Path) -> str:
    os.truncate(path, path.stat().st_size // 2)
    return f"{path.name} has"


def flip_a_byte(path: Path) -> str:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    return f"{path.name} differs"


def empty(path: Path) -> str:
    path.write_bytes(b"")
    return f"{path.name} has 0 bytes"


def leave_a_temporary_file(path: Path) -> str:
    path.with_name(f".{path.name}.1f3a").write_bytes(path.read_bytes()[:10])
    return f".{path.name}.1f3a is not of it"


def lose_the_file(path: Path) -> str:
    path.unlink()
    return f"{path.name} is missing"


def lose_the_record(path: Path) -> str:
    record_of(path).unlink()
    return f"has no {RECORD}"


def truncate_the_record(path: Path) -> str:
    truncate(record_of(path))
    return f"{RECORD} is torn"


def flip_a_digit_of_the_record(path: Path) -> str:
    text = record_of(path).read_text(encoding="utf-8")
    digit = text.index('"seconds": ') + len('"seconds": ')
    record_of(path).write_text(f"{text[:digit]}{'2' if text[digit] == '1' else '1'}{text[digit + 1 :]}", "utf-8")
    return f"{RECORD} does not have the digest"


DAMAGES: tuple[Callable[[Path], str], ...] = (
    truncate, flip_a_byte, empty, leave_a_temporary_file, lose_the_file,
    lose_the_record, truncate_the_record, flip_a_digit_of_the_record,
)  # fmt: skip


def record_of(path: Path) -> Path:
    return next(parent / RECORD for parent in path.parents if (parent / RECORD).is_file())


@pytest.fixture(scope="module")
def maker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Maker]:
    with small_maker(tmp_path_factory.mktemp("torn")) as made:
        yield made


@pytest.fixture(scope="module")
def kept(maker: Maker, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A sound copy of every artefact by stage, and the artefacts themselves in the store."""
    directory = tmp_path_factory.mktemp("kept")
    made = {name: maker.ensure(node) for name, node in maker.nodes.items()}
    return {name: Path(shutil.copytree(artifact.path, directory / name)) for name, artifact in made.items()}


def sound(maker: Maker, kept: dict[str, Path], stage: str) -> Artifact:
    """The artefact of a stage as it was made, looked at before, so that it is remembered as sound."""
    node = maker.nodes[stage]
    path = maker.layout.store.path(*node.place)
    shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(kept[stage], path)
    found = maker.layout.store.find(*node.place)
    assert found is not None
    return found


def files_of(artifact: Artifact) -> list[Path]:
    """Its files but for the record, the largest first."""
    files = [path for path in artifact.path.rglob("*") if path.is_file() and path.name != RECORD]
    return sorted(files, key=lambda path: path.stat().st_size, reverse=True)


@pytest.mark.parametrize("stage", STAGES)
def test_damage_of_every_kind_is_named_and_never_loaded(maker: Maker, kept: dict[str, Path], stage: str) -> None:
    for damage in DAMAGES:
        artifact = sound(maker, kept, stage)
        expected = damage(files_of(artifact)[0])
        difference = maker.layout.store.damage(artifact.stage, artifact.key)
        assert difference is not None and expected in difference, damage.__name__
        assert maker.layout.store.find(artifact.stage, artifact.key) is None
        with pytest.raises(InfrastructureError, match="makes it again"):
            maker.layout.store.require(artifact.stage, artifact.key)


def made_again(maker: Maker, kept: dict[str, Path], stage: str, damage: Callable[[Path], str]) -> None:
    artifact = sound(maker, kept, stage)
    expected = damage(files_of(artifact)[0])
    before = set((maker.layout.store.root / "damaged").glob("*"))
    again = maker.ensure(maker.nodes[stage])
    said = " ".join(maker.console.export_text().split())
    assert f"{stage} damaged: " in said and expected in said
    assert again.record()["files"] == Artifact(artifact.stage, artifact.key, kept[stage]).record()["files"]
    (aside,) = set((maker.layout.store.root / "damaged").glob("*")) - before
    assert str(aside) in said and aside.name.startswith(f"{artifact.stage}-{artifact.key}")


@pytest.mark.parametrize(("number", "stage"), list(enumerate(STAGES)))
def test_a_damaged_artefact_is_made_again_alike(maker: Maker, kept: dict[str, Path], number: int, stage: str) -> None:
    for name in maker.nodes[stage].inputs:
        sound(maker, kept, name)
    made_again(maker, kept, stage, DAMAGES[number % len(DAMAGES)])


@pytest.mark.slow
@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("stage", STAGES)
def test_every_damage_of_every_stage_is_made_again(
    maker: Maker, kept: dict[str, Path], stage: str, damage: Callable[[Path], str]
) -> None:
    for name in maker.nodes[stage].inputs:
        sound(maker, kept, name)
    made_again(maker, kept, stage, damage)


def test_an_input_that_is_damaged_while_a_run_goes_on_is_not_read(maker: Maker, kept: dict[str, Path]) -> None:
    node = maker.nodes["tokens"]
    for name in node.inputs:
        sound(maker, kept, name)
    shutil.rmtree(sound(maker, kept, "tokens").path)
    flip_a_byte(files_of(sound(maker, kept, "corpus"))[0])
    with pytest.raises(InfrastructureError, match="differs from its digest; the same command makes it again"):
        maker.ensure(node)
    assert maker.layout.store.find("tokens", node.key) is None


def test_a_byte_flipped_under_the_old_times_of_its_file_is_noticed(
    maker: Maker, kept: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("paribus.store.artifacts.SETTLED_NANOSECONDS", -1)
    artifact = sound(maker, kept, "order")
    store = maker.layout.store
    path = files_of(artifact)[0]
    assert store.damage("order", artifact.key) is None
    assert store.memory("order", artifact.key).read()["files"].keys() > {path.name}
    times = path.stat()
    flip_a_byte(path)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert store.damage("order", artifact.key) == f"{path.name} differs from its digest"
