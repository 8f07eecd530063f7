"""Exact search for neighbours on the first GPU where there is one, else on the CPU."""

import numpy as np
import pytest
import torch

from paribus.ordering.arrays import unit_rows
from paribus.ordering.nearest import rank_all
from paribus.ordering.nearest_gpu import DeviceShard

pytestmark = pytest.mark.gpu
DEVICE = torch.device("cuda", 0) if torch.cuda.is_available() else torch.device("cpu")


@pytest.mark.parametrize(("rows", "dimensions", "copies"), [(3000, 96, 1), (3000, 37, 300), (200, 384, 5), (40, 8, 1)])
def test_lists_are_those_of_the_cpu_to_the_last_bit(rows: int, dimensions: int, copies: int) -> None:
    random = np.random.default_rng(0)
    base = unit_rows(random.standard_normal((rows, dimensions)).astype(np.float32))
    base[5 : 5 + copies] = base[4]
    own = np.arange(0, rows, 7)
    ids, cosines = DeviceShard(base, [DEVICE]).nearest(base[own], own, 50)
    expected = rank_all(base[own], base, own, 50)
    assert np.array_equal(ids, expected[0])
    assert np.array_equal(cosines.view(np.int32), expected[1].view(np.int32))
