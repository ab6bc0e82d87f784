"""Example records, readers of published formats, and where files are."""
