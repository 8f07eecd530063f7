"""The order of a table's rows, and which row each is compared with."""

from collections.abc import Iterator, Mapping, Sequence

from paribus.config.groups.experiment import TableConfig
from paribus.config.validate import unknown
from paribus.errors import ConfigurationError

Labels = tuple[str, ...]


def factors_of(factors: Sequence[str], table: TableConfig) -> tuple[str, ...]:
    """The factors in the order of the label columns: those of `table.rows`, then the others.

    Raises:
        ConfigurationError: the experiment file names a factor that the runs do not have.
    """
    for path, message in unknown_factors(factors, table):
        raise ConfigurationError(f"{path}: {message}")
    return tuple(dict.fromkeys((*table.rows, *factors)))


def unknown_factors(factors: Sequence[str], table: TableConfig) -> Iterator[tuple[str, str]]:
    """(path, what is wrong) of each factor that the experiment file names and that the runs do not have."""
    named = {"rows": table.rows, "order": table.order or {}, "baseline": table.baseline or {}}
    for block, names in named.items():
        for name in names:
            if name not in factors:
                yield f"experiment.table.{block}", f"factor {unknown(name, list(factors))}"


def ordered(labels: Sequence[Labels], factors: Sequence[str], table: TableConfig) -> list[Labels]:
    """Labels grouped by the first factor, then the second, and so on.

    Each factor's labels are in the order of `table.order`, and those that it does not name in that of appearance.
    """
    places: list[dict[str, int]] = []
    for index, factor in enumerate(factors):
        names = dict.fromkeys((table.order or {}).get(factor, ()))
        names |= dict.fromkeys(row[index] for row in labels)
        places.append({name: place for place, name in enumerate(names)})
    return sorted(labels, key=lambda row: [place[label] for place, label in zip(places, row, strict=True)])


def baselines(labels: Sequence[Labels], factors: Sequence[str], table: TableConfig) -> list[int | None]:
    """For each row the place of the row that it is compared with; None for such a row itself, and where there is none.

    Raises:
        ConfigurationError: no row has the labels of `table.baseline`.
    """
    wanted = table.baseline or {}
    if not wanted:
        return [None, *(0 for _ in labels[1:])]
    places = {row: place for place, row in enumerate(labels)}
    found = [places.get(_baseline_of(row, factors, wanted)) for row in labels]
    if all(place is None for place in found):
        asked = ", ".join(f"{factor}: {label}" for factor, label in wanted.items())
        known = "; ".join(", ".join(row) for row in labels[:10])
        remedy = "add an arm with it, or compare with the first row: experiment.table.baseline=null"
        raise ConfigurationError(f"experiment.table.baseline: no row has {asked}; rows: {known}; {remedy}")
    return [None if base == place else base for place, base in enumerate(found)]


def _baseline_of(row: Labels, factors: Sequence[str], wanted: Mapping[str, str]) -> Labels:
    return tuple(wanted.get(factor, label) for factor, label in zip(factors, row, strict=True))
