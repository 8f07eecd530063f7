"""A vocabulary of 128K tokens, and documents that attend to themselves alone in contexts of 8,192 tokens."""

from acceptance.given import Answer, Given
from acceptance.measures.speed import compared


def measure(given: Given) -> Answer:
    """As `speed`."""
    return compared(given, ["demo"] if given.tiny else ["468m_128k", "468m_documents"], {})
