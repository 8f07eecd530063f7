"""What a corpus holds, counted while it is written."""

import hashlib
from collections import Counter

from paribus.pipeline.context import JSON


class Census:
    """Counts and the digest of a corpus; remembers 16 bytes a distinct text to find exact duplicates."""

    def __init__(self) -> None:
        self.documents = self.bytes = self.exact_duplicates = 0
        self.skipped: Counter[str] = Counter()
        self._texts: set[bytes] = set()
        self._digest = hashlib.sha256()

    def add(self, id: bytes, text: bytes) -> None:
        """Count a document, given in UTF-8."""
        self.documents += 1
        self.bytes += len(text)
        self._digest.update(len(id).to_bytes(8, "little") + len(text).to_bytes(8, "little") + id)
        self._digest.update(text)
        distinct = len(self._texts)
        self._texts.add(hashlib.blake2b(text, digest_size=16).digest())
        self.exact_duplicates += len(self._texts) == distinct

    def skip(self, reason: str) -> None:
        """Count something that was left out."""
        self.skipped[reason] += 1

    def left_out(self) -> str:
        """What was left out, for people; empty where nothing was."""
        reasons = ", ".join(f"{count} {reason}" for reason, count in sorted(self.skipped.items()))
        return f" (left out: {reasons})" if reasons else ""

    def result(self) -> dict[str, JSON]:
        """What the record says: the digest is the SHA-256 of ids and texts, each after their lengths, in order."""
        return {
            "documents": self.documents,
            "bytes": self.bytes,
            "exact_duplicates": self.exact_duplicates,
            "skipped": dict(sorted(self.skipped.items())),
            "digest": self._digest.hexdigest(),
        }
