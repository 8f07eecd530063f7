"""Runs: from configurations to published artefacts and their records. `run` shows one from top to bottom: begin there.

In come the frozen configurations of a command. `graph` turns each into the artefacts it needs, with their keys, before
anything is computed. `run` makes what is missing: each stage in a child process (`execute`, `fork_server`), each
artefact once among all processes that want it. `recorder` writes the record of a run, `records` reads it, `results`
gives it to reports; `display` and `standings` show a run and a sweep while they go on.

What must hold: an artefact is there whole or not at all; the same configuration finds what any command made before;
whatever is killed, the same command goes on from there. A record is written before what it tells of begins, so that a
run which dies without a word is told from one that never was.
"""
