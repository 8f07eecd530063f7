"""What an engine costs: time a shard, and bytes of results a second through it.

python benchmarks/engine.py [--workers 2] [--rounds 3] [--engines threads processes ray]

Threads and processes are those of `engine=local`; `ray` is `engine=ray` started on this machine. *First result* is from
opening the engine to the first result of its first map, *a map* a map of one shard a worker in an engine that is open
already. Shards do nothing, or give a megabyte back.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from paribus.config.groups.execution import EngineConfig, LocalEngineConfig, RayEngineConfig
from paribus.engine import Engine
from paribus.engine.local import open_engine

SHARDS, LARGE_SHARDS, LARGE = 2_000, 100, 2**20
ENGINES: dict[str, tuple[Callable[..., EngineConfig], bool]] = {
    "threads": (LocalEngineConfig, True),
    "processes": (LocalEngineConfig, False),
    "ray": (RayEngineConfig, False),
}


@dataclass
class Cost:
    """Seconds of each round."""

    first: list[float] = field(default_factory=list)
    map: list[float] = field(default_factory=list)
    shard: list[float] = field(default_factory=list)
    byte: list[float] = field(default_factory=list)


def nothing(shard: int) -> int:
    """A shard without work."""
    return shard


def large(size: int, shard: int) -> bytes:
    """A shard with a large result."""
    return bytes([shard % 256]) * size


def seconds(engine: Engine, function: Callable[[int], object], shards: int, *, threads: bool) -> float:
    """How long a map takes."""
    start = time.perf_counter()
    count = sum(1 for _ in engine.map(function, range(shards), releases_gil=threads))
    assert count == shards
    return time.perf_counter() - start


def measure(name: str, workers: int, rounds: int) -> Cost:
    """The costs of one engine."""
    config, threads = ENGINES[name]
    cost = Cost()
    with tempfile.TemporaryDirectory() as shared:
        for _ in range(rounds):
            start = time.perf_counter()
            with open_engine(config(workers=workers), Path(shared)) as engine:
                next(iter(engine.map(nothing, range(1), releases_gil=threads)))
                cost.first.append(time.perf_counter() - start)
                empty = seconds(engine, nothing, workers, threads=threads)
                many = seconds(engine, nothing, SHARDS, threads=threads)
                heavy = seconds(engine, partial(large, LARGE), LARGE_SHARDS, threads=threads)
            cost.map.append(empty)
            cost.shard.append(max(0.0, many - empty) / (SHARDS - workers))
            cost.byte.append(max(1e-12, heavy - empty) / (LARGE_SHARDS * LARGE))
    return cost


def main() -> None:
    """Measure and print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--engines", nargs="+", choices=list(ENGINES), default=list(ENGINES))
    options = parser.parse_args()
    write = sys.stdout.write
    write(f"| engine, {options.workers} workers | first result s | a map s | ms a shard | results MB/s |\n")
    write("|---|---:|---:|---:|---:|\n")
    for name in options.engines:
        cost = measure(name, options.workers, options.rounds)
        first, whole, shard, byte = (
            statistics.median(values) for values in (cost.first, cost.map, cost.shard, cost.byte)
        )
        write(f"| {name} | {first:.2f} | {whole:.2f} | {1000 * shard:.3f} | {1e-6 / byte:,.0f} |\n")


if __name__ == "__main__":
    main()
