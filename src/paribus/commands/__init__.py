"""The verbs of the command line, and what they share.

In comes what follows the verb, out goes an exit status: 0, 1 where something failed or differs, 2 for a command that
was refused, 130 for one that was stopped. A verb parses, asks the rooms below, and shows; it computes nothing that a
number of a table is made of. `verbs` hands over to the file of each verb, so that nothing else is imported.

`run` starts every run of a sweep through Hydra's launcher and keeps no state of its own: what happened is read from
records, so a second command knows what the first did, wherever and however that ended.
"""

VERBS = {
    "run": "run one configuration, or with -m every combination of several",
    "plan": "show what would run: unique stages, tokens, text, parameters, FLOPs, disk, device-hours",
    "status": "the runs of an output root or of a command: state, scores, age, what failed and why",
    "report": "build the comparison table of runs: terminal, Markdown, CSV, LaTeX, HTML",
    "export": "write the model of a run as a Hugging Face directory with a model card",
    "orders": "what orderings do to contexts, without a model",
    "tokens": "what tokenizers do with a corpus, without a model: compression, lengths, entropy, overlap",
    "clean": "free disk without losing a number, and find damage: say what can go, and with --yes remove it",
    "sync": "replay what MLflow has not seen yet",
    "rerun": "run a recorded run again from nothing and compare every artefact and score",
    "explain": "what a field, a group, one of its options or an experiment is",
}
RUNS = "RUNS is a sweep or a run: its identifier or the beginning of one, the name of a sweep, or `last`."
