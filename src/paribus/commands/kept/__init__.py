"""Verbs about what an output root keeps, from its records: what there is, taking a model out, and freeing space."""
