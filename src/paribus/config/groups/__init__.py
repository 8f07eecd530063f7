"""One file a family of configuration groups; `kind` selects the class within a group."""
