"""What a term is, by which documents are compared without a model of language."""

IDEOGRAPHS = "\u3040-\u30ff\u3400-\u9fff"
TERM = rf"[{IDEOGRAPHS}]|[^\W{IDEOGRAPHS}]{{2,}}"
"""A word of two characters or more, or one character of a script that is written without spaces."""
