"""Decoders: Llama and GPT-NeoX in PyTorch alone, from token ids to the hidden states that losses and scores need.

An `Architecture` says what is computed; `Decoder` has the weights and computes it, in float32 or with matrix products,
activations and residual stream in bfloat16, by the same code on every device and for one process or many. `names` and
`files` lead from and to directories as transformers writes them, which other tools read.

What must hold: the logits are those of transformers' classes, and a seed gives each of their tensors the same numbers,
however they are fused here.
"""
