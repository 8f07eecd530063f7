"""The loops: each trains the model of a configuration on the same rows and says when a step is done.

All build the same weights and have the same optimizer and learning rates; they return the losses of the steps.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch

from loops.inputs import ROWS
from loops.watch import Watch
from paribus.config.schema import RunConfig
from paribus.engine.local import LocalEngine
from paribus.modeling.device import resolve_device
from paribus.modeling.models import build_model, save_model
from paribus.stage import ChannelListener, StageContext
from paribus.store.files import METRICS
from paribus.tokenization import Tokenizer
from paribus.training import data, loop
from paribus.training.losses import SummedLoss, compile_loss, make_optimizer
from paribus.training.parallel import compiles, make_accelerator, resolve_precision
from paribus.training.step import learning_rate
from paribus.training.train import open_data, prepare

NO_LABEL = -100
Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
"""Sum over the targets (rows, L) predicted from the inputs (rows, L)."""


def bare(config: RunConfig, inputs: Path, work: Path, watch: Watch) -> list[float]:
    """The model step alone with the decoder and the loss of paribus, on batches that lie on the device."""
    training, device = config.training, resolve_device(config.training.device, "training.device")
    model = _model(config, inputs).to(device).train()
    model.computes_in = torch.bfloat16 if resolve_precision(training.precision, device) == "bf16" else torch.float32
    model.activation_checkpointing = training.activation_checkpointing
    loss = SummedLoss(model)
    if compiles(training, device):
        compile_loss(loss)
    return _bare(config, inputs, watch, model, loss, autocast=False)


def bare_logits(config: RunConfig, inputs: Path, work: Path, watch: Watch) -> list[float]:
    """The model step alone with the model and the loss of transformers, which makes all logits."""
    training, device = config.training, resolve_device(config.training.device, "training.device")
    model = _in_transformers(config, inputs, work).to(device).train()
    if training.activation_checkpointing:
        model.gradient_checkpointing_enable()
    if compiles(training, device):
        for layer in model.base_model.layers:
            layer.compile()

    def loss(tokens: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        labels = targets.contiguous()
        given = {"labels": labels, "shift_labels": labels, "num_items_in_batch": 1}
        result: torch.Tensor = model(input_ids=tokens, use_cache=False, **given).loss
        return result

    half = resolve_precision(training.precision, device) == "bf16"
    return _bare(config, inputs, watch, model, loss, autocast=half)


def _bare(config: RunConfig, inputs: Path, watch: Watch, model: Any, summed: Loss, *, autocast: bool) -> list[float]:
    training, device = config.training, resolve_device(config.training.device, "training.device")
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
    """The stage `training` without its export: reading ahead, metrics, checkpoints but that of the last step.

    That one begins once all is measured, and at 2 billion parameters takes longer than the steps.
    """
    _time_parts(watch)
    with Path("/dev/null").open("w", encoding="utf-8") as nowhere:
        artefacts = {name: inputs / name for name in ("tokens", "order", "contexts")}
        reporter = _StepListener(nowhere, watch)
        context = StageContext(config, artefacts, work / "output", work, reporter, LocalEngine(1))
        accelerator, _ = make_accelerator(config.training)
        run = loop_run(context, accelerator)
        loop.train(run, _model(config, inputs), None)
    lines = (work / METRICS).read_text(encoding="utf-8").splitlines()
    return [float(json.loads(line)["train/loss"]) for line in lines]


def loop_run(context: StageContext, accelerator: Any) -> loop.TrainingRun:
    """What the loop works with, made as the stage makes it."""
    tokenizer = Tokenizer.load(context.inputs["tokens"] / "tokenizer")
    return prepare(context, tokenizer, open_data(context), accelerator)


class _StepListener(ChannelListener):
    """The listener of a stage in its process; progress is told once a step, and once before the first."""

    def __init__(self, channel: Any, watch: Watch) -> None:
        super().__init__(channel)
        self._watch, self._begun = watch, False

    def progress(self, done: float, total: float, **said: Any) -> None:
        super().progress(done, total, **said)
        if self._begun:
            self._watch.step()
        self._begun = True


def _time_parts(watch: Watch) -> None:
    """Time the parts of paribus' loop, from outside: four readings of a clock a step."""
    save = loop._Loop._save
    for owner, name, part, function in (
        (loop.Stepper, "step", "step", loop.Stepper.step),
        (loop.Meter, "record", "metrics", loop.Meter.record),
        (loop._Loop, "_save", "checkpoints", lambda *given: None if watch.over else save(*given)),
    ):
        setattr(owner, name, watch.timed(part, function))
    ahead = data.BatchReader.ahead

    @contextmanager
    def timed(reader: data.BatchReader, start: int, stop: int) -> Iterator[Iterator[data.Batch]]:
        with ahead(reader, start, stop) as batches:
            yield iter(watch.timed("data", lambda: next(batches, None)), None)

    data.BatchReader.ahead = timed  # type: ignore[method-assign]


