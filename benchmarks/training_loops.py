"""Loops that train one model on the same rows, and the process of one: `training_loops.py JOB RESULT`, files of JSON.

All build the same weights and have the same optimizer and learning rates; they return the losses of the steps.
"""

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from paribus.config.schema import RunConfig
from paribus.config.validate import build_run
from paribus.engine.local import LocalEngine
from paribus.errors import OutOfMemoryError
from paribus.modeling.device import resolve_device
from paribus.modeling.models import build_model, save_model
from paribus.ordering.contexts import build, open_contexts
from paribus.ordering.orders import write_order
from paribus.ordering.shuffle import traverse
from paribus.stage import ChannelListener, SilentListener, StageContext
from paribus.store.files import METRICS
from paribus.tokenization import Tokenizer
from paribus.tokenization.encoded_corpus import EncodedCorpusWriter
from paribus.training import data, loop
from paribus.training.losses import SummedLoss, compile_loss, make_optimizer
from paribus.training.metrics import peak_flops
from paribus.training.parallel import (
    compiles,
    device_name,
    explained_memory_errors,
    make_accelerator,
    resolve_precision,
)
from paribus.training.step import learning_rate
from paribus.training.train import open_data, prepare

LONGEST = 1000
"""Tokens of the longest document."""
EOS, ROWS = "<|endoftext|>", "rows.npy"
REPEATS = 20
"""Of what is timed by its fastest."""


@dataclass(frozen=True)
class Job:
    """A training with a contestant's loop; `contestant` may be `peak`, which measures the device alone."""

    contestant: str
    config: dict[str, Any]
    """All fields of the run's configuration."""
    directory: str
    """Where `write_inputs` wrote."""
    warmup: int = 0
    window: int = 1
    pipes: tuple[str, ...] = ()
    """This process's and the next one's, where it takes turns with others."""


def main(job: Job) -> dict[str, Any]:
    """What was measured, or the `problem`."""
    config = build_run(job.config)
    device = resolve_device(config.training.device, "training.device")
    if job.contestant == "peak":
        return peak(device)
    watch = Watch(device, job.warmup, job.config["budget"]["steps"], job.window, Turn(job.pipes))
    with tempfile.TemporaryDirectory(dir=job.directory) as work:
        try:
            with explained_memory_errors(config.training):
                losses = CONTESTANTS[job.contestant](config, Path(job.directory), Path(work), watch)
        except OutOfMemoryError as error:
            return {"problem": str(error), "out_of_memory": True}
    return watch.measured() | {"losses": losses}


def peak(device: torch.device) -> dict[str, Any]:
    """What the device is and can do: FLOP/s as its maker states them, else of a large matrix product."""
    stated = peak_flops(device_name(device))
    memory = float(torch.cuda.mem_get_info(device)[0]) if device.type == "cuda" else None
    found = {"name": device_name(device), "memory": memory, "type": device.type, "stated": stated}
    return found | {"peak": stated or product_flops(device)}


def product_flops(device: torch.device) -> float:
    """FLOP/s of a product of two large matrices, bfloat16 on a GPU and float32 on a CPU."""
    size, kind = (8192, torch.bfloat16) if device.type == "cuda" else (2048, torch.float32)
    left, right = (torch.randn(size, size, device=device, dtype=kind) for _ in range(2))
    result = torch.empty_like(left)
    return 2 * size**3 / fastest(lambda: torch.mm(left, right, out=result), device)


def fastest(computed: Callable[[], object], device: torch.device) -> float:
    """Seconds of the fastest of several."""
    found = []
    for _ in range(REPEATS):
        synchronize(device)
        began = time.perf_counter()
        computed()
        synchronize(device)
        found.append(time.perf_counter() - began)
    return min(found)


class Turn:
    """One process's place in a circle, in which each hands on the right to compute; alone it never waits."""

    def __init__(self, pipes: tuple[str, ...]) -> None:
        # Open for both, so that neither opening waits and no writer is ever without a reader.
        self._pipes = [os.open(pipe, os.O_RDWR) for pipe in pipes]

    def wait(self) -> None:
        """Return when it is this process's turn."""
        if self._pipes:
            os.read(self._pipes[0], 1)

    def hand_on(self) -> None:
        """It is the next one's turn."""
        if self._pipes:
            os.write(self._pipes[-1], b"\0")


