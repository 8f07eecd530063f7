"""Pictures that are not drawn again while they show the same."""

import math
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paribus.reporting import kept_pictures
from paribus.reporting.plots import comparison
from paribus.reporting.plots.lines.curves import Curve
from paribus.reporting.plots.picture import Plot
from paribus.reporting.report import Report, write_report
from paribus.reporting.table.frame import RunRecord
from support.command_line import paribus
from support.recorded_sweeps import finished_sweep
from support.tables import FACTORS, demo_runs

CURVE = Curve([1, 2, 3], [3.0, 2.0, 1.0], {})


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[RunRecord]:
    return demo_runs(tmp_path_factory.mktemp("demo"), items=40, curves=False)[:2]


def written(directory: Path, runs: list[RunRecord], curves: Mapping[str, Curve]) -> Report:
    return write_report(
        runs, title="Demo", factors=FACTORS, directory=directory, curves=curves, kept=directory / "kept.json"
    )


def contents(report: Report) -> dict[str, bytes]:
    return {name: path.read_bytes() for name, path in report.files.items()}


def drawing(monkeypatch: pytest.MonkeyPatch, plots: Callable[..., Sequence[Plot]]) -> list[object]:
    """What is drawn, by `plots`."""
    drawn: list[object] = []

    def counted(*shown: Any) -> Any:
        drawn.append(shown)
        return plots(*shown)

    monkeypatch.setattr(comparison, "plots", counted)
    return drawn


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    return drawing(monkeypatch, lambda *_: [Plot("one", "caption", "alternative", b"\x89PNG", b"<svg/>")])


def test_the_same_report_is_drawn_once_and_has_the_same_bytes(
    tmp_path: Path, runs: list[RunRecord], monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = drawing(monkeypatch, comparison.plots)
    curves = {run.run_id: CURVE for run in runs}
    first = contents(written(tmp_path, runs, curves))
    for path in tmp_path.glob("plots/*.png"):
        path.unlink()
    assert contents(written(tmp_path, runs, curves)) == first
    assert len(drawn) == 1
    assert (
        contents(written(tmp_path, runs, {**curves, runs[0].run_id: replace(CURVE, losses=[3.0, 2.0, 1.5])})) != first
    )
    assert len(drawn) == 2


def test_other_code_fonts_and_settings_draw_again(
    tmp_path: Path, runs: list[RunRecord], drawn: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path, runs, {})
    monkeypatch.setattr(kept_pictures, "_code", lambda: "other code")
    written(tmp_path, runs, {})
    style = kept_pictures.style()
    monkeypatch.setattr(kept_pictures, "style", lambda: {**style, "font.family": ["DejaVu Sans", "Noto Sans CJK SC"]})
    written(tmp_path, runs, {})
    with kept_pictures.mpl.rc_context({"lines.linewidth": 7.0}):
        written(tmp_path, runs, {})
    assert len(drawn) == 4


def test_other_embeddings_draw_again(tmp_path: Path, runs: list[RunRecord], drawn: list[object]) -> None:
    """Their file is read while the picture is drawn, and is another where a run was scored again."""
    moved = [replace(run, scores=shutil.copytree(run.scores or tmp_path, tmp_path / run.run_id)) for run in runs]
    for content in (b"", b"places", b"places", b"other places"):
        if content:
            (tmp_path / runs[0].run_id / "embeddings.parquet").write_bytes(content)
        written(tmp_path, moved, {})
    assert len(drawn) == 3


@pytest.mark.parametrize("torn", [b"", b"{", b"[]", b'{"digest": 1}'])
def test_a_torn_file_is_drawn_again(torn: bytes, tmp_path: Path, runs: list[RunRecord], drawn: list[object]) -> None:
    first = contents(written(tmp_path, runs, {}))
    (tmp_path / "kept.json").write_bytes(torn)
    assert contents(written(tmp_path, runs, {})) == first
    assert len(drawn) == 2
    written(tmp_path, runs, {})
    assert len(drawn) == 2


def test_where_nothing_can_be_kept_the_report_is_written(
    tmp_path: Path, runs: list[RunRecord], drawn: list[object]
) -> None:
    (tmp_path / "file").touch()
    kept = tmp_path / "file" / "kept.json"
    report = write_report(runs, title="Demo", factors=FACTORS, directory=tmp_path / "report", curves={}, kept=kept)
    assert report.files["report.html"].is_file() and len(drawn) == 1


def test_where_code_cannot_be_read_the_report_is_written(
    tmp_path: Path, runs: list[RunRecord], drawn: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".#report.py").symlink_to("me@host.1")
    monkeypatch.setattr(kept_pictures, "_CODE", tmp_path)
    assert written(tmp_path / "made", runs, {}).files["report.html"].is_file()
    assert len(drawn) == 1 and not (tmp_path / "made" / "kept.json").exists()


@dataclass(frozen=True)
class Holder:
    value: object


def test_a_digest_tells_values_apart_and_heeds_no_order_of_a_set() -> None:
    array = np.array([1, 2], dtype=np.int32)
    values: list[object] = [1, True, 1.0, "1", b"1", None, [1], (1,), {1: 1}, [[1], 2], [[1, 2]], {"a": {"b": 1}}]
    values += [Holder(1), Holder("1"), array, array.astype(np.int64), array.reshape(1, 2), np.int64(1), {1, 2}, {12}]
    values += [[True], ["1"], [1.0], [-0.0], [0.0], [math.nan], ["a", "b"], ["a', 'b"], ['a", "b'], []]
    digests = [kept_pictures.digest(value) for value in values]
    assert None not in digests and len(set(digests)) == len(values)
    colliding = [set([0, 8]), set([8, 0])]  # noqa: C405 (a literal of numbers is put together by the compiler)
    assert list(colliding[0]) != list(colliding[1])
    assert kept_pictures.digest(colliding[0]) == kept_pictures.digest(colliding[1])


def test_names_of_items_and_ids_of_tokens_are_told_at_once() -> None:
    """One by one those of a thousand runs would take longer than the pictures."""
    items, own = tuple(f"item-{number}" for number in range(1000)), frozenset(range(1000))
    assert sum(1 for _ in kept_pictures._parts([items, own])) < 10


def test_no_toolkit_of_windows_is_imported() -> None:
    """Which looks for one that has a display, and on some systems opens a program's icon."""
    command = "import sys; from paribus.reporting.kept_pictures import digest; assert digest(1); "
    command += "assert 'matplotlib.pyplot' not in sys.modules"
    subprocess.run([sys.executable, "-c", command], check=True)


def test_what_no_digest_can_tell_is_not_kept(tmp_path: Path, runs: list[RunRecord], drawn: list[object]) -> None:
    assert kept_pictures.digest(object()) is None
    assert kept_pictures.digest(np.array([object()])) is None
    written(tmp_path, [replace(run, training={**run.training, "odd": object()}) for run in runs], {})
    assert len(drawn) == 1 and not (tmp_path / "kept.json").exists()


def test_a_command_takes_the_pictures_of_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever order their interpreters give to sets."""
    monkeypatch.chdir(tmp_path)
    Path("texts.txt").write_text("some text\n", encoding="utf-8")
    finished_sweep(tmp_path / "made", "-m", "encoder=merge_rank,longest_first")
    kept = []
    for _ in range(2):
        paribus(tmp_path, "report", "last", forked=False)
        (path,) = tmp_path.glob("paribus_runs/sweeps/*/pictures.json")
        kept.append((path.stat().st_ino, path.stat().st_mtime_ns))
    assert len(set(kept)) == 1
