"""What tokenizers do with a corpus, beside each other: tables, pictures, and a paper's numbers."""
