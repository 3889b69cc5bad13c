"""The append-only log in LMDB, its indexes, and the files of artifacts."""
