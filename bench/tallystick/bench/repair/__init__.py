"""How well does a model repair scripts, and what in the prompt helps? ``python -m tallystick.bench.repair``."""
