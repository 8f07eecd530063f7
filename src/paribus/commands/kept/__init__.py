"""Verbs about what an output root keeps: what there is, whether it is sound, taking a model out, and freeing space."""
