"""Readers of the formats that only XTREME-R's tasks have."""
