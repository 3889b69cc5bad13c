"""Actors, typed refs, bounded mailboxes, supervisors and clocks: generic, importing nothing else of tallystick."""
