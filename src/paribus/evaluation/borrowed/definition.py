"""What a task of lm-eval's or of the user's is: its YAML, which of it can be scored here, and what it depends on."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

from paribus.evaluation.borrowed.yaml_files import Function, functions_in, harness_folder, read_yaml
from paribus.evaluation.suites.texts import NAME

METRICS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "multiple_choice": ("acc", "acc_norm", "acc_bytes", "exact_match"),
        "loglikelihood": ("acc", "perplexity"),
        "generate_until": ("exact_match",),
    }
)
"""By kind of task the metrics of lm-eval that are means over items; others are left out."""
_BY_DEFAULT: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "multiple_choice": ("acc", "acc_norm"),
        "loglikelihood": ("perplexity", "acc"),
        "generate_until": ("exact_match",),
    }
)
"""What lm-eval takes where a task names no metric."""
_ELSEWHERE: Mapping[str, str] = MappingProxyType(
    {
        "class": "is written in Python",
        "process_results": "computes its measures in Python (process_results)",
        "custom_dataset": "makes its data in Python (custom_dataset)",
        "use_prompt": "takes its prompt from another package (use_prompt)",
        "doc_to_image": "asks about images",
        "doc_to_audio": "asks about sound",
        "unsafe_code": "runs what the model wrote",
    }
)
"""Fields of tasks that cannot be stored as items with answers."""
TEXTS = ("doc_to_text", "doc_to_choice", "doc_to_target")
"""Fields of which lm-eval makes an item; all but multiple_choice may do without choices."""
_SAMPLERS = ("default", "first_n")


@dataclass(frozen=True)
class Definition:
    """One task."""

    name: str
    path: Path
    """Its YAML file."""
    root: Path
    """The directory it was found in: lm-eval's or `evaluation.include_path`."""

    @cached_property
    def config(self) -> dict[str, Any]:
        """What the YAML says; DataError where it cannot be read."""
        return read_yaml(self.path)

    @property
    def ours(self) -> bool:
        """Whether it is of the user's directory, and not of lm-eval."""
        return self.root != harness_folder()

    @property
    def kind(self) -> str:
        """lm-eval's `output_type`."""
        return str(self.config.get("output_type", "generate_until"))

    @property
    def scored_split(self) -> str:
        """Split that is scored, by lm-eval's rule."""
        return str(self.config.get("test_split") or self.config.get("validation_split") or "")

    @property
    def fewshot(self) -> Mapping[str, Any]:
        """What is said of examples alone."""
        found = self.config.get("fewshot_config")
        return found if isinstance(found, dict) else {}

    @property
    def fewshot_split(self) -> str | None:
        """Split that examples come from, by lm-eval's rule; None where the YAML has them, or the scored one has."""
        named = self.fewshot.get("split") or self.config.get("fewshot_split")
        if not named and self.fewshot.get("samples") is not None:
            return None
        split = named or self.config.get("training_split") or self.config.get("validation_split")
        return str(split) if split and split != self.scored_split else None

    @property
    def metrics(self) -> list[dict[str, Any]]:
        """The entries of `metric_list` that are means over items."""
        known = METRICS[self.kind]
        return [entry for entry in self._metric_list if _is_mean(entry, known)]

    @property
    def left_out(self) -> list[str]:
        """Names of its other metrics."""
        kept = self.metrics
        return [_named(entry.get("metric")) for entry in self._metric_list if entry not in kept]

    @property
    def _metric_list(self) -> list[dict[str, Any]]:
        return self.config.get("metric_list") or [{"metric": name} for name in _BY_DEFAULT[self.kind]]

    def problem(self) -> str | None:
        """Why it cannot be scored here; None where it can."""
        return next(self._problems(), None)

    def _problems(self) -> Iterator[str]:
        config = self.config
        yield from (reason for field, reason in _ELSEWHERE.items() if config.get(field))
        if self.kind not in METRICS:
            hint = "; name its texts in evaluation.texts" if self.kind == "loglikelihood_rolling" else ""
            yield f"has output_type {self.kind}, and {', '.join(METRICS)} can be scored{hint}"
            return
        needed = TEXTS if self.kind == "multiple_choice" else (TEXTS[0], TEXTS[-1])
        if lacking := [field for field in needed if config.get(field) is None]:
            yield f"lacks {' and '.join(lacking)}, of which its items are made"
        if NAME.fullmatch(self.name) is None:
            yield "has a name that no file and metric can have"
        if int(config.get("repeats") or 1) > 1:
            yield f"asks {config['repeats']} times for each answer (repeats)"
        how = config.get("generation_kwargs") or {}
        if how.get("do_sample") or float(how.get("temperature") or 0):
            yield "draws its answers by chance (generation_kwargs); answers are written greedily here"
        if not self.metrics:
            scored = ", ".join(METRICS[self.kind])
            yield f"is measured by {', '.join(self.left_out)} alone; of a task of its kind {scored} can be scored"
        if any(functions_in(config.get("filter_list"))):
            yield "filters answers in Python (filter_list)"
        if self.fewshot.get("sampler", "default") not in _SAMPLERS:
            yield f"draws its examples by {_named(self.fewshot['sampler'])}; {' and '.join(_SAMPLERS)} are known"
        yield from (
            f"names the split {split!r}, which is no name of a file"
            for split in (self.scored_split, self.fewshot_split)
            if split is not None and NAME.fullmatch(split) is None
        )
        yield from (
            f"names !function {function.qualified}, which is no file below {self.root} and so cannot be pinned"
            for function in functions_in(config)
            if not _below(function.file, (self.root, harness_folder()))
        )

    def pin(self) -> str:
        """SHA-256 of what the YAML says, with functions by their names."""
        text = json.dumps(self.config, ensure_ascii=False, default=self._written)
        return hashlib.sha256(text.encode()).hexdigest()

    def _written(self, value: Any) -> str:
        if isinstance(value, Function):
            owner = next(folder for folder in (self.root, harness_folder()) if _below(value.file, (folder,)))
            return f"!function {value.folder.relative_to(owner.resolve()).as_posix()}/{value.qualified}"
        return str(value)

    def code(self) -> list[Path]:
        """The Python files that a task of the user's may run: all below the directory, since one imports another."""
        if not self.ours or not any(functions_in(self.config)):
            return []
        return sorted(self.root.rglob("*.py"))


def _is_mean(entry: Mapping[str, Any], known: tuple[str, ...]) -> bool:
    name = entry.get("metric")
    aggregation = entry.get("aggregation", name if name == "perplexity" else "mean")
    right = "perplexity" if name == "perplexity" else "mean"
    return name in known and aggregation == right and not entry.get("hf_evaluate") and not any(functions_in(entry))


def _named(value: Any) -> str:
    return f"!function {value.qualified}" if isinstance(value, Function) else str(value)


def _below(file: Path, folders: tuple[Path, ...]) -> bool:
    return file.is_file() and any(file.resolve().is_relative_to(folder.resolve()) for folder in folders)
