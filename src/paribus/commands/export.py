"""The verb `paribus export`: the model of a run as a Hugging Face directory, with a card that says how it was made."""

import errno
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]
from rich.console import Console

from paribus.config.arguments import read_options
from paribus.config.explain import summaries
from paribus.config.fields import proper_path
from paribus.config.metrics import SCORE
from paribus.config.units import format_count, format_size
from paribus.errors import ConfigurationError, DataError
from paribus.evaluation.benchmarks import CONTINUATION
from paribus.pipeline.graph import EVALUATION, FINETUNING
from paribus.pipeline.records import command_line, find_run_id, is_reference, read_metrics, require_run_record
from paribus.pipeline.root import OutputRoot, named_root
from paribus.reporting.measures import METRICS
from paribus.store import files
from paribus.store.artifacts import Artifact
from paribus.store.files import read_object, read_object_if_any, sha256, write_json
from paribus.training.start import checkpoint_directories

TRAINING = "training"
HELP = """usage: paribus export RUN DIR [step=N] [root=paribus_runs]

Write the model of a run into DIR as Hugging Face has it: weights, config.json, tokenizer, and README.md, a model card
with its scores, the command and configuration that made it, and the commit. It is the last checkpoint, or the one of
step=N. DIR must not exist, or must be empty; it appears whole or not at all. The licence is left to you.

Unlike a checkpoint in the root, it generates with a KV cache, and its tokenizer knows the context length, pads (with
the special token called padding, else with the one that ends a document) and reads special tokens in prompts;
split_special_tokens=True leaves them text, as in a corpus.

RUN is an identifier as `paribus status` shows it, the beginning of one, or last, the newest run. Tokenizers that
tokenizer.json cannot hold, as those of longest_first and of Scaffold-BPE, need paribus: the card has the lines for it.

  paribus export last my_model
  paribus export 01234567 my_model step=125
  paribus export 01234567 my_model root=my/runs

exit status: 0; 1 its checkpoints are not there; 2 refused
"""


def export_command(arguments: Sequence[str], console: Console) -> int:
    """`paribus export RUN DIR`: ConfigurationError for what cannot be asked, DataError without checkpoints."""
    name, target, root, requested = parse(arguments)
    occupied = f"{target} is there and not empty; name a directory that is not there yet"
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise ConfigurationError(occupied)
    run_id = find_run_id(name, root.path)
    record = require_run_record(run_id, root.path)
    training = _training(record, run_id, root)
    step, checkpoint = _checkpoint(training, requested)
    origin = Origin(
        run_id=run_id,
        record=record,
        step=step,
        command=command_line(run_id, root.path),
        training=training.record(),
        scores=_logged_scores(record, step, root),
    )
    made = [parent for parent in target.absolute().parents if not parent.exists()]
    try:
        target.absolute().parent.mkdir(parents=True, exist_ok=True)
        with files.replacing(target) as aside:
            _copy(training, checkpoint, aside)
            complete(aside)
            (aside / CARD).write_text(model_card(origin, aside, target.name), encoding="utf-8")
            size = sum(path.stat().st_size for path in aside.rglob("*") if path.is_file())
    except BaseException as error:
        for parent in made:
            with suppress(OSError):
                parent.rmdir()
        if isinstance(error, OSError) and error.errno in (errno.ENOTEMPTY, errno.EEXIST) and target.exists():
            raise ConfigurationError(occupied) from error  # another export made it meanwhile
        raise
    done = f"{target}: step {step:,} of run {run_id}, {format_size(size)}; see {CARD} there for how to load it"
    console.print(done, markup=False, soft_wrap=True)
    return 0


def parse(arguments: Sequence[str]) -> tuple[str, Path, OutputRoot, int | None]:
    """Name of the run, target, output root and step; ConfigurationError for what cannot be asked."""
    names = [argument for argument in arguments if is_reference(argument)]
    options = read_options([argument for argument in arguments if argument not in names], ("root", "step"))
    if len(names) != 2:
        raise ConfigurationError("export takes a run and a directory: paribus export last my_model")
    step = options.get("step")
    if step is not None and not step.isdecimal():
        raise ConfigurationError(f"step={step}: a step is a whole number, as in the names of checkpoints")
    try:
        target = Path(proper_path(names[1])).expanduser()
    except ValueError as error:
        raise ConfigurationError(f"export: {error}") from error
    return names[0], target, named_root(options.get("root")), None if step is None else int(step)