@dataclass
class Watch:
    """Seconds of windows of `window` steps, after `warmup` of all `steps`, and the peak of memory.

    The device has finished at the end of each window. Nothing waits for it between: loops that let it lag behind keep
    that advantage. Processes that take turns and do the same number of steps measure a window after one another.
    """

    device: torch.device
    warmup: int
    steps: int
    window: int
    turn: Turn
    waited: float = 0.0
    """Seconds spent waiting for the device at the ends of windows."""
    idle: float = 0.0
    """Seconds spent between windows: waiting for the turn, and in here."""
    peak: float | None = None
    parts: dict[str, float] = field(default_factory=dict)
    done: int = 0
    began: tuple[float, float] = (0.0, 0.0)
    """Seconds of the clock and of all threads' processors at the start of the window."""
    windows: list[float] = field(default_factory=list)
    processor: float = 0.0

    def step(self) -> None:
        """A step is done."""
        self.done += 1
        if self.done < self.warmup or (self.done - self.warmup) % self.window:
            return
        before = time.perf_counter()
        synchronize(self.device)
        ended, processor = time.perf_counter(), time.process_time()
        self.waited += ended - before
        if self.done > self.warmup:
            self.windows.append((ended - self.began[0]) / self.window)
            self.processor += processor - self.began[1]
            self.turn.hand_on()
            if self.done < self.steps:
                self.turn.wait()
        else:
            # Nobody measures before all have come so far: the first time round is no more than that.
            self.turn.wait()
            self.turn.hand_on()
            self.turn.wait()
            reset_peak(self.device)
        self.peak = peak_bytes(self.device)
        self.idle += time.perf_counter() - ended
        self.began = time.perf_counter(), time.process_time()

    def timed(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """`function`, whose seconds count for `part`; waiting for the device in it counts for the step."""

        def timed(*arguments: Any, **named: Any) -> Any:
            measuring = self.warmup <= self.done < self.steps
            waited, idle, began = self.waited, self.idle, time.perf_counter()
            try:
                return function(*arguments, **named)
            finally:
                if measuring:
                    waited = self.waited - waited
                    own = time.perf_counter() - began - waited - (self.idle - idle)
                    self.parts[part] = self.parts.get(part, 0.0) + own
                    self.parts["step"] = self.parts.get("step", 0.0) + waited

        return timed

    def measured(self) -> dict[str, Any]:
        """Seconds a step of each window, all seconds, of processors too, the parts that were timed, and peak memory."""
        return {
            "seconds": self.windows,
            "whole": sum(self.windows) * self.window,
            "processor": self.processor / (len(self.windows) * self.window),
            "parts": self.parts,
            "peak": self.peak,
        }


def synchronize(device: torch.device) -> None:
    """Wait until the device has done what it was told."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def reset_peak(device: torch.device) -> None:
    """Forget the peak of memory so far."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    else:
        Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")


def peak_bytes(device: torch.device) -> float:
    """The most memory since then: allocated on a GPU; on a CPU the process's own, without pages of files."""
    if device.type == "cuda":
        return float(torch.cuda.max_memory_allocated(device))
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    said = dict(line.split(":", 1) for line in lines)
    resident, file = (int(said[name].split()[0]) * 1024 for name in ("VmHWM", "RssFile"))
    return float(resident - file)


def write_inputs(root: Path, config: RunConfig, vocab_size: int, steps: int) -> None:
    """Artefacts `tokens`, `order` and `contexts` of documents of 1 to 1,000 tokens in random order, for `steps` steps.

    `rows.npy` holds the contexts of those steps in the order they are read, context length + 1 tokens each.
    """
    generator, batch = np.random.default_rng(0), config.training.global_batch
    needed = (steps + 2) * batch * (config.model.context_length + 1) + LONGEST
    with EncodedCorpusWriter(root / "tokens", random_tokenizer(vocab_size)) as writer:
        while writer.tokens < needed:
            size = int(generator.integers(1, LONGEST))
            ids = generator.integers(0, vocab_size - 1, size)
            writer.append(ids, np.array([size]), np.array([4 * size]))
        documents = writer.documents
    for name in ("order", "contexts"):
        (root / name).mkdir()
    write_order(root / "order", generator.permutation(documents), kept=documents, removed=0)
    inputs = {name: root / name for name in ("tokens", "order")}
    build(StageContext(config, inputs, root / "contexts", root / "work", SilentListener(), LocalEngine(1)))
    opened, measured = open_contexts(config, inputs | {"contexts": root / "contexts"})
    batches = data.Batches(opened.contexts, batch, traverse(config.packing, measured, config.seed_of("contexts")))
    assert opened.contexts.full and opened.contexts.count >= steps * batch
    whole = [np.concatenate([inputs, targets[:, -1:]], axis=1) for inputs, targets in map(batches.rows, range(steps))]
    np.save(root / ROWS, np.concatenate(whole).astype(opened.corpus.ids.dtype))


def random_tokenizer(vocab_size: int) -> Tokenizer:
    """BPE with exactly that many tokens, of words of random letters."""
    generator = np.random.default_rng(1)
    letters = generator.integers(ord("a"), ord("z") + 1, (max(40_000, vocab_size), 12), dtype=np.uint8)
    text = " ".join(word.tobytes().decode()[: 4 + number % 9] for number, word in enumerate(letters))
    tokenizer = Tokenizer.train([text], vocab_size=vocab_size, pretokenizer="gpt2", special_tokens=(EOS,))
    assert tokenizer.vocab_size == vocab_size
    return tokenizer


def bare(config: RunConfig, inputs: Path, work: Path, watch: Watch) -> list[float]:
    """The model step alone with the decoder and the loss of paribus, on batches that lie on the device."""
    training = config.training
    model = weights(config, inputs).to(watch.device).train()
    half = resolve_precision(training.precision, watch.device) == "bf16"
    model.computes_in = torch.bfloat16 if half else torch.float32
    model.activation_checkpointing = training.activation_checkpointing
    loss = SummedLoss(model)
    if compiles(training, watch.device):
        compile_loss(loss)
    return steps_of(config, inputs, watch, model, loss, autocast=False)


def bare_logits(config: RunConfig, inputs: Path, work: Path, watch: Watch) -> list[float]:
    """The model step alone with the model and the loss of transformers, which makes all logits."""
    training = config.training
    model = in_transformers(config, inputs, work).to(watch.device).train()
    if training.activation_checkpointing:
        model.gradient_checkpointing_enable()
    if compiles(training, watch.device):
        for layer in model.base_model.layers:
            layer.compile()

    def loss(tokens: torch.Tensor, targets: torch.Tensor) -> Any:
        labels = targets.contiguous()
        given = {"labels": labels, "shift_labels": labels, "num_items_in_batch": 1}
        return model(input_ids=tokens, use_cache=False, **given).loss

    half = resolve_precision(training.precision, watch.device) == "bf16"
    return steps_of(config, inputs, watch, model, loss, autocast=half)


def steps_of(
    config: RunConfig, inputs: Path, watch: Watch, model: Any, summed: Callable[..., Any], *, autocast: bool
) -> list[float]:
    """All steps; `summed` is the loss summed over the targets (rows, L) predicted from the inputs (rows, L)."""
    training, device = config.training, watch.device
    optimizer, losses = make_optimizer(model, training), []
    rows = torch.from_numpy(np.load(inputs / ROWS).astype(np.int64)).to(device)
    for step, batch in enumerate(rows.split(training.global_batch)):
        total = torch.zeros((), device=device)
        for part in batch.split(training.micro_batch):
            with torch.autocast(device.type, torch.bfloat16, enabled=autocast):
                mean = summed(part[:, :-1], part[:, 1:]) / batch[:, 1:].numel()
            mean.backward()
            total += mean.detach()
        torch.nn.utils.clip_grad_norm_(model.parameters(), training.gradient_clip)
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, len(rows) // training.global_batch, training)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(total)
        watch.step()
    return [float(value) for value in losses]


def paribus(config: RunConfig, inputs: Path, work: Path, watch: Watch) -> list[float]:
    """The stage `training`, reading ahead and metrics included, without its export and its last checkpoint."""
    time_parts(watch)
    with Path("/dev/null").open("w", encoding="utf-8") as nowhere:
        artefacts = {name: inputs / name for name in ("tokens", "order", "contexts")}
        context = StageContext(config, artefacts, work / "output", work, StepListener(nowhere, watch), LocalEngine(1))
        accelerator, _ = make_accelerator(config.training)
        tokenizer = Tokenizer.load(inputs / "tokens" / "tokenizer")
        run = prepare(context, tokenizer, open_data(context), accelerator)
        loop.train(run, weights(config, inputs), None)
    lines = (work / METRICS).read_text(encoding="utf-8").splitlines()
    return [float(json.loads(line)["train/loss"]) for line in lines]


class StepListener(ChannelListener):
    """The listener of a stage in its process; progress is told once a step, and once before the first."""

    def __init__(self, channel: Any, watch: Watch) -> None:
        super().__init__(channel)
        self._watch, self._begun = watch, False

    def progress(self, done: float, total: float, **said: Any) -> None:
        """A step is done, but for the first time."""
        super().progress(done, total, **said)
        if self._begun:
            self._watch.step()
        self._begun = True


def time_parts(watch: Watch) -> None:
    """Time the parts of paribus' loop, from outside: four readings of a clock a step."""
    loop.Stepper.step = watch.timed("step", loop.Stepper.step)  # type: ignore[method-assign]
    loop.Meter.record = watch.timed("metrics", loop.Meter.record)  # type: ignore[method-assign]
    loop._Loop._save = lambda *_: None  # type: ignore[method-assign]
    ahead = data.BatchReader.ahead

    @contextmanager
    def timed(reader: data.BatchReader, start: int, stop: int) -> Iterator[Iterator[data.Batch]]:
        with ahead(reader, start, stop) as batches:
            yield iter(watch.timed("data", lambda: next(batches, None)), None)

    data.BatchReader.ahead = timed  # type: ignore[method-assign]


def trainer(config: RunConfig, inputs: Path, work: Path, watch: Watch) -> list[float]:
    """`transformers.Trainer` as it comes, with torch_compile where paribus compiles."""
    from torch.optim.lr_scheduler import LambdaLR
    from transformers import Trainer, TrainerCallback, TrainingArguments

    training, gpu = config.training, watch.device.type == "cuda"
    model = in_transformers(config, inputs, work).to(watch.device)
    losses: list[list[torch.Tensor]] = [[]]

    class Heard(Trainer):  # type: ignore[misc]
        def training_step(self, *arguments: Any, **named: Any) -> torch.Tensor:
            loss: torch.Tensor = super().training_step(*arguments, **named)
            losses[-1].append(loss)
            return loss

    class Steps(TrainerCallback):  # type: ignore[misc]
        def on_step_end(self, *arguments: Any, **named: Any) -> None:
            losses.append([])
            watch.step()

    # Targets are given as they are, so that all loops predict the same tokens.
    rows = torch.from_numpy(np.load(inputs / ROWS).astype(np.int64))
    items = [{"input_ids": row[:-1], "labels": row[1:], "shift_labels": row[1:]} for row in rows]
    steps, optimizer = len(rows) // training.global_batch, make_optimizer(model, training)
    schedule = LambdaLR(optimizer, lambda step: learning_rate(step, steps, training) / training.learning_rate)
    arguments = TrainingArguments(
        output_dir=str(work),
        max_steps=steps,
        per_device_train_batch_size=training.micro_batch,
        gradient_accumulation_steps=training.global_batch // training.micro_batch,
        gradient_checkpointing=training.activation_checkpointing,
        max_grad_norm=training.gradient_clip,
        optim="adamw_torch_fused",
        bf16=resolve_precision(training.precision, watch.device) == "bf16",
        torch_compile=compiles(training, watch.device),
        use_cpu=not gpu,
        dataloader_num_workers=2 if gpu else 0,
        dataloader_pin_memory=gpu,
        train_sampling_strategy="sequential",
        save_strategy="no",
        report_to="none",
        remove_unused_columns=False,
    )
    Heard(model, arguments, train_dataset=items, optimizers=(optimizer, schedule), callbacks=[Steps()]).train()
    return [float(sum(parts)) for parts in losses if parts]


def weights(config: RunConfig, inputs: Path) -> Any:
    """The model with the weights of the run's seed."""
    tokenizer = Tokenizer.load(inputs / "tokens" / "tokenizer")
    return build_model(config.model, tokenizer.vocab_size, config.seed, eos_id=tokenizer.eos_id)


def in_transformers(config: RunConfig, inputs: Path, work: Path) -> Any:
    """The same weights in the class of transformers."""
    from transformers import AutoModelForCausalLM

    directory = work / "in_transformers"
    directory.mkdir(parents=True)
    save_model(weights(config, inputs), directory)
    return AutoModelForCausalLM.from_pretrained(directory, attn_implementation="sdpa")


CONTESTANTS = {function.__name__: function for function in (bare, bare_logits, paribus, trainer)}

if __name__ == "__main__":
    given = Job(**json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
    Path(sys.argv[2]).write_text(json.dumps(main(given)), encoding="utf-8")
