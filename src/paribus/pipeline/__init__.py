"""From configurations to published artefacts and their records. `run` shows a run from top to bottom: begin there.

In come the frozen configurations of a command. `graph` turns each into the artefacts it needs, with their keys, before
anything is computed; `stages` is the list of what can be needed. `making` makes what is missing: each stage in a child
process, each artefact once among all processes that want it. `record` keeps what is known of a run and how it stands,
`show` tells it while it goes on.

What must hold: an artefact is there whole or not at all; the same configuration finds what any command made before;
whatever is killed, the same command goes on from there. A record is written before what it tells of begins, so that a
run which dies without a word is told from one that never was.
"""
