"""The verb `paribus report`: from the runs of a command to its table, through records alone."""
