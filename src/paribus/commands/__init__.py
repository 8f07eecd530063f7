"""The verbs of the command line, and what they share; `commands` hands over those that take Hydra's overrides.

In comes what follows the verb, out goes an exit status: 0, 1 where something failed or differs, 2 for a command that
was refused, 130 for one that was stopped. A verb parses, asks the rooms below, and shows; it computes nothing that a
number of a table is made of.

`run` starts every run of a sweep through Hydra's launcher and keeps no state of its own: what happened is read from
records, so a second command knows what the first did, wherever and however that ended. `report` is the verb that
writes most, `tokens` that with the most actions, `items` that with the most flags, `rerun` that which has to say why it
refuses, and each has a folder; `kept` has the verbs about what an output root holds, `help` what the command line says
of itself, and `further` the commands that a person may want next.
"""
