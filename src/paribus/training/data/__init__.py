"""What a step reads: contexts of the ordered tokens, as many as the budget says, a pure function of the step."""
