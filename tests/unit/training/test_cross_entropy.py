"""The summed cross-entropy that never has the logits of all tokens."""

from collections.abc import Iterator

import pytest
import torch
from torch.nn.functional import cross_entropy, linear

from paribus.modeling.memory import LOSS_TOKENS
from paribus.training.losses import _add_product, fused_loss_and_difference, loss_and_difference, summed_cross_entropy

TOKENS, WIDTH, VOCABULARY = 2 * LOSS_TOKENS["cpu"] + 100, 16, 64


def drawn(dtype: torch.dtype = torch.float32) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Hidden states, output matrix and targets, some of which are not there."""
    generator = torch.Generator().manual_seed(0)
    hidden = torch.randn(TOKENS, WIDTH, generator=generator).to(dtype).requires_grad_()
    output = torch.randn(VOCABULARY, WIDTH, generator=generator).to(dtype).requires_grad_()
    targets = torch.randint(0, VOCABULARY, (TOKENS,), generator=generator)
    targets[::7] = -1
    return hidden, output, targets


@pytest.fixture
def two_threads() -> Iterator[None]:
    """Sums of several threads are where an order can come in."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def expected(hidden: torch.Tensor, output: torch.Tensor, targets: torch.Tensor) -> list[torch.Tensor]:
    """Loss and gradients in double precision."""
    exact = [tensor.detach().double().requires_grad_() for tensor in (hidden, output)]
    loss = cross_entropy(linear(*exact), targets, ignore_index=-1, reduction="sum")
    return [loss.detach(), *torch.autograd.grad(loss / 3, exact)]


def test_loss_and_gradients_are_those_of_all_logits() -> None:
    hidden, output, targets = drawn()
    loss = summed_cross_entropy(hidden, output, targets)
    found = [loss, *torch.autograd.grad(loss / 3, [hidden, output])]
    for ours, exact in zip(found, expected(hidden, output, targets), strict=True):
        torch.testing.assert_close(ours.double(), exact, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("weights", [torch.float32, torch.bfloat16])
def test_in_bfloat16_sums_are_in_float32(weights: torch.dtype) -> None:
    hidden, output, targets = drawn(torch.bfloat16)
    output = output.detach().to(weights).requires_grad_()
    loss = summed_cross_entropy(hidden, output, targets)
    assert loss.dtype == torch.float32
    found = [loss, *torch.autograd.grad(loss / 3, [hidden, output])]
    exact = expected(hidden.bfloat16(), output.bfloat16(), targets)
    assert abs(float(loss.detach()) / float(exact[0]) - 1) < 2e-4
    for ours, sought in zip(found[1:], exact[1:], strict=True):
        assert float((ours.double() - sought).norm() / sought.norm()) < 5e-3


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_what_is_compiled_gives_the_same(dtype: torch.dtype) -> None:
    hidden, output, targets = (tensor[:300] for tensor in drawn(dtype))
    logits = (hidden @ output.T).detach()
    compiled = torch.compile(fused_loss_and_difference, backend="aot_eager")
    expected = loss_and_difference(logits.clone(), targets)
    for found, sought in zip(compiled(logits, targets), expected, strict=True):
        assert found.dtype == sought.dtype
        torch.testing.assert_close(found, sought, rtol=1e-5, atol=1e-6)
    given = [
        torch.autograd.grad(summed_cross_entropy(hidden, output, targets, of_logits=of), hidden)
        for of in (loss_and_difference, compiled)
    ]
    torch.testing.assert_close(*given)


def test_targets_that_are_not_there_have_no_gradient() -> None:
    hidden, output, targets = drawn()
    summed_cross_entropy(hidden, output, targets).backward()
    assert hidden.grad is not None
    assert not hidden.grad[::7].any()
    assert hidden.grad[1::7].any()


class OnGPU(torch.Tensor):
    """Of a CPU, and says otherwise."""

    is_cuda = True


def test_a_gpu_adds_products_to_the_sum_without_rounding_them(monkeypatch: pytest.MonkeyPatch) -> None:
    def addmm(
        total: torch.Tensor, one: torch.Tensor, other: torch.Tensor, *, out_dtype: torch.dtype, out: torch.Tensor
    ) -> None:
        assert out_dtype == torch.float32
        out.copy_(total.as_subclass(torch.Tensor) + one.float() @ other.float())

    monkeypatch.setattr(torch, "addmm", addmm)
    generator = torch.Generator().manual_seed(0)
    difference, states = (torch.randn(50, size, generator=generator).bfloat16() for size in (9, 5))
    total = torch.ones(9, 5)
    _add_product(total.as_subclass(OnGPU), difference, states)  # type: ignore[no-untyped-call]
    torch.testing.assert_close(total, 1 + difference.float().T @ states.float())


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_threads_of_a_cpu_give_the_same_bits_each_time(smoothing: float, two_threads: None) -> None:
    """A resumed training has the bytes of one that was not interrupted only then."""
    generator = torch.Generator().manual_seed(0)
    tokens = max(TOKENS, 4 * 32_768 // WIDTH)  # PyTorch divides what has more than 32,768 numbers
    hidden = torch.randn(tokens, WIDTH, generator=generator).requires_grad_()
    output = torch.randn(VOCABULARY, WIDTH, generator=generator).requires_grad_()
    targets = torch.randint(0, VOCABULARY, (tokens,), generator=generator)
    found = set()
    for _ in range(10):
        loss = summed_cross_entropy(hidden, output, targets, smoothing)
        gradients = torch.autograd.grad(loss, [hidden, output])
        found.add(b"".join(each.detach().numpy().tobytes() for each in (loss, *gradients)))
    assert len(found) == 1
