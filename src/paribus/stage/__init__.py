"""The contract between a stage and the pipeline: what a stage is (`spec`), and what its function receives (`context`).

A stage reads the artefacts of its inputs, fills one empty directory and returns what its record should say. It knows
neither its key nor where its output will be, and never publishes; it may keep what outlives a kill in `work`. So every
stage can be tested as a function, and the pipeline can run it in any process.

A room of stages declares each in its `stage.py`: name, `code_version`, inputs, identity, fingerprint, device, function.
Output that changes for the same inputs needs a new `code_version`, which pinned digests in `tests/golden` watch.
"""
