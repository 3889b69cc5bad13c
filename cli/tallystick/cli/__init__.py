"""The command tally: a thin client of the daemon."""
