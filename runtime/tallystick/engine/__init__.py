"""The domain actors, the tree they stand in, the daemon and its HTTP API."""
