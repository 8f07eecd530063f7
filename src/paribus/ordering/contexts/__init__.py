"""What the contexts of an order are, as far as the whole encoded corpus must be read for it.

In come tokens and an order; `measure` says of contexts how much text their targets stand for, where in the ordered text
they lie and which sampled bytes they hold; `build`, the stage, does so for all of them, a part at a time, and
`artifact` is what later stages map into memory.

What must hold: nothing here depends on a seed, on the sequence in which training reads or on what it trains, so all
arms of one packing share it, and no process that holds a GPU reads a corpus.
"""
