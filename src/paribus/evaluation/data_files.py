"""Files of what is scored: finding and reading `<data>/<task>/<split>.jsonl[.gz|.zst]`, with errors by file and line.

They are benchmarks, sets of texts for bits per byte, test sets of translation and corpora segmented by hand. Benchmarks
of the Hugging Face hub are written as the files that every other benchmark is read from. So an item is the same
wherever its record comes from, and what was fetched once needs no network again.
"""

import json
import re
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, time, timedelta
from decimal import Decimal
from functools import partial
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from paribus.corpus.paths import compression_of
from paribus.corpus.readers import ArchiveError, Record, RecordProblem, checked, open_decompressed
from paribus.errors import ConfigurationError, DataError, Problem
from paribus.evaluation.heldout import TextPair
from paribus.evaluation.items import AnyItem, Benchmark, Fields, Hub, ItemSet, block, entry, split_pool, string, text
from paribus.stage import cache_alone_without_network

FEWSHOT_SPLIT = "train"
COMPRESSIONS = ("", ".gz", ".zst")
T = TypeVar("T")


@dataclass(frozen=True)
class DataFile:
    """The file below `evaluation.data` that holds what is scored."""

    owner: str
    """The scored task or set, in words: `task boolq`."""
    directory: str
    names: tuple[str, ...]
    """Names of the file without the suffix of a compression; one of them is enough."""
    otherwise: str = ""
    """Another remedy where it is missing."""

    def find(self, data: str | None) -> Path:
        """Path of the file; ConfigurationError when `evaluation.data` is null, DataError when that has no such file."""
        if data is None:
            # An experiment's tasks stand whatever group of the evaluation a command chooses.
            task = self.owner.startswith("task ")
            without = "; evaluation.source=hub fetches into it, evaluation.tasks=[] scores held-out text alone"
            needed = f"{self.owner} needs the directory that holds {self.directory}/{self.names[0]}[.gz]"
            message = f"{needed}; it is null{without if task else ''}"
            raise ConfigurationError(Problem("evaluation.data", message))
        if not Path(data).is_dir():
            raise DataError(Problem("evaluation.data", f"{data} is not a directory ({self.owner} reads it)"))
        path = self.find_in(Path(data))
        if path is None:
            expected = " or ".join(str(Path(data) / self.directory / name) for name in self.names)
            message = f"{self.owner} needs {expected} or the same with .gz or .zst{self.otherwise}"
            raise DataError(Problem("evaluation.data", message))
        return path

    def find_in(self, data: Path) -> Path | None:
        """Path of the file below `data`, None where there is none; DataError when there are several."""
        names = [f"{name}{suffix}" for name in self.names for suffix in COMPRESSIONS]
        paths = [path for name in names if (path := data / self.directory / name).is_file()]
        if len(paths) > 1:
            raise DataError(Problem("evaluation.data", f"both {paths[0]} and {paths[1].name} exist; keep one"))
        return paths[0] if paths else None


def benchmark_file(data: str | None, benchmark: Benchmark) -> Path:
    """The scored file; ConfigurationError when `evaluation.data` is null, DataError when it has no such file."""
    hub = "; evaluation.source=hub fetches it" if benchmark.hub else ""
    names = (f"{benchmark.split}.jsonl",)
    return DataFile(f"task {benchmark.name}", benchmark.directory, names, hub).find(data)


def fewshot_file(scored: Path, benchmark: Benchmark) -> Path | None:
    """The training split beside the scored file, where there is one; examples in the prompt are drawn from it."""
    return split_file(scored.parent.parent, benchmark.directory, FEWSHOT_SPLIT)


def split_file(data: Path, directory: str, split: str) -> Path | None:
    """`<data>/<directory>/<split>.jsonl` or the same with .gz or .zst; DataError when there are several."""
    return DataFile("", directory, (f"{split}.jsonl",)).find_in(data)


def read_benchmark(path: Path, benchmark: Benchmark) -> list[AnyItem]:
    """All items of a file in order, named `<split>/<line>`. DataError names file and line."""
    return list(read_lines(path, f"task {benchmark.name}", benchmark.item))


