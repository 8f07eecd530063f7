"""The verbs of the command line, a line each."""

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
