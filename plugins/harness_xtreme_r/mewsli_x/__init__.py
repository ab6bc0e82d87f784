"""Synthetic files in the layout of Mewsli-X; ``python -m harness_xtreme_r.mewsli_x --help``."""
