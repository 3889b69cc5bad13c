"""Upper bounds read off the source, for rule R03 and the facts of a revision; ``analysis`` is the way in."""
