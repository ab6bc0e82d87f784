"""The public XTREME-R submission files: read, written and scored as the benchmark does."""
