"""All else being equal: the rule, and the proof that runs keep to it."""
