"""Tokenized BLEU beside that of Moses' own scripts: `tokenizer.perl -a`, then `multi-bleu.perl`.

python benchmarks/moses_bleu.py --moses DIR --pairs FILE [--languages en de] [--sentences 1000 10000]
prints a Markdown table. DIR is a clone of moses-smt/mosesdecoder; it takes perl. FILE has JSON lines, gzipped, with a
field for each language. The translations are the references with words taken out and exchanged by a seed.
"""

import argparse
import gzip
import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tables import table

from paribus.evaluation.translation import tokenized_bleu


def main(moses: Path, pairs: Path, languages: Sequence[str], numbers: Sequence[int]) -> None:
    """Print the table."""
    with gzip.open(pairs, "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    scores = [_row(moses / "scripts", language, rows[:number]) for language in languages for number in numbers]
    sys.stdout.write(table(["language", "sentences", "tokenized_bleu", "multi-bleu.perl"], scores))


def _row(scripts: Path, language: str, rows: Sequence[dict[str, str]]) -> list[str]:
    references = [" ".join(row[language].split()) for row in rows]
    translations = [_changed(text, random.Random(place)) for place, text in enumerate(references)]
    ours = tokenized_bleu(translations, references, language).score
    cut = [_tokenized(scripts, language, texts) for texts in (translations, references)]
    return [language, f"{len(rows):,}", f"{ours:.4f}", _multi_bleu(scripts, *cut)]


def _changed(text: str, draw: random.Random) -> str:
    words = text.split()
    kept = [word for word in words if draw.random() > 0.05] or words
    return " ".join(draw.choice(words) if draw.random() < 0.2 else word for word in kept)


def _tokenized(scripts: Path, language: str, texts: Sequence[str]) -> str:
    return _perl([scripts / "tokenizer/tokenizer.perl", "-q", "-a", "-l", language], "\n".join(texts) + "\n")


def _multi_bleu(scripts: Path, translations: str, references: str) -> str:
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "references"
        file.write_text(references, encoding="utf-8")
        told = _perl([scripts / "generic/multi-bleu.perl", file], translations)
    return told.removeprefix("BLEU = ").partition(",")[0]


def _perl(command: Sequence[Path | str], text: str) -> str:
    done = subprocess.run(
        ["perl", *map(str, command)], input=text, capture_output=True, encoding="utf-8", check=True, timeout=600
    )
    return done.stdout


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--moses", type=Path, required=True, help="clone of moses-smt/mosesdecoder")
    parser.add_argument("--pairs", type=Path, required=True, help="JSON lines, gzipped, a field for each language")
    parser.add_argument("--languages", nargs="+", default=["en", "de"])
    parser.add_argument("--sentences", nargs="+", type=int, default=[1000, 10000])
    given = parser.parse_args()
    main(given.moses, given.pairs, given.languages, given.sentences)
