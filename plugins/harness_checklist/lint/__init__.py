"""Faults of suites and of generated cases."""
