"""Families of models: exact sizes without building them, seeded weights, and Hugging Face directories.

In comes the group `model` and the size of a vocabulary. `counts`, `shape`, `memory` and `activations` say parameters,
FLOPs and bytes by formula, so that `paribus plan` needs no PyTorch; tests hold them against models that are built.
`match` changes a shape so that arms of other vocabularies have equal parameters: whoever counts or builds asks it.
`batching` is for whoever asks a model for more than fits at once.

What must hold: a weight depends on the seed, its name, its shape and its token alone (`initialize`), so that arms of
one seed start from the same layers. `build`, `decoder`, `device` and `initialize` import PyTorch; import
these late.
"""