def _training(record: Mapping[str, Any], run_id: str, root: OutputRoot) -> Artifact:
    if TRAINING not in record["stages"]:
        raise DataError(f"run {run_id} has no training yet: it is {record['status']}; see `paribus status {run_id}`")
    key = str(record["stages"][TRAINING]["key"])
    training = root.store.find(TRAINING, key)
    if training is not None and not training.whole:
        raise DataError(
            f"the checkpoints of run {run_id} were removed; `paribus rerun {run_id} root={root.path}` makes it "
            f"again in a root of its own below {root.reruns}, which root=... then names here"
        )
    return training or root.store.require(TRAINING, key)


def _checkpoint(training: Artifact, requested: int | None) -> tuple[int, Path]:
    steps = checkpoint_directories(training.path)
    if not steps:
        raise DataError(f"{training.path} has no checkpoints")
    step = max(steps) if requested is None else requested
    if step not in steps:
        known = ", ".join(map(str, steps))
        raise ConfigurationError(f"step={step}: no such checkpoint; there are those of steps {known}")
    return step, steps[step]


def _logged_scores(record: Mapping[str, Any], step: int, root: OutputRoot) -> dict[str, float]:
    """Every number that was logged of a checkpoint, by name; none of one that was not scored."""
    nodes = [(stage, record["stages"][stage]["key"]) for stage in (EVALUATION, FINETUNING) if stage in record["stages"]]
    made = [artefact for stage, key in nodes if (artefact := root.store.find(stage, str(key)))]
    numbers = [number for artefact in made for number in read_metrics(artefact.path)]
    return {name: value for name, value, at in numbers if at == step}


def _copy(training: Artifact, checkpoint: Path, target: Path) -> None:
    """Copy a checkpoint; DataError where the copy is not what was published."""
    digests = training.record()["files"]
    for path in sorted(path for path in checkpoint.rglob("*") if path.is_file()):
        name = path.relative_to(training.path).as_posix()
        copied = target / path.relative_to(checkpoint)
        copied.parent.mkdir(parents=True, exist_ok=True)
        with path.open("rb") as source, files.naming(copied), copied.open("wb") as sink:
            shutil.copyfileobj(source, sink)
        if sha256(copied) != digests[name]["sha256"]:
            message = "differs from its digest; `paribus clean --verify` sets the training aside"
            raise DataError(f"{training.path / name} {message}")


_CONFIG, _GENERATION, _TOKENIZER = "config.json", "generation_config.json", "tokenizer_config.json"
_PADDING = re.compile(r"\W*pad(ding)?\W*", re.IGNORECASE)


def complete(directory: Path) -> None:
    """Have the model in `directory` generate with a cache, and its tokenizer pad and know the context length.

    Trainings and evaluations, which read checkpoints in the store, say all of this themselves. `config.json` gets no
    token for padding, whose embedding transformers would never train: mostly it is the one that ends a document.
    """
    from paribus.tokenization.text_tokenizer import TextTokenizer

    special = TextTokenizer.load(directory / "tokenizer").special_tokens
    padding = pad_token(special)
    config = read_object(directory / _CONFIG) | {"use_cache": True}
    write_json(directory / _CONFIG, config)
    generation = {"eos_token_id": config["eos_token_id"], "pad_token_id": special[padding], "use_cache": True}
    write_json(directory / _GENERATION, read_object_if_any(directory / _GENERATION) | generation)
    # The spelling of a special token is text in a corpus; for who prompts a model it is the token, as everywhere there.
    length = config["max_position_embeddings"]
    habits = {"model_max_length": length, "pad_token": padding, "split_special_tokens": False}
    write_json(directory / _TOKENIZER, read_object(directory / _TOKENIZER) | habits)


def pad_token(special_tokens: Iterable[str]) -> str:
    """The special token that is called padding, else the first, which ends a document."""
    names = list(special_tokens)
    return next((name for name in names if _PADDING.fullmatch(name)), names[0])


CARD = "README.md"


@dataclass(frozen=True)
class Origin:
    """Records of a checkpoint."""

    run_id: str
    record: Mapping[str, Any]
    step: int
    command: str | None
    """The command as it would be typed; None where the sweep of the run is not on record."""
    training: Mapping[str, Any]
    """Record of its artefact."""
    scores: Mapping[str, float]
    """Numbers of this checkpoint, as they were logged."""

    @property
    def early(self) -> bool:
        """True if the training went on after it."""
        return bool(self.step < self.training["result"]["steps"])