def benchmark_items(data: str | None, benchmark: Benchmark, shots: int) -> ItemSet:
    """The items of a benchmark's files and the pool of their examples, for prompts of at most so many."""
    scored = benchmark_file(data, benchmark)
    training = fewshot_file(scored, benchmark)
    examples = None if training is None else read_benchmark(training, benchmark)
    return split_pool(read_benchmark(scored, benchmark), examples, shots)


def read_lines(path: Path, owner: str, parse: Callable[[str, Fields], T]) -> Iterator[T]:
    """Parse the name `<split>/<line>` and the record of each line; there is one at least.

    DataError names file and line.
    """
    split, number = path.name.split(".")[0], 0
    for number, line in _decoded_lines(path):
        try:
            record = json.loads(line)
            if not isinstance(record, dict):
                raise DataError(f"a JSON object was expected, not {type(record).__name__}")
            parsed = parse(f"{split}/{number}", record)
        except (json.JSONDecodeError, DataError) as error:
            reason = f"not JSON: {error}" if isinstance(error, json.JSONDecodeError) else error
            raise DataError(f"{path}, line {number}: {reason}") from error
        yield parsed
    if not number:
        raise DataError(f"{path} is empty; {owner} needs its lines there, each a JSON object")


def _decoded_lines(path: Path) -> Iterator[tuple[int, str]]:
    number = 0
    try:
        with path.open("rb") as raw:
            for number, line in enumerate(open_decompressed(path, raw, compression_of(path)), start=1):
                if line.strip():
                    # A byte order mark at the start of the file is none of its text, as in a corpus.
                    yield number, line.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}, line {number}: invalid UTF-8: {error}") from error
    except ArchiveError as error:
        raise DataError(f"{error}; it stops after line {number}") from error


TEXT_SET_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
"""Allowed names of a set: it names a directory, a metric and a column."""


HELDOUT_CLEAN, HELDOUT_CONCATENATED = "heldout_clean", "heldout_concatenated"
"""Sets that a run has without naming them: no other set may have these names."""


def concatenated_name(name: str) -> str:
    """Name of a set whose texts are read end to end."""
    return f"{name}_concatenated"


def text_file(name: str) -> DataFile:
    """The file with the texts of a set."""
    return DataFile(f"text set {name}", name, ("test.jsonl",), "; or leave it out of evaluation.texts")


def read_texts(path: Path) -> Iterator[tuple[str, str]]:
    """(id, text) of each document in order, named `test/<line>` where the file's first has no `id`.

    DataError names file and line of what is no text, is empty, or repeats an id; and the file where it is empty.
    """
    named: bool | None = None
    seen: set[str] = set()

    def parse(name: str, record: Fields) -> tuple[str, str]:
        nonlocal named
        named = "id" in record if named is None else named
        document = str(entry(record, "id")) if named else name
        result = checked(Record(0, document, string(record, "text")))
        if isinstance(result, RecordProblem):
            raise DataError(result.message)
        if document in seen:
            raise DataError(f"the id {document!r} occurred before")
        seen.add(document)
        return document, result.text

    return read_lines(path, "a set of texts", parse)


TRANSLATION = "translation"
"""The task of held-out pairs, which is no set of its own."""


@dataclass(frozen=True)
class TranslationSet:
    """Pairs read from `<data>/<directory>/<split>.jsonl[.gz|.zst]`, by two languages as fields of the record."""

    name: str
    source: str
    """Language that is read, by its code."""
    target: str
    """Language that is written."""
    directory: str
    hub: Hub | None = None
    split: str = "test"
    """Split that is scored, and its name on the hub."""
    others: tuple[str, ...] = ()
    """Other names that its file goes by."""

    @property
    def file(self) -> DataFile:
        """The file with its pairs."""
        names = tuple(f"{name}.jsonl" for name in (self.split, *self.others))
        return DataFile(f"task {self.name}", self.directory, names, "; evaluation.source=hub fetches it")

    def reverses(self, other: "TranslationSet") -> bool:
        """True if it has the pairs of another set in the other direction."""
        return (self.directory, self.source) == (other.directory, other.target)


