"""Discovery of plugins, and typed tables of what they declared."""
