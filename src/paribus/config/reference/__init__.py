"""What there is to configure: the declared fields, the files of the groups, and the page made of the former."""
