"""What a corpus holds, counted while it is written."""

import hashlib
from collections import Counter
from collections.abc import Iterable

from paribus.stage import JSON


class Census:
    """Counts and the digest of a corpus; remembers 16 bytes a distinct text to find exact duplicates."""

    def __init__(self) -> None:
        self.documents = self.bytes = self.exact_duplicates = self.unsampled = self.unsampled_bytes = 0
        self.skipped: Counter[str] = Counter()
        self._texts: set[bytes] = set()
        self._digest = hashlib.sha256()

    def add(self, id: bytes, text: bytes, target: bytes | None = None) -> None:
        """Count a document, or a pair of source and target, given in UTF-8."""
        self.documents += 1
        parts = (text,) if target is None else (text, target)
        self.bytes += sum(map(len, parts))
        self._digest.update(b"".join(len(part).to_bytes(8, "little") for part in (id, *parts)) + id)
        seen = hashlib.blake2b(digest_size=16)
        for part in parts:
            self._digest.update(part)
            seen.update(part if len(parts) == 1 else len(part).to_bytes(8, "little") + part)
        distinct = len(self._texts)
        self._texts.add(seen.digest())
        self.exact_duplicates += len(self._texts) == distinct

    def move(self, places: Iterable[int]) -> None:
        """Note which documents, by their numbers among the drawn held-out ones, went to training after all."""
        for place in places:
            self._digest.update(place.to_bytes(8, "little"))

    def leave_out(self, size: int) -> None:
        """Count a document of so many bytes that is not in the sample."""
        self.unsampled += 1
        self.unsampled_bytes += size

    def skip(self, reason: str) -> None:
        """Count something that was left out."""
        self.skipped[reason] += 1

    def left_out(self) -> str:
        """What was left out, for people; empty where nothing was."""
        reasons = ", ".join(f"{count} {reason}" for reason, count in sorted(self.skipped.items()))
        return f" (left out: {reasons})" if reasons else ""

    def result(self) -> dict[str, JSON]:
        """What the record says: the digest is the SHA-256 of ids and texts, of both sides of pairs, in order.

        Before each id stand the lengths of it and of what follows it; at the end, what `move` noted.
        """
        return {
            "documents": self.documents,
            "bytes": self.bytes,
            "exact_duplicates": self.exact_duplicates,
            "unsampled": {"documents": self.unsampled, "bytes": self.unsampled_bytes},
            "skipped": dict(sorted(self.skipped.items())),
            "digest": self._digest.hexdigest(),
        }
