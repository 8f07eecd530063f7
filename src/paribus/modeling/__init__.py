"""Families of models: exact sizes without building them, seeded weights, and Hugging Face directories.

In comes the group `model` and the size of a vocabulary. `parameters` and `memory` give parameters, FLOPs and bytes by
formula, so that `paribus plan` needs no PyTorch; tests hold them against models that are built. `resolve_model` changes
a shape so that arms of other vocabularies have equal parameters: whoever counts or builds calls it. `device` makes
batches for whoever asks a model for more than fits at once.

What must hold: a weight depends on the seed, its name, its shape and its token alone (`initialization`), so that arms
of one seed start from the same layers. `models`, `decoder`, `fused`, `initialization`, `device` and `marian` import
PyTorch; import these late.
"""
