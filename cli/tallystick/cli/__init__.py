"""The command line: thin commands that talk to the daemon over its unix socket."""
