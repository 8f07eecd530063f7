"""How often each stage of an output root was made and how long it took, from the records of its artefacts.

python benchmarks/stage_times.py [ROOT]     ROOT is paribus_runs by default; prints a Markdown table.
"""

import json
import statistics
import sys
from collections import defaultdict
from pathlib import Path

from paribus.pipeline.graph import STAGES


def main(root: Path) -> None:
    """Print the table."""
    seconds: dict[str, list[float]] = defaultdict(list)
    for path in sorted((root / "artifacts").glob("*/*/record.json")):
        seconds[path.parent.parent.name].append(json.loads(path.read_text(encoding="utf-8"))["seconds"])
    lines = ["| stage | made | median s | total s |", "|---|---|---|---|"]
    for name in STAGES:
        taken = seconds.get(name, [])
        if taken:
            lines.append(f"| {name} | {len(taken)} | {statistics.median(taken):.1f} | {sum(taken):.1f} |")
    total = sum(sum(taken) for taken in seconds.values())
    lines.append(f"| all | {sum(map(len, seconds.values()))} | | {total:.1f} |")
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("paribus_runs"))
