"""The demo: a story told with the real daemon, and the four scripts that it runs."""
