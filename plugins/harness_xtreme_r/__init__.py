"""XTREME-R (Ruder et al., 2021): what only this benchmark needs."""
