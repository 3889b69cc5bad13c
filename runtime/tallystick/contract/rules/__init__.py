"""The checker's rules, one module each."""
