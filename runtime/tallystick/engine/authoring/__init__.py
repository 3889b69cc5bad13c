"""Scripts that a model writes and repairs: the skill document, the model calls, the loop (contract.md, section 9)."""
