"""Content-addressed artefacts on disk: atomic publication, claims between processes, verification.

In come a stage's name, a key and a directory that a stage has filled; out comes an artefact, found by its key. It
exists when its directory does, which appears by one rename (`artifacts`, `files`). At most one living process makes it
(`claims`), on one node or on several with a shared disk. Its record has the digest of every file and of itself,
and whoever uses an artefact learns of damage; what is damaged is set aside, not removed.

Also here, because several rooms need them: digests of files outside the store, what a process is and whether it still
lives, what code and packages made something (`provenance`), and which packages decide a stage (`packages`).
"""
