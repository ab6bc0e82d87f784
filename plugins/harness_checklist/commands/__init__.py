"""The commands of ``harness checklist``."""
