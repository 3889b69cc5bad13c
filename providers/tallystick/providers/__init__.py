"""The catalogue of capabilities and the providers that execute them."""
