"""Single steps of training, without a corpus."""

import math
from typing import Any

import numpy as np
import torch

from paribus.config.groups.training import TrainingConfig
from paribus.training.data import Batch
from paribus.training.losses import DocumentEnd
from paribus.training.parallel import make_accelerator, prepare
from paribus.training.step import Stepper


def make_batch(inputs: np.ndarray, targets: np.ndarray) -> Batch:
    """A batch of one process; both int64 (rows, L)."""
    rows = np.arange(len(inputs))
    tensors = (torch.from_numpy(np.ascontiguousarray(tokens)) for tokens in (inputs, targets))
    return Batch(0, rows, *tensors, int((targets >= 0).sum()))


def make_stepper(
    model: Any, training: TrainingConfig, document_end: DocumentEnd | None = None, loss_limit: float = math.inf
) -> Stepper:
    """What makes a step of `model` in this process."""
    accelerator, _ = make_accelerator(training)
    return Stepper(
        accelerator=accelerator,
        prepared=prepare(accelerator, model, training, document_end),
        parameters=list(model.parameters()),
        micro_batch=training.micro_batch,
        gradient_clip=training.gradient_clip,
        loss_limit=loss_limit,
    )
