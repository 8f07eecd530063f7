"""Where the verb leaves its tables and pictures."""

from pathlib import Path

from paribus.config.identity import digest
from paribus.pipeline.root import OutputRoot

TOKENS = "tokens"
"""Directory of the output root for reports and logs."""


def report_directory(root: OutputRoot, subject: object) -> Path:
    """The directory of the report on `subject`, plain data that tells reports apart."""
    return root.path / TOKENS / digest(subject)[:16]
