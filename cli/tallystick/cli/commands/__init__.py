"""The commands, one module per group. Their signatures load with `tally --help`, so heavy imports stay inside."""
