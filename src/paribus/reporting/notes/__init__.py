"""What stands under the table, in words."""
