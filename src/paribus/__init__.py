"""Compare tokenizers, encodings and document orders for language-model pretraining, all else being equal."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas

    from paribus.tokenization.tokenizer import Tokenizer

__version__ = "0.1.0"
__all__ = ["Tokenizer", "load_report"]


def load_report(sweep: str, root: str | Path = "paribus_runs") -> "pandas.DataFrame":
    """Load the table of a sweep as a DataFrame, one row per cell, with the columns of `report.parquet`.

    `sweep` is an identifier, the start of one, a name, or `last`. Raises ConfigurationError where it names no sweep of
    the output root, DataError where no report of the sweep is there.
    """
    import pandas

    from paribus.errors import ConfigurationError, DataError
    from paribus.pipeline.records import find
    from paribus.pipeline.root import report_directory

    found = find(sweep, Path(root))
    if found.run is not None:
        raise ConfigurationError(f"{sweep!r} is a run of the sweep {found.sweep.id}; name that")
    path = report_directory(Path(root), found.sweep.id, found.sweep.name) / "report.parquet"
    if not path.is_file():
        raise DataError(f"{path}: no such report; make it with `paribus report {found.sweep.id} root={root}`")
    return pandas.read_parquet(path)


def __getattr__(name: str) -> Any:
    if name == "Tokenizer":
        from paribus.tokenization.tokenizer import Tokenizer

        return Tokenizer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), "Tokenizer"]
