"""Documents from packages, files and data sets, as one immutable artefact with a held-out split."""