def _both_ways(corpus: str, other: str, hub: Hub, files: tuple[str, ...] = ()) -> Iterator[TranslationSet]:
    """A set from English and one into it, from the same file."""
    for source, target in (("en", other), (other, "en")):
        yield TranslationSet(f"{corpus}_{source}_{target}", source, target, f"{corpus}_en_{other}", hub, others=files)


TRANSLATIONS: Mapping[str, TranslationSet] = MappingProxyType(
    {
        chosen.name: chosen
        for chosen in (
            *_both_ways("wmt14", "de", Hub("wmt/wmt14", train=False, files="de-en/{split}-*.parquet")),
            *_both_ways("wmt14", "fr", Hub("wmt/wmt14", train=False, files="fr-en/{split}-*.parquet")),
            *_both_ways("multi30k", "de", Hub("bentrevett/multi30k", train=False), ("test_2016_flickr",)),
        )
    }
)


def read_translations(path: Path, chosen: TranslationSet) -> list[TextPair]:
    """All pairs of a file in order, named `<split>/<line>`. DataError names file and line."""

    def parse(name: str, record: Fields) -> TextPair:
        languages = f"the texts {chosen.source} and {chosen.target}"
        sides = block(record, "translation", languages) if "translation" in record else record  # as the hub has it
        return TextPair(name, text(sides, chosen.source), text(sides, chosen.target))

    return list(read_lines(path, f"task {chosen.name}", parse))


SEGMENTATIONS: Mapping[str, DataFile] = MappingProxyType(
    {name: DataFile(f"task {name}", name, ("test.seg.txt",)) for name in ("pku", "msr")}
)
"""Files by task: lines of words separated by spaces, as the SIGHAN bakeoffs have them."""


def segmented(tasks: Sequence[str]) -> tuple[str, ...]:
    """The tasks whose words tokens are compared with."""
    return tuple(name for name in tasks if name in SEGMENTATIONS)


Splits = Mapping[str, Iterable[Mapping[str, Any]]]
"""The records of a data set by split."""


def fetch_benchmark(data: Path, benchmark: Benchmark | TranslationSet) -> None:
    """Write the scored split, and the training split that examples come from, below `data`, unless the scored is there.

    Raises DataError where the benchmark is on no hub, or its data set neither there nor in the Hugging Face cache.
    """
    hub, scored, directory = benchmark.hub, benchmark.split, benchmark.directory
    file = benchmark.file if isinstance(benchmark, TranslationSet) else DataFile("", directory, (f"{scored}.jsonl",))
    if file.find_in(data) is not None:
        return
    if hub is None:
        message = f"task {benchmark.name} is on no hub data set known here; give {data / directory / scored}.jsonl"
        raise DataError(Problem("evaluation.source", message))
    elsewhere = hub.train and hub.train_path is not None
    if elsewhere and isinstance(benchmark, Benchmark) and lacks_training(data, benchmark):
        fetch_training(data, benchmark)
    examples = [FEWSHOT_SPLIT] if hub.train and not elsewhere else []
    write_splits(data, directory, (_load_splits(hub, benchmark.name, scored), hub.path), scored, examples)


def lacks_training(data: Path, benchmark: Benchmark) -> bool:
    """True if the hub has a training split of the benchmark that is not below `data`."""
    trained = benchmark.hub is not None and benchmark.hub.train
    return trained and split_file(data, benchmark.directory, FEWSHOT_SPLIT) is None


def fetch_training(data: Path, benchmark: Benchmark) -> None:
    """Write the training split alone, where the data set has one; DataError where that cannot be had."""
    if benchmark.hub is not None:
        splits = _load_splits(_training_hub(benchmark.hub), benchmark.name, FEWSHOT_SPLIT)
        write_some(data, benchmark.directory, splits, [FEWSHOT_SPLIT])


def training_set(benchmark: Benchmark) -> str | None:
    """The data set of the hub that has the training split, by name and configuration; None for a directory here."""
    hub = None if benchmark.hub is None else _training_hub(benchmark.hub)
    return None if hub is None or Path(hub.path).is_dir() else _hub_name(hub)


def _training_hub(hub: Hub) -> Hub:
    return replace(hub, path=hub.train_path or hub.path)


