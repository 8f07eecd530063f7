"""Fields that a sweep gives several values although none changes what is computed."""

from collections.abc import Iterator, Sequence

from paribus.pipeline.prepared_run import PreparedRun
from paribus.reporting.fairness.equality import SEED


def idle_factors(runs: Sequence[PreparedRun]) -> Iterator[tuple[str, str]]:
    """(config path, what is wrong and what would be right) of each.

    Runs that differ in such a field alone are one run, which a table would show as several: of how many contexts a
    forward pass has, of devices, of output roots. A field that matters beside one of the other choices alone is none.
    """
    values: dict[str, dict[str, None]] = {}
    for run in runs:
        for override in run.job.overrides:
            key, _, value = override.partition("=")
            values.setdefault(key, {})[value] = None
    if same := _one_run_at_two_seeds(runs):
        yield same
    for key, given in values.items():
        if key != SEED and len(given) > 1 and _is_idle(key, runs):
            listed = " and ".join(given)
            yield (
                key.lstrip("+"),
                f"{listed} make the same run, whatever else is chosen here; leave it out of the sweep",
            )


def _one_run_at_two_seeds(runs: Sequence[PreparedRun]) -> tuple[str, str] | None:
    """A run that a sweep of the seed gives twice: to a table it would be two models that agree to the last bit."""
    seeds: dict[str, dict[int, None]] = {}
    for run in runs:
        seeds.setdefault(run.run_id, {})[run.job.config.seed] = None
    for run in runs:
        if len(found := seeds[run.run_id]) > 1:
            chosen = " ".join(text for text in run.job.overrides if text.partition("=")[0] != SEED)
            return SEED, (
                f"{' and '.join(map(str, found))} make the same run{f' with {chosen}' if chosen else ''}, which draws "
                "nothing by it; leave the seed out of the sweep, or fewer of seeds.* fixed"
            )
    return None


def _is_idle(key: str, runs: Sequence[PreparedRun]) -> bool:
    """Whether runs that differ in the key alone are always the same run."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for run in runs:
        others = tuple(override for override in run.job.overrides if override.partition("=")[0] != key)
        alike.setdefault(others, []).append(run.run_id)
    several = [found for found in alike.values() if len(found) > 1]
    return bool(several) and all(len(set(found)) == 1 for found in several)
