"""Scaffolds: ``harness new`` writes a small package that works, for someone to change. It adds no hooks."""