def model_card(origin: Origin, directory: Path, name: str) -> str:
    """The card of the model in `directory`, which is to be called `name`."""
    result, config = origin.training["result"], read_object(directory / _CONFIG)
    causal = str(config["architectures"][0]).endswith("ForCausalLM")
    lines = [
        *("---", "library_name: transformers", "tags:", "- paribus", "---", "", f"# {name}", ""),
        f"{'A language model' if causal else 'An encoder-decoder'} of {format_count(result['parameters'])} parameters, "
        f"trained on {format_count(result['tokens'])} tokens, {format_size(result['text_bytes'])} of text, with "
        f"paribus, which compares tokenizers, encodings and document orders. These are its weights after step "
        f"{origin.step:,} of {result['steps']:,}{', when it had read a part of that text' if origin.early else ''}.",
        *("", "No licence is given here: whoever publishes the model says which.", "", "## Model", ""),
        *model_table(origin.record["identity"], config, result, early=origin.early),
        *_loading_section(directory, name, "AutoModelForCausalLM" if causal else "AutoModelForSeq2SeqLM"),
        *("## Scores", ""),
        *(score_table(origin.scores) if origin.scores else ("This checkpoint was not scored.", "")),
        *_making_section(origin),
    ]
    return "\n".join(lines) + "\n"


def _loading_section(directory: Path, name: str, model: str) -> Iterator[str]:
    """The lines that load it, which a test runs."""
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


def _making_section(origin: Origin) -> Iterator[str]:
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


_BYTES_PER_TOKEN = "text/bytes_per_token"
_BITS_PER_BYTE = re.compile(r"eval/(?:(?P<text>.+)/)?bits_per_byte")
METRIC_WORDS: Mapping[str, str] = {
    "acc_norm": "accuracy, by log-probability a character",
    "acc_bytes": "accuracy, by log-probability a byte",
    "tokenized_bleu": "BLEU of tokenized text",
    "rouge_geometric_mean": "geometric mean of ROUGE-1, ROUGE-2 and ROUGE-L",
    "choice_bits": "bits of the right choice (minus log2 of its share of the choices' probabilities)",
    "target_bits": "bits of the right answer (minus log2 of its probability)",
}
"""Words for metrics whose family name does not tell them apart."""
TEXT_WORDS: Mapping[str | None, str] = {
    None: "held-out text",
    "heldout_clean": "held-out text that is unlike all training text",
    "heldout_concatenated": "held-out text, documents end to end",
}
_GROUP_WORDS: Mapping[str, str] = {
    "model": "architecture",
    "start": "initial weights",
    "tokenizer": "tokenizer",
    "pretokenizer": "pre-tokenizer",
    "encoder": "encoding of text into tokens",
    "corpus": "training text",
    "ordering": "order of the documents",
    "packing": "contexts",
}
"""Group of the configuration -> what people call what it decides."""


def score_table(scores: Mapping[str, float]) -> Iterator[str]:
    """The scores of a model as a table; of what is counted of its tokens, their length."""
    yield from ("| measure | value |", "|---|---|")
    for name, value in scores.items():
        if not name.startswith(("text/", "embeddings/")) or name == _BYTES_PER_TOKEN:
            yield f"| {score_words(name)} | {value:.6g} |"
    yield ""
    if any(name.startswith(f"eval/{CONTINUATION}/") for name in scores):
        yield (
            f"`{CONTINUATION}` asks which of four texts goes on with a passage of held-out text; a blind guess is "
            "right in a quarter. Accuracies are shares of 1."
        )
        yield ""


def score_words(name: str) -> str:
    """A logged name for people; as it is where it is of another kind."""
    if match := SCORE.fullmatch(name):
        metric = match["metric"]
        words = METRIC_WORDS.get(metric) or (METRICS[metric].family if metric in METRICS else metric)
        return f"{match['task']}, {match['shots']}-shot, {words}"
    if match := _BITS_PER_BYTE.fullmatch(name):
        return f"bits per byte, {TEXT_WORDS.get(match['text'], match['text'])}"
    return "bytes per token, held-out text" if name == _BYTES_PER_TOKEN else name


def model_table(
    identity: Mapping[str, Any], model: Mapping[str, Any], result: Mapping[str, Any], *, early: bool
) -> Iterator[str]:
    """Model, tokenizer and training text as a table.

    `identity` is the configuration of the run, `model` that of transformers, `result` that of the training, which went
    on after this model where that is `early`.
    """
    yield from ("| | |", "|---|---|")
    more = {
        "model": f"{format_count(result['parameters'])} parameters",
        "tokenizer": f"{model['vocab_size']:,} tokens" if "vocab_size" in model else "",
        "corpus": f"{format_size(result['text_bytes'])} of it read{' in all steps' if early else ''}, "
        f"{format_count(result['tokens'])} tokens",
    }
    for group, called in _GROUP_WORDS.items():
        kind = (identity.get(group) or {}).get("kind")
        if kind is not None:
            words = [summaries(group).get(kind, kind), more.get(group, "")]
            yield f"| {called} | {'; '.join(filter(None, words))} (`{kind}`) |"
    yield ""
