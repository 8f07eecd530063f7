"""How much there must be of what is compared before anything is said of which is better."""

SEEDS_TO_JUDGE = 3
"""Seeds below which nothing is said of which model is better: what a seed moves is then unknown, or nearly so."""
ITEMS_TO_JUDGE = 30
"""Items, or documents, below which nothing is said of others like them: no interval, no test, no best."""