def trainer(config: RunConfig, inputs: Path, work: Path, watch: Watch) -> list[float]:
    """`transformers.Trainer` as it comes."""
    return _trainer(config, inputs, work, watch, compiled=False)


def trainer_compiled(config: RunConfig, inputs: Path, work: Path, watch: Watch) -> list[float]:
    """`transformers.Trainer` with torch_compile."""
    return _trainer(config, inputs, work, watch, compiled=True)


def _trainer(config: RunConfig, inputs: Path, work: Path, watch: Watch, *, compiled: bool) -> list[float]:
    from torch.optim.lr_scheduler import LambdaLR
    from transformers import Trainer, TrainerCallback, TrainingArguments

    training, device = config.training, resolve_device(config.training.device, "training.device")
    model = _in_transformers(config, inputs, work).to(device)
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

    rows = np.load(inputs / ROWS, mmap_mode="r")
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
        bf16=resolve_precision(training.precision, device) == "bf16",
        torch_compile=compiled,
        use_cpu=device.type == "cpu",
        dataloader_num_workers=2 if device.type == "cuda" else 0,
        dataloader_pin_memory=device.type == "cuda",
        train_sampling_strategy="sequential",
        save_strategy="no",
        report_to="none",
        remove_unused_columns=False,
    )
    Heard(model, arguments, train_dataset=_Rows(rows), optimizers=(optimizer, schedule), callbacks=[Steps()]).train()
    return [float(sum(parts)) for parts in losses if parts]


class _Rows(torch.utils.data.Dataset[dict[str, torch.Tensor]]):
    """Packed rows; targets are given as they are, so that all loops predict the same tokens."""

    def __init__(self, rows: Any) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        row = torch.from_numpy(self._rows[index].astype(np.int64))
        return {"input_ids": row[:-1], "labels": row[1:], "shift_labels": row[1:]}


def _model(config: RunConfig, inputs: Path) -> Any:
    tokenizer = Tokenizer.load(inputs / "tokens" / "tokenizer")
    return build_model(config.model, tokenizer.vocab_size, config.seed, eos_id=tokenizer.eos_id)


def _in_transformers(config: RunConfig, inputs: Path, work: Path) -> Any:
    """The same weights in the class of transformers."""
    from transformers import AutoModelForCausalLM

    directory = work / "in_transformers"
    directory.mkdir(parents=True)
    save_model(_model(config, inputs), directory)
    return AutoModelForCausalLM.from_pretrained(directory, attn_implementation="sdpa")


CONTESTANTS: dict[str, Callable[[RunConfig, Path, Path, Watch], list[float]]] = {
    "bare": bare,
    "bare_logits": bare_logits,
    "paribus": paribus,
    "trainer": trainer,
    "trainer_compiled": trainer_compiled,
}
