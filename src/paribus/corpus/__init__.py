"""Documents from packages, files and data sets, as one immutable artefact with a held-out split.

`paths` finds the files of a source by name, `files` and `datasets` yield its documents, `readers` read a file of each
format, with its problems by line. `build` reads them in the order of the source and draws each document into a split by
a hash of its group or text, so neither order nor workers decide where it goes; training documents beyond the requested
sample are left out (where it is given as a size, in a second pass). Then held-out text is compared with what is
left of training, and near copies move there (`overlap`, with the loops of `kernels`).

Out come Parquet shards whose bytes depend on the documents alone, and a census of them. A record that cannot be read
ends the stage, unless `corpus.on_invalid` says to skip it; then it is counted and written down. The fingerprint in
`stage` says what the documents are before anything is read: it is in the key of all that is made of them.
"""
