"""Readers of published data formats: files in, rows out, with file and line in every error."""
