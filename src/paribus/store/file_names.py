"""Names of files that several rooms read, each written by one of them."""

RUN_RECORD = "run.json"
"""In the directory of a run: what it is and how it stands."""
MADE_OF = "artefacts.json"
"""In the directory of a report without a run: the artefacts that it was made of."""
METRICS = "metrics.jsonl"
"""In an artefact: the numbers that its stage reported, a line a step."""
