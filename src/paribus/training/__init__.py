"""Pretraining: from encoded documents in their order to models, with the same bytes however often it was killed.

`train` is the stage: it opens the text as contexts, resolves the budget and the batches (`data`), finds a micro-batch
that fits the device (`fit`, `micro_batch`), takes the weights to start from (`start`, `initial`) and runs the `loop`.
`step` has what one step computes, `checkpoint` and `metrics` what is kept of it; `parallel`, `sharded`, `distributed`
and `launch` are for several processes that train one model. `stage`, `start` and `fit` import nothing heavy.

What must hold: all that a step does follows from its number, contexts, learning rate and random numbers alike. So a
killed training goes on exactly, and micro-batch, processes and nodes change speed and not which text is read. A
checkpoint appears whole; one that was cut short is found and an older one used.
"""
