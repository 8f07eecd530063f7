"""What a command would run and what that costs, before anything runs."""
