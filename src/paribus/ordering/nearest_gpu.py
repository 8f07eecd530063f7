"""The nearest vectors of one shard, all of them compared on GPUs. Imports torch: import this module late.

Matrix products of half-precision vectors, summed in single precision, find more candidates than are wanted. Their
cosines are computed again, in double precision and in the order of additions of `nearest.scores`, so that lists are
those of a CPU to the last bit. Where what half precision may have moved could change a list, more is computed again.
"""

import queue
from collections.abc import Sequence

import torch

from paribus.errors import is_out_of_memory
from paribus.ordering.nearest import Ids, Neighbours, Vectors

SPARE_CANDIDATES = 64
COLUMNS = 2**17
"""Vectors of the shard that are compared at once, halved where memory is short."""
_FEWEST_COLUMNS = 2**12
_GROUP = 64
"""The largest products are sought in the groups of so many that have the largest maxima."""
_ABREAST = 16
_RANKED = 2**17
"""Candidates whose cosines are computed at once."""


def bytes_needed(rows: int, dimensions: int, queries: int) -> int:
    """Memory of one GPU for a shard of `rows` vectors: in single and half precision, and a block's products twice."""
    return rows * dimensions * (4 + 2) + 2 * 4 * queries * min(rows, COLUMNS) + 4 * _RANKED * (dimensions + 64)


class DeviceShard:
    """Every vector of a shard is compared; each of `devices` has a copy of it and serves one thread at a time."""

    def __init__(self, base: Vectors, devices: Sequence[torch.device]) -> None:
        self.base = base
        self._free: queue.SimpleQueue[_Copy] = queue.SimpleQueue()
        for device in devices:
            self._free.put(_Copy(base, device))

    def nearest(self, queries: Vectors, itself: Ids, count: int) -> Neighbours:
        """The nearest `count` rows of the shard and their cosines, as `nearest.rank` gives them."""
        copy = self._free.get()
        try:
            return copy.nearest(queries, itself, count)
        finally:
            self._free.put(copy)


