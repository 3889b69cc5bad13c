"""Sandbox drivers, the guest program and the frames between host and guest."""
