"""The revision contract: pure functions and values, no I/O, no clock, nothing else of tallystick."""