class _Copy:
    def __init__(self, base: Vectors, device: torch.device) -> None:
        # Else parts of a sum may be rounded to half precision.
        torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
        self.exact = torch.from_numpy(base).to(device)
        self.rough = self._rough(self.exact)
        self.columns = COLUMNS
        self.error = self._distance(self.exact, self.rough)

    @torch.inference_mode()
    def nearest(self, queries: Vectors, itself: Ids, count: int) -> Neighbours:
        asked = torch.from_numpy(queries).to(self.exact.device)
        own = torch.from_numpy(itself).to(self.exact.device)
        number = min(count + 1 + SPARE_CANDIDATES, len(self.exact))
        least, candidates = self._candidates(self._rough(asked), number)
        ids, cosines = self._ranked(asked, candidates, own, count)
        if number < len(self.exact):
            # More than a rough product can be wrong by: the vectors' rounding, by Cauchy and Schwarz, and that of sums.
            moved = self._distance(asked, self._rough(asked))
            error = moved * (1 + self.error) + self.error + asked.shape[1] * 2.0**-22
            # Where the last neighbour is as near as the last candidate may be, others as near may be no candidates.
            for row in torch.nonzero(cosines[:, -1] <= least + error).flatten().tolist():
                some = slice(row, row + 1)
                close = self._above_the_last(asked[some], count, error)
                ids[some], cosines[some] = self._ranked(asked[some], close, own[some], count)
        return ids.cpu().numpy(), cosines.cpu().numpy()

    def _candidates(self, asked: torch.Tensor, number: int) -> tuple[torch.Tensor, torch.Tensor]:
        """The rows of the `number` largest rough products of each query, (queries, wanted), and the least of these."""
        values = asked.new_full((len(asked), 0), 0.0, dtype=torch.float32)
        rows = torch.zeros((len(asked), 0), dtype=torch.int64, device=asked.device)
        start = 0
        while start < len(self.rough):
            stop = min(start + self.columns, len(self.rough))
            try:
                largest, places = _largest(_products(asked, self.rough[start:stop]), min(number, stop - start))
            except RuntimeError as error:
                if not is_out_of_memory(error) or self.columns <= _FEWEST_COLUMNS:
                    raise
                self.columns //= 2  # the next part is smaller
                continue
            values, rows = torch.cat([values, largest], dim=1), torch.cat([rows, places + start], dim=1)
            if values.shape[1] > number:
                values, best = values.topk(number, dim=1)
                rows = rows.gather(1, best)
            start = stop
        return values.min(dim=1).values, rows

    def _ranked(
        self, asked: torch.Tensor, candidates: torch.Tensor, own: torch.Tensor, count: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The best `count` of the candidates and their cosines; -1 and 0 where there are fewer."""
        # By row first: of equal cosines the smallest row stands first.
        candidates = candidates.sort(dim=1).values
        cosines = self._cosines(asked, candidates).clamp(-1, 1).float()
        cosines = cosines.masked_fill(candidates == own[:, None], -torch.inf)
        cosines, best = cosines.sort(dim=1, descending=True, stable=True)
        ids = candidates.gather(1, best).masked_fill(cosines.isinf(), -1)
        cosines = cosines.masked_fill(cosines.isinf(), 0.0)
        missing = max(0, count - ids.shape[1])
        padded = torch.nn.functional.pad
        return padded(ids[:, :count], (0, missing), value=-1), padded(cosines[:, :count], (0, missing))

    def _cosines(self, asked: torch.Tensor, candidates: torch.Tensor) -> torch.Tensor:
        """(queries, candidates) float64."""
        queries = max(1, _RANKED // candidates.shape[1])
        parts = []
        for start in range(0, len(asked), queries):
            some = candidates[start : start + queries]
            across = [
                _in_order(asked[start : start + queries], self.exact[some[:, first : first + _RANKED]])
                for first in range(0, some.shape[1], _RANKED)
            ]
            parts.append(torch.cat(across, dim=1))
        return torch.cat(parts)

    def _above_the_last(self, asked: torch.Tensor, count: int, error: float) -> torch.Tensor:
        """All rows, (1, rows), that may be among the `count` nearest of one query beside itself."""
        vector, starts = self._rough(asked), range(0, len(self.rough), self.columns)
        parts = [_products(vector, self.rough[start : start + self.columns]) for start in starts]
        rough = torch.cat(parts, dim=1)[0]
        last = rough.topk(min(count + 1, len(rough))).values[-1]
        return torch.nonzero(rough >= last - 2 * error).flatten()[None]

    def _rough(self, vectors: torch.Tensor) -> torch.Tensor:
        return vectors.half() if vectors.is_cuda else vectors

    def _distance(self, exact: torch.Tensor, rough: torch.Tensor) -> float:
        """The longest difference of a vector from its rough form."""
        if exact.dtype == rough.dtype:
            return 0.0
        parts = [slice(start, start + COLUMNS) for start in range(0, len(exact), COLUMNS)]
        return max(float((exact[part] - rough[part].float()).norm(dim=1).max()) for part in parts)


def _products(asked: torch.Tensor, base: torch.Tensor) -> torch.Tensor:
    if asked.is_cuda:
        return torch.mm(asked, base.T, out_dtype=torch.float32)
    return asked @ base.T


def _largest(products: torch.Tensor, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The largest `count` of each row and their places; of all but few, only maxima are looked at."""
    rows, columns = products.shape
    groups = columns // _GROUP
    if columns % _GROUP or groups <= count:
        return products.topk(count, dim=1)
    grouped = products.view(rows, groups, _GROUP)
    chosen = grouped.amax(dim=2).topk(count, dim=1).indices
    picked = grouped.gather(1, chosen[:, :, None].expand(-1, -1, _GROUP)).flatten(1)
    values, places = picked.topk(count, dim=1)
    return values, chosen.gather(1, places // _GROUP) * _GROUP + places % _GROUP


def _in_order(asked: torch.Tensor, vectors: torch.Tensor) -> torch.Tensor:
    """Inner products of (q, d) with (q, c, d), added as `score_candidates` does: products of float32 are exact."""
    sums = vectors.new_zeros((*vectors.shape[:2], _ABREAST), dtype=torch.float64)
    whole = asked.shape[1] // _ABREAST * _ABREAST
    for first in range(0, whole, _ABREAST):
        part = slice(first, first + _ABREAST)
        sums.addcmul_(asked[:, None, part].double(), vectors[:, :, part].double())
    total = vectors.new_zeros(vectors.shape[:2], dtype=torch.float64)
    for lane in range(_ABREAST):
        total += sums[:, :, lane]
    for number in range(whole, asked.shape[1]):
        total += asked[:, None, number].double() * vectors[:, :, number].double()
    return total
