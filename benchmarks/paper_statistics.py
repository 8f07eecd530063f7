"""The statistics of the LBPE and Scaffold-BPE papers on a corpus, ours beside theirs.

python benchmarks/paper_statistics.py --corpus FILE [--vocabulary 32000 64000 128000] [--output FILE]

A corpus is a file that `corpus=files` reads. BPE and Scaffold-BPE are trained on all of it, with characters as units
and the pre-tokens of GPT-2 with single digits, and the same text is encoded: by merge rank and longest-first.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from papers.claims import claims_table
from papers.measured import Measured
from papers.tables import sections
from texts import documents


def report(name: str, texts: Sequence[str], sizes: Sequence[int]) -> str:
    """All tables of `texts` in Markdown, the claims first."""
    measured = [Measured.of(texts, size) for size in sizes]
    size = sum(len(text.encode("utf-8")) for text in texts)
    parts = [("Claims", claims_table(measured)), *sections(measured)]
    body = "\n".join(f"### {title}\n\n{table}" for title, table in parts)
    return f"## {name}: {len(texts):,} documents, {size:,} bytes\n\n{body}"


def main(given: argparse.Namespace) -> None:
    """Print the tables."""
    texts = list(documents(given.corpus))
    written = report(given.corpus.name.partition(".")[0], texts, given.vocabulary)
    sys.stdout.write(written)
    if given.output:
        given.output.write_text(written, encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--vocabulary", type=int, nargs="+", default=[32_000], help="tokens; may be several sizes")
    parser.add_argument("--output", type=Path, help="file for the tables")
    main(parser.parse_args())
