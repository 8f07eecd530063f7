"""Documents from packages, files and data sets, as one immutable artefact with a held-out split.

`sources` say where documents come from, `readers` how a file of each format is read, with its problems by line. `build`
reads them in the order of the source and draws each document into a split by a hash of its group or text, so neither
order nor workers decide where it goes; training documents beyond the sample that is asked for are left out (`sample`;
where it is given as a size, in a second pass). Then held-out text is compared with what is left of training (`overlap`,
with the loops of `kernels`), and near copies move there (`separation`).

Out come Parquet shards whose bytes depend on the documents alone, and their `census`. A record that cannot be read ends
the stage, unless `corpus.on_invalid` says to skip it; then it is counted and written down. `fingerprint` says what the
documents are before anything is read: it is in the key of all that is made of them.
"""
