"""Typed configuration: from overrides to frozen `RunConfig`s, and which of their fields decide what is computed.

In come overrides and the YAML of `conf/`; `compose` gives them to Hydra, which it and `hydra_session` alone know.
`validate` builds the classes of `groups` (`kind` selects the class within a group) out of plain data and reports
every problem at once, each by its path. Out comes `schema.RunConfig`, frozen and complete, but
for contexts and batches given in bytes of text: how many tokens these are is known once the text is encoded.

What must hold: every field is declared `identity` or `execution` (`fields`); the first enter the keys of artefacts,
as canonical JSON (`identity`), the second must not change a number. Nothing is taken from the environment, where
secrets are, and nothing in a configuration names code to call. This room knows no stage: whether values of several
groups go together is for `checks`.

`explain` tells people what there is to configure.
"""
