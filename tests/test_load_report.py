"""The table of a sweep in Python."""

from pathlib import Path

import pandas
import pytest

from paribus import load_report
from paribus.cli import main
from paribus.errors import ConfigurationError, DataError
from support.recorded_sweeps import finished_sweep

pytestmark = pytest.mark.usefixtures("undrawn", "beside_text")


def test_the_table_of_a_sweep_is_loaded_by_its_name(tmp_path: Path) -> None:
    runs = finished_sweep(tmp_path / "made", "-m", "training.learning_rate=0.001,0.002", "seed=0,1")
    with pytest.raises(DataError, match=r"report.parquet: no such report; make it with `paribus report \w+ root="):
        load_report("last")
    assert main(["report"]) == 0
    (path,) = Path("paribus_runs/reports").glob("*/report.parquet")
    found = load_report("training.learning_rate")
    pandas.testing.assert_frame_equal(found, pandas.read_parquet(path))
    pandas.testing.assert_frame_equal(found, load_report("last", tmp_path / "paribus_runs"))
    assert set(found["training.learning_rate"]) == {"0.001", "0.002"}
    with pytest.raises(ConfigurationError, match="is a run of the sweep"):
        load_report(runs[0].run_id)
    with pytest.raises(ConfigurationError, match="no run or sweep 'nothing'"):
        load_report("nothing")
