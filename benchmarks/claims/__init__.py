"""The papers' claims, and what stored runs and statistics say of each."""
