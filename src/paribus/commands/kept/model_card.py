"""The card of a model that leaves an output root: its scores, how to load it, and how it was made."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

from paribus.commands.kept import card_words
from paribus.config.units import format_count, format_size

CARD = "README.md"


@dataclass(frozen=True)
class Origin:
    """What is known of a checkpoint."""

    run_id: str
    record: Mapping[str, Any]
    step: int
    command: str | None
    """As it would be typed; None where the sweep of the run is not on record."""
    training: Mapping[str, Any]
    """Record of its artefact."""
    scores: Mapping[str, float]
    """Numbers of this checkpoint, as they were logged."""

    @property
    def early(self) -> bool:
        """Whether the training went on after it."""
        return bool(self.step < self.training["result"]["steps"])


def model_card(origin: Origin, directory: Path, name: str) -> str:
    """The card of the model in `directory`, which is to be called `name`."""
    parts = (
        _head(origin, directory, name),
        _model(origin, directory),
        _loading(directory, name),
        _scores(origin),
        _making(origin),
    )
    return "\n".join(line for part in parts for line in part) + "\n"


def _head(origin: Origin, directory: Path, name: str) -> Iterator[str]:
    result = origin.training["result"]
    yield from ("---", "library_name: transformers", "tags:", "- paribus", "---", "", f"# {name}", "")
    kind = "An encoder-decoder" if _has_encoder(directory) else "A language model"
    yield (
        f"{kind} of {format_count(result['parameters'])} parameters, trained on "
        f"{format_count(result['tokens'])} tokens, {format_size(result['text_bytes'])} of text, with paribus, which "
        f"compares tokenizers, encodings and document orders. These are its weights after step {origin.step:,} of "
        f"{result['steps']:,}{', which has read a part of that alone' if origin.early else ''}."
    )
    yield from ("", "No licence is given here: whoever publishes the model says which.", "")


def _model(origin: Origin, directory: Path) -> Iterator[str]:
    yield from ("## Model", "")
    configuration, result = _configuration(directory), origin.training["result"]
    yield from card_words.made_of(origin.record["identity"], configuration, result, early=origin.early)


def _has_encoder(directory: Path) -> bool:
    return not str(_configuration(directory)["architectures"][0]).endswith("ForCausalLM")


def _configuration(directory: Path) -> Mapping[str, Any]:
    """That of transformers."""
    found: Mapping[str, Any] = json.loads((directory / "config.json").read_text(encoding="utf-8"))
    return found


def _loading(directory: Path, name: str) -> Iterator[str]:
    """The lines that load it, which a test runs."""
    model = "AutoModelForSeq2SeqLM" if _has_encoder(directory) else "AutoModelForCausalLM"
    alone = (directory / "tokenizer.json").is_file()
    yield from ("## Loading", "", "```python", f"from transformers import {model}, AutoTokenizer")
    if not alone:
        yield "import paribus.tokenization.export  # AutoTokenizer learns of ParibusTokenizer"
    yield from ("", f'tokenizer = AutoTokenizer.from_pretrained("{name}")')
    yield from (f'model = {model}.from_pretrained("{name}")', "```", "")
    if alone:
        return
    yield (
        "`tokenizer.json` cannot say what this tokenizer does, so `AutoTokenizer` alone refuses it: it needs the "
        "package paribus and the import above. No code is in this directory, and nothing needs `trust_remote_code`."
    )
    yield "Without transformers, the same tokenizer is read by these two lines of the package paribus:"
    yield from ("", "```python", "from paribus.tokenization import Tokenizer")
    yield from (f'tokenizer = Tokenizer.load("{name}/tokenizer")', "```", "")


def _scores(origin: Origin) -> Iterator[str]:
    yield from ("## Scores", "")
    if not origin.scores:
        yield from ("This checkpoint was not scored.", "")
        return
    yield from card_words.scores(origin.scores)


def _making(origin: Origin) -> Iterator[str]:
    provenance = origin.training["provenance"]
    git = provenance["git"] or {}
    changed = " with uncommitted changes" if git.get("diff") or git.get("changes") or git.get("untracked") else ""
    yield from ("## How it was made", "")
    if origin.command is not None:
        yield from ("```bash", origin.command, "```", "")
    yield f"- paribus run `{origin.run_id}` (`{origin.record['name']}`)"
    yield f"- paribus {provenance['paribus']}, commit {git.get('commit', 'unknown')}{changed}"
    yield f"- Python {provenance['python']}, " + ", ".join(
        f"{name} {provenance['packages'][name]}" for name in ("torch", "transformers") if name in provenance["packages"]
    )
    yield f"- computed on {', then '.join(origin.training['result'].get('computed_on', ['an unknown device']))}"
    yield f"- `paribus rerun {origin.run_id}` in its output root makes the run again and compares every byte"
    yield from (
        "",
        "The configuration, as far as it may decide a number, with the digests of the files that it was made from; "
        "`paribus explain training.schedule` says what a field means:",
        "",
    )
    yield from ("```yaml", yaml.safe_dump(dict(origin.record["identity"]), sort_keys=True, allow_unicode=True).rstrip())
    yield "```"
