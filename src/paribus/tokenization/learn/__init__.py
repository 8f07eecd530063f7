"""How vocabularies are trained: distinct pre-tokens are counted once; each algorithm works on the counts."""
