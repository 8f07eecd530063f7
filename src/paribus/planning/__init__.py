"""The bill of a command before anything runs: what is missing, and the tokens, FLOPs, disk and hours it takes.

In come the same configurations and graphs that `pipeline` would make, so plan and run cannot disagree about what is
there. `length` says how much is read, `speed` how fast (stated, remembered, or measured by a probe in a child process).
Hours are those of training alone. `plan` has what is missing and what it takes, and what is said of the runs together:
which documents they read, what a table of them could not judge. `show` makes of it tables, the bill with the error that
each figure is known with, and a refusal where it is over the limit that the user set.

Figures are exact where an artefact says them, else estimated and marked so. Nothing is written but measured speeds.
"""
