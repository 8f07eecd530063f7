"""What trained models make of ids: log-probabilities, texts, translations, and the shape of their embeddings."""
