"""What it costs to compose and validate a sweep, beside `hydra.compose` of each of its jobs.

python benchmarks/compose.py [--seeds 25] [--rounds 3]
prints a Markdown table; ends with an error where the configurations differ.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from statistics import median
from typing import Any

import hydra
from omegaconf import OmegaConf
from tables import table

from paribus.checks import compose_command
from paribus.config.arguments import configuration_directory, parse
from paribus.config.schema import RunConfig
from paribus.config.validate import build_run


def main(seeds: int, rounds: int) -> None:
    """Print the table."""
    swept = ("-m", "experiment=demo", "scale=tiny", f"seed={','.join(map(str, range(seeds)))}")
    ours, theirs = [], []
    for _ in range(rounds):
        begun = time.perf_counter()
        jobs = compose_command(parse(swept)).jobs
        middle = time.perf_counter()
        expected = [composed(job.overrides) for job in jobs]
        ours.append(middle - begun)
        theirs.append(time.perf_counter() - middle)
        if expected != [job.config for job in jobs]:
            raise SystemExit("the configurations differ")
    rows = [["`compose_command`", f"{median(ours):.2f}"], ["`hydra.compose` of each job", f"{median(theirs):.2f}"]]
    sys.stdout.write(table([f"{len(jobs)} jobs, median of {rounds}", "s"], rows))


def composed(overrides: Sequence[str]) -> RunConfig:
    """The configuration that Hydra gives."""
    with hydra.initialize_config_dir(str(configuration_directory()), version_base="1.3"):
        plain: Any = OmegaConf.to_container(hydra.compose("config", list(overrides)), resolve=True)
    return build_run(plain)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=25)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    main(given.seeds, given.rounds)
