"""Documents of a `datasets` data set: of the hub, streamed at a fixed revision, or of a directory on this machine."""

import os
import re
from collections.abc import Generator, Iterator, Mapping
from contextlib import nullcontext
from typing import Any

from paribus.config.groups.corpus import HuggingFaceCorpus
from paribus.corpus.readers.record import Fields, record_of
from paribus.corpus.sources.dataset_names import local_directory, require_revision
from paribus.corpus.sources.source import Found, Intake, Skipped
from paribus.errors import ConfigurationError, DataError, InfrastructureError
from paribus.stage import cache_alone_without_network


class HuggingFaceSource:
    """The documents of `corpus=huggingface`; ids are `<name>:<row>` unless a column holds them.

    Progress is in rows; the total is 0 where the data set does not say how many it has.
    """

    unit = "rows"

    def __init__(self, config: HuggingFaceCorpus) -> None:
        self._config = config
        self._fields = Fields(config.text_field, config.id_field, group=config.group_field)
        self._rows: Any = _open(config, [name for name, _ in self._fields.named()])
        self.done = 0.0
        self.total = float(_length(self._rows, config.split))

    def hint(self) -> str:
        """What to change where there are too few documents."""
        return "choose another corpus.name, corpus.subset or corpus.split"

    def items(self) -> Generator[Found | Skipped, None, None]:
        """Documents row by row, and what was left out between them."""
        intake = Intake(self._config.on_invalid)
        directory = local_directory(self._config.name)
        label = self._config.name if directory is None else directory.resolve().name
        for position, row in enumerate(_rows(self._rows, self._config), 1):
            self.done = float(position)
            item = record_of(position, row, self._fields)
            yield intake.take(item, path=self._config.name, label=label, unit="row")


def _open(config: HuggingFaceCorpus, columns: list[str]) -> Any:
    import datasets

    directory = local_directory(config.name)
    if directory is None:
        require_revision(config)
    try:
        if directory is not None and (directory / "dataset_dict.json").is_file():
            return _split(datasets.DatasetDict.load_from_disk(os.fspath(directory)), config)
        if directory is not None and (directory / "state.json").is_file():
            return datasets.load_from_disk(os.fspath(directory))
        with nullcontext() if directory else cache_alone_without_network():
            builder = datasets.load_dataset_builder(
                config.name if directory is None else os.fspath(directory.absolute()),
                config.subset,
                revision=config.revision if directory is None else None,
            )
            rows = builder.as_streaming_dataset(split=config.split)
            # Read the columns in use alone: others may change their type between files of Parquet.
            if hasattr(builder.config, "columns") and {*columns} <= {*(rows.features or ())}:
                builder.config.columns = columns
                rows = builder.as_streaming_dataset(split=config.split)
            return rows
    except (datasets.exceptions.DatasetNotFoundError, ConnectionError) as error:
        raise InfrastructureError(f"corpus.name={config.name}: the data set cannot be fetched ({error})") from error
    except (ValueError, OSError, RuntimeError) as error:
        if several := re.search(r"(?:available configs: |Available: )\[(.+)\]", str(error)):
            asked = "required" if config.subset is None else f"{config.subset!r} is none"
            raise ConfigurationError(f"corpus.subset: {asked}; {config.name} has {several[1]}") from error
        raise DataError(f"corpus.name={config.name}: no data set that can be read ({error})") from error


def _split(dataset: Mapping[str, Any], config: HuggingFaceCorpus) -> Any:
    if config.split not in dataset:
        known = ", ".join(map(str, dataset))
        raise ConfigurationError(f"corpus.split={config.split}: {config.name} has no such split, only {known}")
    return dataset[config.split]


def _length(rows: Any, split: str) -> int:
    if hasattr(rows, "__len__"):
        return len(rows)
    splits = rows.info.splits or {}
    return splits[split].num_examples or 0 if split in splits else 0


def _rows(rows: Any, config: HuggingFaceCorpus) -> Iterator[Mapping[str, Any]]:
    from datasets.exceptions import DatasetsError

    position = 0
    try:
        for row in rows:
            position += 1
            yield row
    except (DatasetsError, ValueError, OSError) as error:
        raise DataError(f"{config.name}, after row {position}: cannot be read ({error})") from error
    except TypeError as error:  # `datasets` has the types of all files from the first, and does not name the column
        types = {name: str(kind) for name, kind in zip(rows.features, rows.features.arrow_schema.types, strict=True)}
        names = ", ".join(repr(name) for name, kind in types.items() if str(error).endswith(f" to {kind}"))
        raise DataError(
            f"{config.name}, after row {position}: a column changes its type, {names or 'one of lists or objects'} "
            f"({error}); corpus=files reads JSON lines and looks at no other column"
        ) from error
