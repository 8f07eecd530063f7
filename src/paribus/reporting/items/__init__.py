"""What is behind a table's numbers: each item and document, and where the rows of the table part."""
