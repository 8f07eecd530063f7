"""Fields that a sweep gives several values although none changes what is computed."""

from collections.abc import Callable, Iterator, Sequence

from paribus.config.groups.model import EncoderDecoderModel
from paribus.config.identity import canonical, identity, leaves
from paribus.config.schema import RunConfig
from paribus.pipeline.prepared_run import PreparedRun
from paribus.reporting.fairness.equality import SEED


def idle_factors(runs: Sequence[PreparedRun]) -> Iterator[tuple[str, str]]:
    """(config path, what is wrong and what would be right) of each.

    Runs that differ in such a field alone are one run, which a table would show as several: of how many contexts a
    forward pass has, of devices, of output roots, of beams where no model translates; and so are values that say the
    same, `64K` and `64000`. A field that matters beside one of the other choices alone is none.
    """
    values: dict[str, dict[str, None]] = {}
    for run in runs:
        for override in run.job.overrides:
            key, _, value = override.partition("=")
            values.setdefault(key, {})[value] = None
    if twice := _one_run_at_two_seeds(runs):
        yield twice
    idle = set.intersection(*(set(_idle_fields(run.job.config)) for run in runs)) if runs else set()
    for key, given in values.items():
        made = _without(key.lstrip("+")) if key.lstrip("+") in idle else _run_id
        for same in _alike(key, list(given), runs, made) if key != SEED and len(given) > 1 else ():
            remedy = "leave it out of the sweep" if len(same) == len(given) else "leave one of them out"
            yield key.lstrip("+"), f"{' and '.join(same)} make the same run, whatever else is chosen here; {remedy}"


def _idle_fields(config: RunConfig) -> Iterator[str]:
    """Config paths of identity fields that nothing reads beside the other choices, such as how a cosine ends where the
    schedule is none; what they are set to is part of keys and tables all the same.
    """
    if config.training.schedule != "cosine":
        yield "training.min_learning_rate_ratio"
    if config.training.warmup_steps is not None:
        yield "training.warmup_share"
    if not isinstance(config.model, EncoderDecoderModel):
        yield from (f"evaluation.{name}" for name in ("translations", "beams", "length_penalty"))


def _run_id(run: PreparedRun) -> str:
    return run.run_id


def _without(path: str) -> Callable[[PreparedRun], str]:
    """What a run is but for one field, whose value other fields may have by interpolation."""
    return lambda run: canonical([leaf for leaf in leaves(identity(run.job.config)) if leaf[0] != path])


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


def _alike(
    key: str, given: Sequence[str], runs: Sequence[PreparedRun], identified: Callable[[PreparedRun], str]
) -> list[list[str]]:
    """Values of the key, as they are given, that are always the same run: all others beside them being equal."""
    made: dict[str, dict[tuple[str, ...], str]] = {value: {} for value in given}
    for run in runs:
        others = tuple(override for override in run.job.overrides if override.partition("=")[0] != key)
        for override in run.job.overrides:
            if override.partition("=")[0] == key:
                made[override.partition("=")[2]][others] = identified(run)
    found: list[list[str]] = []
    for value, by_others in made.items():
        for same in found:
            shared = by_others.keys() & made[same[0]].keys()
            if shared and all(by_others[others] == made[same[0]][others] for others in shared):
                same.append(value)
                break
        else:
            found.append([value])
    return [same for same in found if len(same) > 1]
