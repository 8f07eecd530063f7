"""What it costs to compose and validate a sweep, beside `hydra.compose` of each of its jobs.

python benchmarks/compose.py [--seeds 25] [--rounds 3]
prints a Markdown table; ends with an error where the configurations differ.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Sequence

import hydra
from omegaconf import OmegaConf

from paribus.checks import compose_command
from paribus.config.arguments import configuration_directory, parse
from paribus.config.schema import RunConfig
from paribus.config.validate import build_run

SWEEP = ("-m", "experiment=demo", "scale=tiny")


def main(seeds: int, rounds: int) -> None:
    """Print the table."""
    swept = (*SWEEP, "seed=" + ",".join(map(str, range(seeds))))
    ours, theirs = [], []
    for _ in range(rounds):
        begun = time.perf_counter()
        jobs = compose_command(parse(swept)).jobs
        ours.append(time.perf_counter() - begun)
        begun = time.perf_counter()
        expected = [_composed(job.overrides) for job in jobs]
        theirs.append(time.perf_counter() - begun)
        if expected != [job.config for job in jobs]:
            raise SystemExit("the configurations differ")
    lines = [f"| {len(jobs)} jobs, median of {rounds} | s |", "|---|---|"]
    lines += [
        f"| `compose_command` | {statistics.median(ours):.2f} |",
        f"| `hydra.compose` of each job | {statistics.median(theirs):.2f} |",
    ]
    sys.stdout.write("\n".join(lines) + "\n")


def _composed(overrides: Sequence[str]) -> RunConfig:
    with hydra.initialize_config_dir(str(configuration_directory()), version_base="1.3"):
        plain = OmegaConf.to_container(hydra.compose("config", list(overrides)), resolve=True)
    if not isinstance(plain, dict):
        raise TypeError("the composed configuration is not a mapping")
    return build_run({str(key): value for key, value in plain.items()})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=25)
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args()
    main(chosen.seeds, chosen.rounds)