def write_splits(
    data: Path, directory: str, data_set: tuple[Splits, str], scored: str, examples: Sequence[str] = ()
) -> None:
    """Write the scored split of a data set, and before it those of examples that it has, where they are not there.

    `data_set` has its name too. DataError where it has no such split.
    """
    splits, name = data_set
    if scored not in splits:
        message = f"{name} has no split {scored} for task {directory}; it has {', '.join(map(str, splits))}"
        raise DataError(Problem("evaluation.source", message))
    write_some(data, directory, splits, [*examples, scored])


def write_some(data: Path, directory: str, splits: Splits, names: Collection[str]) -> None:
    """Write those of the named splits that a data set has, where they are not there."""
    for split in names:
        if split in splits and split_file(data, directory, split) is None:
            _write_records(data / directory / f"{split}.jsonl", splits[split])


def fetch_archive(data: Path, directory: str, split: str, address: str) -> None:
    """Write JSON lines at `address` of the hub as `<data>/<directory>/<split>.jsonl`, unless that split is there.

    `address` may be inside an archive (`zip://FILE::https://...`). Raises DataError where it cannot be had.
    """
    if split_file(data, directory, split) is None:
        records = load_data_set(address, directory, "json", data_files={split: address}, split=split)
        _write_records(data / directory / f"{split}.jsonl", records)


def _load_splits(hub: Hub, task: str, split: str) -> Splits:
    name = _hub_name(hub)
    options: dict[str, Any] = {}
    if hub.files:  # what the hub knows of the whole data set does not hold for a split of it
        options = {"data_files": {split: hub.files.format(split=split)}, "verification_mode": "no_checks"}
    streaming = hub.examples is not None
    splits: Splits = load_data_set(name, task, hub.path, hub.name, streaming=streaming, **options)
    if not streaming:
        return splits
    most = {FEWSHOT_SPLIT: hub.examples}
    return {part: _stream_records(islice(records, most.get(part)), name, task) for part, records in splits.items()}


def _hub_name(hub: Hub) -> str:
    return f"{hub.path} ({hub.name})" if hub.name else hub.path


def load_data_set(named: str, task: str, *arguments: Any, **options: Any) -> Any:
    """Load by `datasets.load_dataset`; DataError with the name of the data set and its task."""
    import datasets

    try:
        with cache_alone_without_network():
            return datasets.load_dataset(*arguments, **options)
    except Exception as error:  # the library, the hub's client and its HTTP client have no class of errors in common
        raise _download_error(named, task, error) from error


def _download_error(named: str, task: str, error: Exception) -> DataError:
    from datasets.exceptions import DatasetsError

    why, cause = "is neither reachable nor in the Hugging Face cache; connect once, or", error
    if isinstance(error, DatasetsError) and not isinstance(error, OSError):
        why, cause = "cannot be read;", error.__cause__ or error  # such an error says less than its cause
    needed = f"task {task} needs the hub's {named}, which {why} give its files with evaluation.source=files"
    return DataError(Problem("evaluation.source", f"{needed} ({' '.join(str(cause).split())})"))


def _stream_records(records: Iterable[Mapping[str, Any]], named: str, task: str) -> Iterator[Mapping[str, Any]]:
    try:
        yield from records
    except Exception as error:  # as in `load_data_set`
        raise _download_error(named, task, error) from error


def _write_records(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    """Write the file, unless another process has done so meanwhile: whoever reads that would see it change."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_suffix(f".{uuid.uuid4().hex}.tmp")
    try:
        with aside.open("w", encoding="utf-8", newline="\n") as file:
            for record in records:
                file.write(json.dumps(record, ensure_ascii=False, default=partial(_as_text, path)) + "\n")
        if not path.exists():
            aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)


def _as_text(path: Path, value: object) -> str:
    """A value that JSON has no form for, as lm-eval's templates write it; DataError where that is no text."""
    if isinstance(value, date | time | timedelta | Decimal):
        return str(value)
    reason = f"{path} cannot be written, since its data set has values of {type(value).__name__}, which are no text"
    raise DataError(
        Problem("evaluation.source", f"{reason}; give that file with evaluation.source=files, without them")
    )
