"""The YAML task specs and suites that ship with the harness, and the embedded sample data."""
